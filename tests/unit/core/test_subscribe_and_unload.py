"""The subscribe limiter and the bundle-unload limiter, step by step (rate-limiters 8, 9)."""

import pytest

from headgate.conformance.oracles.subscribe_limiter import SubscribeLimiter
from headgate.core.numbers import MAX
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


def after_idleness():
    """Four starts a second, and at 2 s one start after idleness: three permits of credit are left."""
    limiter = UnloadLimiter(4, created_ns=0)
    for now_ns in (0, 2 * SECOND):
        limiter.unload(0, now_ns)
    return limiter


@pytest.mark.parametrize(
    ("updates", "starts_s"),
    [
        pytest.param([4], [2, 2, 2, 2, 2.25], id="an equal one changes nothing"),
        pytest.param([8], [2, 2, 2, 2, 2.125], id="a larger one adds none"),
        pytest.param([1], [2, 2, 3, 4, 5], id="credit is cut to one second's permits"),
        pytest.param([1, 4], [2, 2, 2.25, 2.5, 2.75], id="what was cut does not come back"),
        pytest.param([0], [2, 2, 2, 2, 2], id="without a bound"),
        pytest.param([0, 4], [2, 2, 2, 2, 2.25], id="credit outlasts a time without a bound"),
    ],
)
def test_a_changed_number_of_starts_keeps_the_credit_up_to_its_cap(updates, starts_s):
    limiter = after_idleness()
    for starts_per_s in updates:
        limiter.update(starts_per_s, 60_000, 2 * SECOND)

    assert [limiter.unload(0, 2 * SECOND)[0] / SECOND for _ in starts_s] == starts_s


def test_a_changed_number_of_starts_keeps_the_instant_of_the_next_permit():
    limiter = UnloadLimiter(1, created_ns=0)
    limiter.unload(0, 0)
    limiter.update(10, 60_000, SECOND // 5)

    assert [limiter.unload(0, SECOND // 5)[0] for _ in range(2)] == [SECOND, SECOND + SECOND // 10]


def test_idle_time_that_is_not_credit_yet_counts_at_the_changed_number():
    limiter = UnloadLimiter(1, created_ns=0)
    limiter.update(3, 60_000, 100 * SECOND)

    starts_ns = [limiter.unload(0, 100 * SECOND)[0] - 100 * SECOND for _ in range(5)]
    assert starts_ns == [0, 0, 0, 0, SECOND // 3]


def test_a_changed_timeout_holds_for_the_next_unload_and_not_for_the_running_one():
    limiter = UnloadLimiter(created_ns=0, timeout_ms=10_000)
    limiter.unload(20 * SECOND, 0)
    limiter.update(0, 2_000, 0)

    assert limiter.unload(3 * SECOND, 0) == (10 * SECOND, 12 * SECOND, "timed_out")


def test_a_late_update_acts_at_the_highest_time_seen_and_moves_time():
    limiter = UnloadLimiter(created_ns=5)
    limiter.update(1, 1, 0)
    assert limiter.high_ns == 5
    limiter.update(1, 1, 7)
    assert limiter.unload(0, 0)[0] == 7


@pytest.mark.parametrize("arguments", [(MAX + 1, 1, 0), (None, 1, 0), (1, 0, 0), (1, 1.5, 0), (1, 1, MAX + 1)])
def test_a_refused_update_of_unloads_changes_nothing(arguments):
    limiter = UnloadLimiter(3, created_ns=0)
    before = limiter.state()

    with pytest.raises(InvalidArgument):
        limiter.update(*arguments)
    assert limiter.state() == before
