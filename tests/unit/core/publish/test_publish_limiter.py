"""One publish limiter, step by step (rate-limiters 4)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.publish.publish_limiter import PublishLimiter
from headgate.errors import InvalidArgument, StateError

SECOND = 1_000_000_000
MS = 1_000_000


def limiter_of(messages_per_s=10, bytes_per_s=100, **options):
    return PublishLimiter("topic", messages_per_s, bytes_per_s, created_ns=0, **options)


def balances(limiter):
    return [None if bucket is None else bucket.balance for bucket in limiter.buckets]


@pytest.mark.parametrize(
    ("messages", "bytes_", "throttled", "left"),
    [
        (9, 99, False, [1, 1]),
        (10, 5, True, [0, 95]),
        (1, 100, True, [9, 0]),
        (11, 101, True, [-1, -1]),
        (0, 0, False, [10, 100]),
    ],
)
def test_both_dimensions_are_charged_and_either_throttles(messages, bytes_, throttled, left):
    limiter = limiter_of()

    assert limiter.charge(messages, bytes_, 0) is throttled
    assert balances(limiter) == left
    assert limiter.throttled_publishes == int(throttled)
    assert list(limiter.queue) == []


def test_without_rates_nothing_throttles_and_nothing_pauses():
    limiter = limiter_of(0, -5)

    assert limiter.buckets == (None, None)
    assert not limiter.charge(10**12, 10**12, 0)
    assert (limiter.pause_ns(0), limiter.wake_time_ns(7)) == (0, 7)


def test_the_first_in_the_queue_plans_the_drain_and_growing_debt_does_not_move_it():
    limiter = limiter_of(10, 0)
    limiter.charge(20, 0, 0)
    limiter.enqueue("p", 0)
    planned_ns = limiter.next_drain_ns
    limiter.charge(50, 0, 1)
    limiter.enqueue("q", 1)

    assert (planned_ns, limiter.next_drain_ns) == (1_100 * MS, 1_100 * MS)
    assert limiter.drain(1_100 * MS) == []
    assert limiter.next_drain_ns == 6_100 * MS
    assert limiter.drain(6_100 * MS) == ["p", "q"]
    assert limiter.next_drain_ns is None


def test_the_wake_time_waits_for_the_next_refill():
    limiter = limiter_of(100_000, 0)
    limiter.charge(99_001, 0, 0)

    assert limiter.pause_ns(0) == 10_000
    assert limiter.wake_time_ns(0) == 16 * MS + 1


def test_a_quantum_releases_in_portions_sixteen_milliseconds_apart():
    limiter = limiter_of(10, 0, release_quantum=2)
    limiter.queue.extend("abc")

    assert limiter.drain(5) == ["a", "b"]
    assert limiter.next_drain_ns == 16 * MS + 5
    assert limiter.drain(16 * MS + 5) == ["c"]
    assert limiter.next_drain_ns is None


def test_a_drain_that_would_be_after_the_end_of_time_is_never():
    limiter = PublishLimiter("topic", 1, 0, created_ns=MAX - 1)
    limiter.charge(100, 0, MAX - 1)
    limiter.enqueue("p", MAX - 1)

    assert limiter.next_drain_ns == MAX


@pytest.mark.parametrize(
    ("on_rate_change", "rates", "left", "released"),
    [
        ("replace", (10, 100), [-10, 100], []),
        ("replace", (20, 100), [20, 100], ["p"]),
        ("replace", (20, 0), [20, None], ["p"]),
        ("replace", (0, -1), [None, None], ["p"]),
        ("replace", (10, 50), [-10, 50], []),
        ("reprice", (20, 100), [-10, 100], []),
        ("reprice", (0, 100), [None, 100], ["p"]),
    ],
)
def test_an_update_changes_the_dimensions_whose_rate_changed_and_drains(on_rate_change, rates, left, released):
    limiter = limiter_of(on_rate_change=on_rate_change)
    limiter.charge(20, 0, 0)
    limiter.enqueue("p", 0)

    assert limiter.update(*rates, 0) == released
    assert balances(limiter) == left


def test_an_update_with_the_same_rates_does_not_drain():
    limiter = limiter_of()
    limiter.charge(11, 0, 0)
    limiter.enqueue("p", 0)

    assert limiter.update(10, 100, 10 * SECOND) == []
    assert balances(limiter) == [-1, 100]
    assert list(limiter.queue) == ["p"]


def test_reprice_makes_a_full_bucket_where_there_was_none():
    limiter = limiter_of(0, 0, on_rate_change="reprice")
    limiter.update(7, 0, SECOND)

    assert balances(limiter) == [7, None]
    assert limiter.buckets[0].last_ns == SECOND


def test_the_debt_bound_is_milliseconds_of_tokens_at_the_rate_of_each_bucket():
    limiter = limiter_of(100, 5000, max_debt_ms=500, on_rate_change="reprice")
    limiter.charge(10**6, 10**6, 0)

    assert balances(limiter) == [-50, -2500]
    limiter.update(10, 5000, 0)
    assert limiter.buckets[0].max_debt == 5
    assert limiter_of(MAX, 0, max_debt_ms=MAX).buckets[0].max_debt == MAX


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "subscription"},
        {"scope": None},
        {"messages_per_s": MAX + 1},
        {"bytes_per_s": None},
        {"created_ns": 0.0},
        {"max_debt_ms": -1},
        {"release_quantum": 0},
        {"on_rate_change": "keep"},
    ],
)
def test_construction_refuses_what_is_out_of_range(options):
    defaults = {"scope": "group", "messages_per_s": 1, "bytes_per_s": 1, "created_ns": 0}
    with pytest.raises(InvalidArgument):
        PublishLimiter(**{**defaults, **options})


@pytest.mark.parametrize(
    "operation",
    [
        lambda limiter: limiter.charge(-1, 5, 0),
        lambda limiter: limiter.charge(5, -1, 0),
        lambda limiter: limiter.charge(5, 5, MAX + 1),
        lambda limiter: limiter.update(20, MAX + 1, 0),
        lambda limiter: limiter.update(20, 5, MAX + 1),
    ],
)
def test_a_refused_operation_changes_nothing(operation):
    limiter = limiter_of()
    before = limiter.state()

    with pytest.raises(InvalidArgument):
        operation(limiter)
    assert limiter.state() == before


def test_state_holds_the_queue_and_the_planned_drain():
    limiter = limiter_of(10, 0, release_quantum=3)
    limiter.charge(20, 0, 0)
    limiter.enqueue(["p", 7], 0)
    rebuilt = PublishLimiter.from_state(limiter.state())

    assert rebuilt.state() == limiter.state()
    assert rebuilt.drain(1_100 * MS) == [["p", 7]]
    assert list(limiter.queue) == [["p", 7]]
    with pytest.raises(StateError):
        PublishLimiter.from_state({"queue": []})
