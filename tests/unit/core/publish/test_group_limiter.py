"""A resource group's limiter: a rate of 0 blocks, and no change of a rate is a burst (resource-groups 1, 2)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.publish.group_limiter import BLOCKED, GroupLimiter

SECOND = 1_000_000_000
MS = 1_000_000


def limiter_of(messages, bytes_=0, **options):
    return GroupLimiter(messages, bytes_, created_ns=0, **options)


def balances(limiter):
    return [None if bucket is None else bucket.balance for bucket in limiter.buckets]


@pytest.mark.parametrize(
    ("rates", "causes"),
    [((0, 0), 0), ((BLOCKED, 0), 1), ((0, BLOCKED), 2), ((BLOCKED, BLOCKED), 3), ((5, BLOCKED), 3), ((6, BLOCKED), 2)],
)
def test_a_publish_is_throttled_for_what_is_blocked_and_what_is_used_up(rates, causes):
    limiter = limiter_of(*rates)

    assert causes == limiter.causes(5, 100, 0)
    assert (causes != 0) == limiter.charge(0, 0, 0)


def test_nothing_is_drawn_from_what_is_blocked():
    limiter = limiter_of(BLOCKED, 100)
    limiter.causes(5, 30, 0)

    assert [0, 70] == balances(limiter)


def test_a_blocked_limiter_releases_nobody_and_wakes_never():
    limiter = limiter_of(10, BLOCKED)
    limiter.enqueue("p", 0)

    assert (MAX, [], MAX) == (limiter.next_drain_ns, limiter.drain(100 * SECOND), limiter.next_drain_ns)


def test_rates_are_told_as_they_were_set():
    limiter = limiter_of(BLOCKED, 0)
    told = [limiter.rates]
    for rates in [(0, 5), (BLOCKED, BLOCKED), (7, BLOCKED)]:
        limiter.update(*rates, SECOND)
        told.append(limiter.rates)

    assert [(BLOCKED, 0), (0, 5), (BLOCKED, BLOCKED), (7, BLOCKED)] == told


@pytest.mark.parametrize(
    ("rates", "balance"),
    [
        ([(100, 10)], 100),  # a new bucket is full
        ([(0, 10), (100, 20)], 100),  # also one that follows no limit
        ([(BLOCKED, 10), (100, 20)], 0),  # but not one that was blocked from its start
        ([(BLOCKED, 10), (0, 20), (100, 30)], 100),
        ([(50, 10), (BLOCKED, 20), (100, 30)], 50),
        ([(50, 10), (BLOCKED, 20), (40, 30)], 50),  # what is above the capacity goes with the next refill
    ],
)
def test_what_a_rate_begins_with(rates, balance):
    (first, at_ms), *later = rates
    limiter = GroupLimiter(first, 0, created_ns=at_ms * MS)
    for rate, at_ms in later:
        limiter.update(rate, 0, at_ms * MS)

    assert [balance, None] == balances(limiter)


def test_debt_stays_while_blocked_and_is_paid_from_the_end_of_the_block_on():
    limiter = limiter_of(10)
    limiter.charge(30, 0, 0)
    limiter.enqueue("p", 0)
    limiter.update(BLOCKED, 0, SECOND)

    assert ([-10, None], MAX) == (balances(limiter), limiter.next_drain_ns)

    limiter.update(10, 0, 60 * SECOND)

    assert ([-10, None], 61 * SECOND + 100 * MS) == (balances(limiter), limiter.next_drain_ns)
    assert ["p"] == limiter.drain(61 * SECOND + 100 * MS)


def test_a_block_that_is_lifted_for_good_releases_everybody():
    limiter = limiter_of(BLOCKED)
    limiter.enqueue("p", 0)
    limiter.enqueue("q", 0)

    assert (["p", "q"], None) == (limiter.update(0, 0, SECOND), limiter.next_drain_ns)


def test_a_rate_that_is_said_again_changes_nothing():
    limiter = limiter_of(BLOCKED, 10)
    limiter.enqueue("p", 0)

    assert ([], [0, 10]) == (limiter.update(BLOCKED, 10, SECOND), balances(limiter))


def test_another_rate_neither_refills_nor_forgives():
    limiter = limiter_of(10)
    limiter.charge(30, 0, 0)
    limiter.update(1000, 0, SECOND)

    assert [-10, None] == balances(limiter)
