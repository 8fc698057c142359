"""A resource group's dispatch level: a rate of 0 blocks, and no change of a rate is a burst (resource-groups 1, 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.dispatch.group_dispatch_level import GroupDispatchLevel
from headgate.core.numbers import MAX
from headgate.core.publish.group_limiter import BLOCKED

SECOND = 1_000_000_000


def balances(level):
    return [None if meter is None else meter.bucket.balance for meter in level.meters]


@pytest.mark.parametrize(
    ("rates", "charged", "missing"),
    [
        ((0, 0), (9, 9), 0),
        ((10, 0), (9, 9), 0),
        ((10, 0), (10, 0), 1),
        ((10, 100), (9, 100), 2),
        ((10, 100), (10, 500), 3),
        ((BLOCKED, 100), (0, 100), 1),
        ((10, BLOCKED), (10, 0), 2),
        ((BLOCKED, BLOCKED), (0, 0), 3),
    ],
)
def test_a_read_lacks_what_is_used_up_and_of_a_blocked_level_what_is_blocked(rates, charged, missing):
    level = GroupDispatchLevel(*rates, created_ns=0)
    level.charge(charged, 0)

    assert missing == level.missing(0)


def test_a_charge_tells_what_is_left_without_permits():
    level = GroupDispatchLevel(10, 100, created_ns=0)

    assert [0, 1, 3] == [level.charge(amounts, 0) for amounts in [(9, 99), (1, 0), (0, 1)]]


def test_a_blocked_dimension_is_not_drawn_and_a_blocked_level_not_read():
    level = GroupDispatchLevel(BLOCKED, 100, created_ns=0)
    level.charge((5, 30), 0)
    level.missing(10 * SECOND)

    assert [0, 70] == balances(level)
    assert MAX == level.ready_ns()


def test_a_changed_rate_keeps_balance_and_debt():
    level = GroupDispatchLevel(10, 100, created_ns=0, max_debt_ms=2000)
    level.charge((50, 30), 0)
    level.update(1000, 5, SECOND // 2)

    assert [-20, 70] == balances(level)
    level.charge((MAX, MAX), SECOND // 2)
    assert [-2000, -10] == balances(level)


@pytest.mark.parametrize(
    ("rates", "balance"),
    [
        ([10, BLOCKED, 20], 4),  # what it had before the block
        ([BLOCKED, 20], 0),
        ([0, 20], 20),
        ([10, 0, 20], 20),
    ],
)
def test_a_block_hands_out_no_burst_and_what_was_not_limited_is_full(rates, balance):
    level = GroupDispatchLevel(rates[0], 0, created_ns=0)
    level.charge((6, 0), 0)
    for rate in rates[1:]:
        level.update(rate, 0, 5 * SECOND if rate == 20 else 0)

    assert [balance, None] == balances(level)


@given(st.integers(1, 10**10), st.integers(0, 10**9), st.integers(0, 3 * SECOND))
def test_a_level_is_ready_at_the_first_instant_at_which_a_read_would_start(rate, amount, at_ns):
    level = GroupDispatchLevel(rate, 0, created_ns=0)
    level.charge((amount, 0), at_ns)
    ready_ns = level.ready_ns()

    if ready_ns:
        assert 0 != copied(level, rate).missing(ready_ns - 1)
    assert 0 == copied(level, rate).missing(ready_ns)


def copied(level, rate):
    other = GroupDispatchLevel(rate, 0, created_ns=0)
    for name in ("balance", "last_ns", "remainder_ns"):
        setattr(other.meters[0].bucket, name, getattr(level.meters[0].bucket, name))
    return other
