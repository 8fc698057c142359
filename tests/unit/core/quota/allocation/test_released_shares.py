"""Shares by usage: single precision as the released broker computes it, and the three texts of PIP-82."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.core.numbers import MAX
from headgate.core.quota.allocation import binary32
from headgate.core.quota.allocation.allocation import Profile, allocate, pulsar_limit
from headgate.core.quota.rates import RATE_MAX

rates = st.one_of(st.integers(0, 100), st.integers(0, 2**31), st.integers(0, RATE_MAX))
usages = st.lists(rates, min_size=1, max_size=8)


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


@given(st.floats(-(2.0**100), 2.0**100).filter(lambda value: value == 0 or abs(value) > 2.0**-100))
@example(16_777_217.0)
@example(16_777_219.0)
@example(-16_777_217.0)
def test_a_double_is_rounded_to_the_nearest_single_ties_to_even(value):
    assert single(value) == binary32.rounded(value)


@given(st.integers(-(2**53), 2**53))
@example(2**24 + 1)
@example(-(2**24) - 3)
def test_an_integer_that_a_double_holds_becomes_the_single_of_that_double(value):
    assert single(float(value)) == binary32.from_integer(value)


def test_an_integer_beyond_doubles_is_rounded_once():
    just_above_a_tie = 2**60 + 2**36 + 1

    assert 2.0**60 + 2.0**37 == binary32.from_integer(just_above_a_tie)
    assert 2.0**60 == single(float(just_above_a_tie))


@pytest.mark.parametrize(
    ("quota", "own", "usage", "limit"),
    [
        (None, 5, [5], None),
        (100, 0, [0, 0], 100),
        (100, 20, [40], 50),
        (100, 0, [50], 1),
        (0, 10, [10], 1),
        (100, 1, [1000], 1),
        (10**9, 333_333_333, [10**9], 333_333_344),
        (RATE_MAX, RATE_MAX, [1], MAX),
        (2**60, 1, [1], 2**53),
    ],
)
def test_the_released_quota_of_one_broker(quota, own, usage, limit):
    assert limit == pulsar_limit(quota, own, usage)


@given(rates, usages)
def test_the_released_profile_looks_at_each_broker_against_the_sum(quota, usage):
    assert [pulsar_limit(quota, own, usage) for own in usage] == allocate(Profile.PULSAR, quota, usage)


@pytest.mark.parametrize(
    ("profile", "quota", "usage", "limits"),
    [
        ("pip82_residual_equal", 100, [10, 50, 30], [20, 60, 40]),
        ("pip82_residual_equal", 100, [0, 0], [100, 100]),
        ("pip82_residual_equal", 90, [60, 60, 30], [36, 36, 18]),
        ("pip82_residual_equal", 0, [0, 0], [0, 0]),
        ("pip82_residual_proportional", 100, [10, 50, 30], [11, 56, 33]),
        ("pip82_residual_proportional", 100, [0, 0, 0], [34, 33, 33]),
        ("pip82_steal", 100, [80, 20], [80, 50]),
        ("pip82_steal", 100, [50, 5, 20, 10, 15], [50, 27, 20, 15, 15]),
        ("pip82_steal", 100, [90, 30, 10], [60, 30, 50]),
        ("pip82_steal", 10, [9, 9], [5, 5]),
        ("pip82_steal", 0, [9, 1], [0, 5]),
        ("pip82_steal", 30, [7], [30]),
        ("pip82_steal", 30, [], []),
    ],
)
def test_the_texts_of_pip_82(profile, quota, usage, limits):
    assert limits == allocate(profile, quota, usage)


def test_weights_count_where_nobody_used_anything():
    assert [25, 75] == allocate(Profile.PIP82_RESIDUAL_PROPORTIONAL, 100, [0, 0], [1, 3])


def test_equal_usage_is_ranked_by_id():
    assert [13, 14, 13] == allocate(Profile.PIP82_STEAL, 40, [5, 5, 5], ids=[9, 1, 4])


@given(rates, usages)
def test_proportional_limits_sum_to_the_quota(quota, usage):
    assert quota == sum(allocate(Profile.PIP82_RESIDUAL_PROPORTIONAL, quota, usage))


@given(rates, usages)
def test_where_halves_meet_in_the_mean_stealing_never_goes_below_zero(quota, usage):
    assert min(allocate(Profile.PIP82_STEAL, quota, usage)) >= 0


@given(st.sampled_from(Profile), usages)
def test_without_a_quota_every_limit_is_null_in_every_profile(profile, usage):
    assert [None] * len(usage) == allocate(profile, None, usage)
