"""The water level of a quota is exact, and is the max-min fair split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.clusters.level import Wanted, water_level
from headgate.errors import InvalidArgument

demands = st.one_of(st.none(), st.integers(0, 1000))
topics = st.lists(st.builds(Wanted, demands, st.integers(1, 5)), max_size=12)


def admitted(wanted, level):
    """What comes at most, a second, with caps of this level."""
    return sum(level * weight if demand is None else min(demand, level * weight) for demand, weight in wanted)


@given(topics, st.integers(0, 5000))
def test_one_more_would_be_too_much_unless_all_fits(wanted, quota):
    level = water_level(wanted, quota)

    assert admitted(wanted, level) <= quota
    assert level == quota or admitted(wanted, level + 1) > quota


@given(topics, st.integers(0, 5000))
def test_it_is_max_min_fair_who_gets_less_than_he_wants_gets_as_much_by_weight_as_any_other(wanted, quota):
    level = water_level(wanted, quota)
    got = [level * one.weight if one.demand is None else min(one.demand, level * one.weight) for one in wanted]
    short = [
        (amount, one) for amount, one in zip(got, wanted, strict=True) if one.demand is None or amount < one.demand
    ]

    assert all(amount == level * one.weight for amount, one in short)
    assert all(amount <= level * one.weight for amount, one in zip(got, wanted, strict=True))


def test_a_quota_below_0_is_refused():
    with pytest.raises(InvalidArgument, match="quota: got -1, allowed is an integer from 0"):
        water_level([], -1)
