"""The subscribe limiter and the bundle-unload limiter, step by step (rate-limiters 8, 9)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.subscribe_limiter import SubscribeLimiter
from headgate.core.unload_limiter import UnloadLimiter
from headgate.errors import InvalidArgument

SECOND = 1_000_000_000
KEY = ("10.0.0.1", "consumer", 1)


def test_attempts_take_a_token_while_there_is_one():
    limiter = SubscribeLimiter(2, 30, created_ns=0)
    steps = [(0, True), (0, True), (0, False), (15 * SECOND - 1, False), (15 * SECOND, True), (15 * SECOND, False)]

    assert limiter.available(*KEY, 0) == -1
    assert [limiter.attempt(*KEY, now_ns) for now_ns, _ in steps] == [admitted for _, admitted in steps]
    assert limiter.attempt("10.0.0.2", "consumer", 1, 15 * SECOND)
    assert limiter.keys(15 * SECOND) == [KEY, ("10.0.0.2", "consumer", 1)]


@pytest.mark.parametrize(("rate", "period_s"), [(0, 30), (-1, 30), (2, 0), (2, -1)])
def test_a_disabled_limiter_lets_everything_in_and_keeps_nothing(rate, period_s):
    limiter = SubscribeLimiter(rate, period_s, created_ns=0)

    assert all(limiter.attempt(*KEY, 0) for _ in range(5))
    assert (limiter.keys(0), limiter.available(*KEY, 0)) == ([], -1)


@pytest.mark.parametrize(
    ("update", "available"), [((2, 30), 0), ((3, 30), 3), ((2, 10), 2), ((0, 30), -1), ((2, 0), -1)]
)
def test_an_update_fills_or_removes_buckets_unless_the_pair_is_equal(update, available):
    limiter = SubscribeLimiter(2, 30, created_ns=0)
    limiter.attempt(*KEY, 0)
    limiter.attempt(*KEY, 0)
    limiter.update(*update, 0)

    assert limiter.available(*KEY, 0) == available


def test_a_late_attempt_acts_at_the_highest_time_seen():
    limiter = SubscribeLimiter(1, 1, created_ns=0)
    limiter.advance(10 * SECOND)
    limiter.attempt(*KEY, 0)

    assert not limiter.attempt(*KEY, 5 * SECOND)


@pytest.mark.parametrize(
    "operation",
    [
        lambda limiter: limiter.attempt(5, "c", 1, 0),
        lambda limiter: limiter.attempt("h", None, 1, 0),
        lambda limiter: limiter.attempt("h", "c", "1", 0),
        lambda limiter: limiter.available("h", "c", MAX + 1, 0),
        lambda limiter: limiter.update(1.5, 1, 0),
        lambda limiter: limiter.update(1, None, 0),
        lambda limiter: limiter.attempt(*KEY, MAX + 1),
    ],
)
def test_a_refused_subscribe_operation_changes_nothing(operation):
    limiter = SubscribeLimiter(2, 30, created_ns=0)
    before = limiter.state()

    with pytest.raises(InvalidArgument):
        operation(limiter)
    assert limiter.state() == before


def test_starts_are_spaced_and_idle_time_is_credit_for_one_second():
    limiter = UnloadLimiter(2, created_ns=0)
    steps = [
        (0, 0),
        (0, SECOND // 2),
        (100 * SECOND, 100 * SECOND),
        (100 * SECOND, 100 * SECOND + 10),
        (100 * SECOND, 100 * SECOND + 20),
        (100 * SECOND, 100 * SECOND + SECOND // 2),
    ]
    for now_ns, start_ns in steps:
        assert limiter.unload(10, now_ns) == (start_ns, start_ns + 10, "done")


@pytest.mark.parametrize(
    ("duration_ns", "end_ns", "outcome"),
    [
        (0, 0, "done"),
        (5_000_000, 5_000_000, "done"),
        (5_000_001, 5_000_000, "timed_out"),
        (MAX, 5_000_000, "timed_out"),
    ],
)
def test_an_unload_is_awaited_no_longer_than_the_timeout(duration_ns, end_ns, outcome):
    assert UnloadLimiter(created_ns=0, timeout_ms=5).unload(duration_ns, 0) == (0, end_ns, outcome)


@pytest.mark.parametrize("starts_per_s", [0, -1])
def test_without_a_bound_unloads_follow_each_other(starts_per_s):
    limiter = UnloadLimiter(starts_per_s, created_ns=0)

    assert [limiter.unload(7, 0)[:2] for _ in range(3)] == [(0, 7), (7, 14), (14, 21)]
    assert limiter.unload(7, 100)[:2] == (100, 107)


def test_unloads_saturate_at_the_end_of_time():
    limiter = UnloadLimiter(MAX, created_ns=0, timeout_ms=MAX)

    assert limiter.unload(MAX, MAX - 5) == (MAX - 5, MAX, "done")
    assert limiter.unload(1, MAX) == (MAX, MAX, "done")
    assert limiter.credit <= MAX


def test_unload_arguments_out_of_range_are_refused():
    for changes in ({"timeout_ms": 0}, {"max_concurrent_unload": MAX + 1}, {"created_ns": 1.5}):
        with pytest.raises(InvalidArgument):
            UnloadLimiter(**{"created_ns": 0, **changes})
    with pytest.raises(InvalidArgument):
        UnloadLimiter(created_ns=0).unload(-1, 0)
