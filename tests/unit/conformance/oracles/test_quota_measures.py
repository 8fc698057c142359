"""The measures of the benchmark, by hand and against rationals (resource-groups 12.2)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conformance.oracles.quota_rounds.measures import measure
from headgate.conformance.oracles.quota_rounds.rounds import play
from headgate.conformance.oracles.quota_rounds.trace import GONE, PlayedRound, Round, RoundParameters, Trace
from headgate.core.quota.allocation.exact_split import exact_split


def parts(split):
    return [Fraction(part, split.scale) for part in split.parts]


def played(*admitted, quota=100, demand=(100, 100), limits=(100, 100)):
    return [PlayedRound(quota, limits, amounts, demand) for amounts in admitted]


@pytest.mark.parametrize(
    ("quota", "demand", "weights", "up", "expected"),
    [
        (100, (10, 20), (1, 1), (True, True), [10, 20]),
        (100, (70, 70, 70), (1, 1, 1), (True,) * 3, [Fraction(100, 3)] * 3),
        (100, (70, 70), (1, 3), (True, True), [30, 70]),
        (100, (90, 90), (1, 3), (True, True), [25, 75]),
        (100, (90, 90, 90), (1, 1, 1), (True, False, True), [50, 0, 50]),
        (0, (90, 90), (1, 1), (True, True), [0, 0]),
        (None, (90, 90), (1, 1), (True, True), [90, 90]),
        (100, (), (), (), []),
    ],
)
def test_the_exact_split(quota, demand, weights, up, expected):
    assert expected == parts(exact_split(quota, demand, weights, up))


@given(
    st.integers(0, 1000),
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 9), st.booleans()), min_size=1, max_size=6),
)
def test_the_exact_split_is_level(quota, rows):
    demand, weights, up = zip(*rows, strict=True)
    split = parts(exact_split(quota, demand, weights, up))
    unmet = [
        part / own for part, own, wanted, runs in zip(split, weights, demand, up, strict=True) if runs and part < wanted
    ]
    offered = sum(wanted for wanted, runs in zip(demand, up, strict=True) if runs)

    assert min(quota, offered) == sum(split)
    assert all(part / own <= level for level in unmet for part, own in zip(split, weights, strict=True))


def test_rounds_are_counted_from_the_event_to_the_first_that_holds():
    good, bad = (50, 50), (30, 30)
    found = measure(played(bad, bad, good, bad, good, good, good), (1, 1), 1, window=4, hold=3)

    assert (3, 3) == (found.rounds_to_10, found.rounds_to_1)


def test_rounds_that_do_not_hold_to_the_end_of_the_trace_do_not_count():
    good, bad = (50, 50), (30, 30)

    assert measure(played(bad, good, good), (1, 1), 0, hold=3).rounds_to_10 is None
    assert measure(played(bad, good, good), (1, 1), 0, hold=2).rounds_to_10 == 1


@pytest.mark.parametrize(
    ("used", "within_10", "within_1"), [((45, 45), 0, None), ((44, 45), None, None), ((50, 49), 0, 0)]
)
def test_an_error_of_exactly_the_percentage_is_within(used, within_10, within_1):
    found = measure(played(used), (1, 1), 0, hold=1)

    assert (within_10, within_1) == (found.rounds_to_10, found.rounds_to_1)


def test_overshoot_is_the_worst_of_the_window_beyond_the_quota():
    found = measure(played((90, 90), (60, 50), (50, 70), (90, 90)), (1, 1), 1, window=2)

    assert found.worst_overshoot == pytest.approx(0.2)


def test_utilisation_and_useful_share_are_means_over_the_window():
    found = measure(played((80, 20), (50, 0)), (1, 1), 0)

    assert (0.75, 0.6) == pytest.approx((found.utilisation, found.useful_share))


def test_fairness_looks_at_the_last_round_of_the_window():
    rounds = played((100, 0), (75, 25), (100, 0))

    assert measure(rounds, (1, 1), 0, window=2).jain_end == pytest.approx(0.8)
    assert measure(played((0, 0)), (1, 1), 0).jain_end == 0.0
    assert measure(played((0, 0), demand=(0, 0)), (1, 1), 0).jain_end == 1.0


def test_jaggedness_is_movement_beyond_that_of_the_split():
    assert measure(played((50, 50), (70, 30), (50, 50)), (1, 1), 1).jaggedness == pytest.approx(0.8)
    assert measure(played((50, 50), (50, 50)), (1, 1), 0).jaggedness == 0.0
    still = [*played((50, 50)), *played((50, 0), demand=(50, 0))]
    assert measure(still, (1, 1), 0).jaggedness == 0.0


def test_brokers_that_do_not_run_have_no_part():
    found = measure(played((100, 0), limits=(100, GONE)), (1, 1), 0, hold=1)

    assert (0, 1.0, 1.0) == (found.rounds_to_1, found.useful_share, found.jain_end)


@pytest.mark.parametrize(("quota", "used", "rounds_to_1"), [(0, (0, 0), 0), (0, (1, 0), None), (None, (100, 100), 0)])
def test_without_a_quota_or_with_zero(quota, used, rounds_to_1):
    found = measure(played(used, quota=quota), (1, 1), 0, hold=1)

    assert rounds_to_1 == found.rounds_to_1
    assert (0.0, 0.0) == (found.worst_overshoot, found.jaggedness)


def test_a_window_beyond_the_trace_has_nothing_to_judge_by():
    found = measure(played((50, 50)), (1, 1), 5)

    assert (None, 0.0, 1.0, 1.0, 1.0, 0.0) == (
        found.rounds_to_1,
        found.worst_overshoot,
        found.utilisation,
        found.useful_share,
        found.jain_end,
        found.jaggedness,
    )


def test_a_played_trace_is_measured_as_it_is():
    trace = Trace(2, 100, (Round([70, 70]),) * 8, initial=(70, 30))

    assert measure(play(trace, RoundParameters()), (1, 1), 0, window=8, hold=4).useful_share == pytest.approx(0.975)
