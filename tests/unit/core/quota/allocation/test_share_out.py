"""Whole units shared out by weight and the max-min fair split, against other ways to work them out."""

from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from headgate.core.quota.allocation.share_out import max_min, share_out
from headgate.core.quota.rates import RATE_MAX

rates = st.one_of(st.integers(0, 40), st.integers(0, 10**7), st.sampled_from([0, 1, RATE_MAX - 1, RATE_MAX]))
weight_values = st.one_of(st.integers(1, 4), st.integers(1, 1000))


@st.composite
def crowds(draw, weights=weight_values, least=1):
    """Demands, weights and distinct ids of one cell."""
    count = draw(st.integers(least, 9))
    columns = [draw(st.lists(values, min_size=count, max_size=count)) for values in (st.none() | rates, weights)]
    return (*columns, draw(st.lists(st.integers(0, 99), min_size=count, max_size=count, unique=True)))


def capped(demands, quota):
    return [quota if demand is None else min(demand, quota) for demand in demands]


@pytest.mark.parametrize(
    ("amount", "weights", "ids", "expected"),
    [
        (10, [1, 1, 1], [30, 10, 20], [3, 4, 3]),
        (2, [1, 1, 1], [3, 2, 1], [0, 1, 1]),
        (10, [1, 2, 3], [0, 1, 2], [2, 3, 5]),
        (7, [5, 0, 5], [0, 1, 2], [4, 0, 3]),
        (0, [0, 0], [0, 1], [0, 0]),
        (5, [], [], []),
    ],
)
def test_left_over_units_go_to_the_largest_remainders_then_to_the_smallest_ids(amount, weights, ids, expected):
    assert expected == share_out(amount, weights, ids)


@given(rates, crowds())
def test_shares_sum_to_the_amount_and_are_their_part_rounded(amount, crowd):
    _, weights, ids = crowd
    shares = share_out(amount, weights, ids)

    assert amount == sum(shares)
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - Fraction(amount * weight, sum(weights))) < 1


@given(rates, crowds())
def test_targets_sum_to_the_quota(quota, crowd):
    assert quota == sum(max_min(quota, *crowd))


@given(rates, crowds())
def test_without_headroom_nobody_gets_more_than_it_asks_for(quota, crowd):
    targets = max_min(quota, *crowd, headroom=False)
    wanted = capped(crowd[0], quota)

    assert all(target <= demand for target, demand in zip(targets, wanted, strict=True))
    assert min(quota, sum(wanted)) == sum(targets)


@given(rates, crowds(), st.randoms())
def test_the_order_of_rows_does_not_matter(quota, crowd, random):
    rows = list(zip(*crowd, strict=True))
    random.shuffle(rows)
    shuffled = [list(column) for column in zip(*rows, strict=True)]
    before = dict(zip(crowd[2], max_min(quota, *crowd), strict=True))

    assert before == dict(zip(shuffled[2], max_min(quota, *shuffled), strict=True))


@given(st.integers(0, 10**6), crowds())
def test_one_more_unit_of_quota_lowers_nobody_by_more_than_one(quota, crowd):
    before, after = max_min(quota, *crowd), max_min(quota + 1, *crowd)

    assert all(new >= old - 1 for old, new in zip(before, after, strict=True))


@given(st.integers(0, 10**6), crowds(weights=st.just(3)))
def test_one_more_unit_of_quota_lowers_nobody_where_weights_are_equal(quota, crowd):
    before, after = max_min(quota, *crowd), max_min(quota + 1, *crowd)

    assert all(new >= old for old, new in zip(before, after, strict=True))


@given(rates, crowds(), st.data())
def test_a_larger_demand_lowers_its_own_target_by_at_most_one(quota, crowd, data):
    demands, weights, ids = crowd
    row = data.draw(st.integers(0, len(ids) - 1))
    assume(demands[row] is not None)
    raised = list(demands)
    raised[row] = data.draw(st.none() | rates.map(lambda more: demands[row] + more))

    assert max_min(quota, raised, weights, ids)[row] >= max_min(quota, demands, weights, ids)[row] - 1


@given(rates, crowds())
def test_while_anyone_is_unmet_nobody_gets_more_than_it_asks_for(quota, crowd):
    wanted, targets = capped(crowd[0], quota), max_min(quota, *crowd)

    if any(target < demand for target, demand in zip(targets, wanted, strict=True)):
        assert all(target <= demand for target, demand in zip(targets, wanted, strict=True))


@given(rates, crowds())
def test_who_is_unmet_is_level_with_everyone_to_the_unit(quota, crowd):
    demands, weights, _ = crowd
    targets = max_min(quota, *crowd)
    rows = list(zip(targets, capped(demands, quota), weights, strict=True))
    for target, demand, weight in rows:
        if target < demand:
            assert all((other - 1) * weight < (target + 1) * its_weight for other, _, its_weight in rows)


@given(rates, crowds(weights=st.integers(1, 30)), st.integers(2, 33))
def test_the_same_factor_on_all_weights_changes_nothing(quota, crowd, factor):
    demands, weights, ids = crowd

    assert max_min(quota, demands, weights, ids) == max_min(quota, demands, [factor * w for w in weights], ids)


@given(rates, st.none() | rates, weight_values)
def test_one_broker_alone_gets_the_quota(quota, demand, weight):
    assert [quota] == max_min(quota, [demand], [weight], [7])


def by_sorting(quota, demands, weights, ids):
    """A scan in the order of demand per weight."""
    wanted = capped(demands, quota)
    targets, unmet = [0] * len(ids), sorted(range(len(ids)), key=lambda row: Fraction(wanted[row], weights[row]))
    rest, weight = quota, sum(weights)
    while unmet and wanted[unmet[0]] * weight <= rest * weights[unmet[0]]:
        row = unmet.pop(0)
        targets[row] = wanted[row]
        rest, weight = rest - wanted[row], weight - weights[row]
    return shared_rest(targets, wanted, rest, unmet, weights, ids)


def by_level(quota, demands, weights, ids):
    """The level over rationals at which the demands below it and the level's parts sum to the quota."""
    wanted = capped(demands, quota)
    unmet, level = list(range(len(ids))), None
    for candidate in sorted({Fraction(demand, weight) for demand, weight in zip(wanted, weights, strict=True)}):
        used = sum(min(Fraction(demand), candidate * weight) for demand, weight in zip(wanted, weights, strict=True))
        if used > quota:
            break
        level = candidate
    unmet = [row for row in unmet if level is None or wanted[row] > level * weights[row]]
    targets = [0 if row in unmet else wanted[row] for row in range(len(ids))]
    return shared_rest(targets, wanted, quota - sum(targets), unmet, weights, ids)


def shared_rest(targets, wanted, rest, unmet, weights, ids):
    rows = unmet or range(len(ids))
    shares = share_out(rest, [weights[row] for row in rows], [ids[row] for row in rows])
    for row, share in zip(rows, shares, strict=True):
        targets[row] = share if unmet else wanted[row] + share
    return targets


@given(rates, crowds())
@example(100, ([25, 25, 25, 400], [1, 1, 1, 1], [0, 1, 2, 3]))
@example(100, ([50, 50], [1, 1], [0, 1]))
def test_passes_a_sort_and_a_search_for_the_level_agree(quota, crowd):
    targets = max_min(quota, *crowd)

    assert by_sorting(quota, *crowd) == targets
    assert by_level(quota, *crowd) == targets
