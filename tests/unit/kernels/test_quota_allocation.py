"""The array form of quota allocation gives what the readable form gives, to the unit, at the edges of 64 bits too."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.kernels.quota_allocation import REASONS, Cells, Cluster, Reports, max_min_many, step_many
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.allocation.share_out import max_min
from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView
from headgate.core.quota.evaluation.step import step
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters
from headgate.core.quota.rates import RATE_MAX
from headgate.errors import InvalidArgument

AS_OF, SILENT_ROUNDS = 100, 8

rates = st.one_of(st.integers(0, 30), st.integers(0, 10**6), st.sampled_from([0, 1, RATE_MAX - 1, RATE_MAX]))
weights = st.one_of(st.integers(1, 5), st.sampled_from([1, 999, 1000]))
quotas = st.none() | rates
rows = st.tuples(weights, st.none() | rates, st.none() | rates, st.none() | rates, *[st.booleans()] * 3)
cells = st.lists(st.tuples(quotas, st.lists(rows, max_size=7)), max_size=5)


def column(values):
    return np.array([-1 if value is None else value for value in values], np.int64)


def array_cells(given_cells):
    """Columns of cells whose brokers are 0, 3, 6, ..."""
    members = [row for _, cell in given_cells for row in cell]
    return Cells(
        quotas=column(quota for quota, _ in given_cells),
        offsets=np.cumsum([0, *(len(cell) for _, cell in given_cells)], dtype=np.int64),
        ids=column(3 * row for _, cell in given_cells for row in range(len(cell))),
        weights=column(row[0] for row in members),
        demands=column(row[1] for row in members),
    )


def or_none(values):
    return [None if value == -1 else value for value in values.tolist()]


@settings(max_examples=examples(80))
@given(cells, st.booleans())
@example([(RATE_MAX, [(1000, None, None, None, False, False, False)] * 1000)], True)
@example([(RATE_MAX, [(1000, RATE_MAX, None, None, False, False, False)] * 1000)], False)
def test_targets_of_many_cells_are_those_of_each(given_cells, headroom):
    expected = []
    for quota, cell in given_cells:
        ids, weight, demand = range(0, 3 * len(cell), 3), [row[0] for row in cell], [row[1] for row in cell]
        whole = quota is not None
        expected += max_min(quota, demand, weight, ids, headroom=headroom) if whole else [None] * len(cell)

    assert expected == or_none(max_min_many(array_cells(given_cells), headroom=headroom))


def view_of(cell, outside, silent_outside, missing_outside):
    """The members of a cell, and those of the cluster outside it."""
    members = []
    for number, (weight, demand, limit, _, idle_before, silent, missing) in enumerate(cell):
        covered = AS_OF - SILENT_ROUNDS if silent else AS_OF - 1
        row = CellRow(covered - 1 if idle_before else AS_OF, 0, demand, limit, idle_before)
        members.append(CellMember(3 * number, weight, covered, missing=missing, active=True, row=row))
    for number in range(outside):
        covered = AS_OF - SILENT_ROUNDS if number < silent_outside else AS_OF
        missing = number < missing_outside
        members.append(CellMember(10_000 + number, 7, covered, missing=missing, active=False, row=None))
    return CellView(AS_OF, tuple(members))


percents = st.sampled_from([0, 1, 5, 20, 33, 100])
parameter_sets = st.builds(
    StepParameters, st.just(Profile.MAX_MIN), st.sampled_from(Mode), percents, percents, percents, percents
)


@settings(max_examples=examples(300))
@given(quotas, st.lists(rows, min_size=1, max_size=7), parameter_sets, st.integers(0, 4), st.data())
def test_the_step_of_every_row_is_the_readable_step(quota, cell, parameters, outside, data):
    silent_outside, missing_outside = data.draw(st.integers(0, outside)), data.draw(st.integers(0, outside))
    view = view_of(cell, outside, silent_outside, missing_outside)
    cluster = Cluster(
        members=len(view.members),
        total_weight=sum(member.weight for member in view.members),
        silent=silent_outside + sum(row[5] for row in cell),
        missing=missing_outside + sum(row[6] for row in cell),
    )
    reports = Reports(
        limits=column(row[2] for row in cell),
        idle_before=np.array([row[4] for row in cell]),
        silent=np.array([row[5] for row in cell]),
        missing=np.array([row[6] for row in cell]),
        present=column(row[3] for row in cell),
    )
    made = step_many(parameters, array_cells([(quota, cell)]), reports, cluster)
    outcomes = [step(parameters, quota, 3 * number, row[3], view) for number, row in enumerate(cell)]

    assert [outcome.limit for outcome in outcomes] == or_none(made.limits)
    assert [outcome.target for outcome in outcomes] == or_none(made.targets)
    assert [outcome.safe_share for outcome in outcomes] == or_none(made.safe_shares)
    assert [outcome.reason for outcome in outcomes] == [REASONS[code] for code in made.reasons]


def test_no_cells_and_empty_cells_have_no_rows():
    assert max_min_many(array_cells([])).size == 0
    assert max_min_many(array_cells([(5, []), (None, [])])).size == 0


def test_null_and_zero_stay_apart():
    cell = [(1, None, None, None, False, False, False)] * 2

    assert [-1, -1, 0, 0] == max_min_many(array_cells([(None, cell), (0, cell)])).tolist()


def good():
    return {
        "quotas": column([10]),
        "offsets": column([0, 2]),
        "ids": column([1, 2]),
        "weights": column([1, 1]),
        "demands": column([5, None]),
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"quotas": column([])}, "offsets"),
        ({"offsets": column([0, 1])}, "offsets"),
        ({"offsets": column([1, 2])}, "offsets"),
        ({"quotas": column([1, 1]), "offsets": column([0, 3, 2])}, "ascending"),
        ({"ids": column([2, 2])}, "ids"),
        ({"ids": column([2, 1])}, "ids"),
        ({"weights": column([1, 0])}, "weights"),
        ({"weights": column([1, 1001])}, "weights"),
        ({"weights": column([1])}, "columns"),
        ({"demands": column([1, -2])}, "demands"),
        ({"quotas": column([-2])}, "quotas"),
    ],
)
def test_columns_outside_their_range_are_refused(changed, message):
    with pytest.raises(InvalidArgument, match=message):
        Cells(**{**good(), **changed})


def test_ids_start_anew_with_each_cell():
    Cells(**{**good(), "quotas": column([1, None, 1]), "offsets": column([0, 1, 1, 2]), "ids": column([9, 4])})


def test_more_rows_than_sums_of_64_bits_hold_are_refused():
    with pytest.raises(InvalidArgument, match="1000 rows"):
        array_cells([(1, [(1, None, None, None, False, False, False)] * 1001)])


def test_steps_of_other_profiles_have_no_array_form():
    cells_of_one = Cells(**good())
    flags = np.zeros(2, np.bool_)
    reports = Reports(column([1, 1]), flags, flags, flags, column([1, 1]))

    with pytest.raises(InvalidArgument, match="profile"):
        step_many(StepParameters(profile=Profile.PULSAR), cells_of_one, reports, Cluster(2, 2, 0, 0))
    wrong = Reports(column([1, -2]), flags, flags, flags, column([1, 1]))
    with pytest.raises(InvalidArgument, match="limits"):
        step_many(StepParameters(), cells_of_one, wrong, Cluster(2, 2, 0, 0))
