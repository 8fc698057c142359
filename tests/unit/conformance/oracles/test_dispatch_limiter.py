"""The dispatch limiter, step by step (rate-limiters 6)."""

import pytest

from headgate.conformance.oracles.dispatch_limiter import DispatchLimiter
from headgate.core.numbers import MAX
from headgate.errors import InvalidArgument

SECOND = 1_000_000_000


def limiter_of(*levels, **options):
    limiter = DispatchLimiter(created_ns=0, **options)
    for level in levels:
        limiter.add_level(**{"messages": 0, "bytes_": 0, "now_ns": 0, **level})
    return limiter


def buckets(limiter, level):
    return [None if meter is None else meter.bucket for meter in limiter._levels[level].meters]


def test_refills_come_in_steps_of_more_than_a_period():
    limiter = limiter_of({"name": "topic", "messages": 100, "period_s": 2})
    limiter.dispatched(130, 5, 0)
    steps = [(0, (0, -1)), (2 * SECOND, (0, -1)), (2 * SECOND + 1, (70, -1)), (3 * SECOND, (70, -1))]

    assert [limiter.available("topic", now_ns) for now_ns, _ in steps] == [available for _, available in steps]


def test_a_level_without_permits_hides_the_levels_after_it():
    limiter = limiter_of({"name": "broker", "messages": 10}, {"name": "topic", "messages": 50})
    limiter.dispatched(20, 0, 0)

    assert not limiter.may_dispatch(SECOND // 2)
    limiter.update("broker", 0, 0, SECOND // 2)
    assert [bucket.last_ns for bucket in buckets(limiter, "topic") if bucket] == [0]
    assert limiter.may_dispatch(SECOND + 1)
    assert [bucket.last_ns for bucket in buckets(limiter, "topic") if bucket] == [SECOND + 1]


@pytest.mark.parametrize(
    ("wish", "limits"),
    [((100, 10_000), (10, 4_000)), ((7, 1), (7, 1)), ((0, 0), (1, 1)), ((-5, MAX), (1, 4_000))],
)
def test_read_limits_are_the_least_of_wish_and_permits_and_at_least_1(wish, limits):
    limiter = limiter_of({"name": "broker", "messages": 10}, {"name": "topic", "messages": 50, "bytes_": 4_000})

    assert limiter.read_limits(*wish, 0) == limits


def test_without_levels_a_read_gets_its_wish():
    limiter = limiter_of()

    assert limiter.may_dispatch(0)
    assert limiter.read_limits(7, 0, 0) == (7, 1)


def test_entries_count_in_place_of_messages_with_on_batch():
    by_entries, by_messages = (
        limiter_of({"name": "topic", "messages": 100}, on_batch=on_batch) for on_batch in (True, False)
    )
    for limiter in (by_entries, by_messages):
        limiter.dispatched(30, 0, 0, entries=4)
        limiter.dispatched(2, 0, 0)

    assert (by_entries.available("topic", 0), by_messages.available("topic", 0)) == ((94, -1), (68, -1))


def test_caught_up_reads_are_exempt_without_a_look_at_the_levels():
    limiter = limiter_of({"name": "topic", "messages": 10}, throttle_non_backlog=False)
    limiter.dispatched(50, 0, 0, caught_up=True)
    limiter.dispatched(50, 0, 0)
    before = limiter.state()

    assert limiter.may_dispatch(0, caught_up=True)
    assert limiter.read_limits(99, -1, 0, caught_up=True) == (99, 1)
    limiter.dispatched(50, 0, 0, caught_up=True)
    assert limiter.state() == before
    assert not limiter.may_dispatch(0)


@pytest.mark.parametrize(
    ("average", "effective"),
    [
        (42.9, 52),
        (42, 52),
        (-1.0, 10),
        (-3, 10),
        (float("nan"), 10),
        (float("inf"), 10),
        (float("-inf"), 10),
        (0.99, 10),
        (1e300, MAX),
        (MAX, MAX),
    ],
)
def test_a_relative_rate_adds_the_truncated_average(average, effective):
    limiter = limiter_of({"name": "topic", "messages": 10, "relative": True})
    limiter.publish_rate("topic", average, average, 0)

    assert limiter.effective("topic", 0) == (effective, 0)
    assert buckets(limiter, "topic")[0].rate == effective


def test_averages_are_remembered_while_a_level_is_not_relative():
    limiter = limiter_of({"name": "topic", "messages": 10})
    limiter.publish_rate("topic", 7, 7, 0)
    before = limiter.effective("topic", 0)
    limiter.update("topic", 10, 5, 0, relative=True)

    assert (before, limiter.effective("topic", 0)) == ((10, 0), (17, 12))
    assert limiter.available("topic", 0) == (17, 12)


@pytest.mark.parametrize(
    ("update", "available"),
    [
        ({"messages": 10, "bytes_": 500}, (4, 300)),
        ({"messages": 10, "bytes_": 400}, (4, 400)),
        ({"messages": 20, "bytes_": 500}, (20, 300)),
        ({"messages": 10, "bytes_": 500, "period_s": 2}, (10, 500)),
        ({"messages": 10, "bytes_": 500, "period_s": 0}, (4, 300)),
        ({"messages": 10, "bytes_": 500, "relative": True}, (10, 500)),
        ({"messages": 0, "bytes_": -5}, (-1, -1)),
    ],
)
def test_an_update_replaces_the_buckets_whose_rate_period_or_relation_changed(update, available):
    limiter = limiter_of({"name": "topic", "messages": 10, "bytes_": 500})
    limiter.dispatched(6, 200, 0)
    limiter.update("topic", now_ns=0, **update)

    assert limiter.available("topic", 0) == available


def test_the_debt_bound_is_fixed_when_the_bucket_is_created():
    limiter = limiter_of({"name": "topic", "messages": 100, "period_s": 2, "relative": True}, max_debt_ms=500)
    limiter.publish_rate("topic", 900, 0, 0)

    assert (buckets(limiter, "topic")[0].rate, buckets(limiter, "topic")[0].max_debt) == (1000, 25)


def test_reserve_charges_the_grant_and_settle_corrects_it():
    limiter = limiter_of({"name": "topic", "messages": 100, "bytes_": 1000}, reserve=True)

    assert limiter.reserve(60, 400, 0) == (60, 400)
    assert limiter.reserve(60, 400, 0) == (40, 400)
    assert limiter.reserve(1, 1, 0) is None
    limiter.settle((40, 400), 10, 500, 0)
    assert limiter.available("topic", 0) == (30, 100)
    limiter.settle([60, 400], 60, 400, 0)
    assert limiter.available("topic", 0) == (30, 100)


def test_settle_counts_entries_with_on_batch():
    limiter = limiter_of({"name": "topic", "messages": 100}, reserve=True, on_batch=True)
    granted = limiter.reserve(50, 1, 0)
    limiter.settle(granted, 500, 1, 0, entries=20)

    assert limiter.available("topic", 0) == (80, -1)


@pytest.mark.parametrize(
    ("messages", "bytes_", "acquired", "left"),
    [
        (9, 99, True, (1, 1)),
        (10, 0, False, (0, 100)),
        (0, 100, False, (10, 0)),
        (0, -3, True, (10, 100)),
        (30, 30, False, (0, 70)),
    ],
)
def test_the_group_acquires_while_every_charged_bucket_contains_tokens(messages, bytes_, acquired, left):
    limiter = limiter_of({"name": "group", "messages": 10, "bytes_": 100})

    assert limiter.try_acquire("group", messages, bytes_, 0) is acquired
    assert limiter.available("group", 0) == left


def test_a_classic_level_keeps_its_debt_over_rate_changes_and_loses_it_when_unlimited():
    limiter = limiter_of({"name": "topic", "messages": 20, "implementation": "classic"})
    limiter.dispatched(55, 0, SECOND)

    assert limiter.available("topic", 2 * SECOND) == (0, -1)
    assert limiter.available("topic", 3 * SECOND) == (5, -1)
    limiter.update("topic", 40, 0, 3 * SECOND)
    assert limiter.available("topic", 3 * SECOND) == (25, -1)
    limiter.update("topic", 0, 0, 3 * SECOND)
    limiter.update("topic", 40, 0, 3 * SECOND)
    assert limiter.available("topic", 3 * SECOND) == (40, -1)


def test_a_classic_relative_level_follows_the_publish_rate_at_its_renewals():
    limiter = limiter_of({"name": "topic", "messages": 20, "implementation": "classic", "relative": True})
    limiter.dispatched(1, 0, 0)
    limiter.publish_rate("topic", 30, 0, 0)

    assert limiter.effective("topic", 0) == (50, 0)
    assert limiter.available("topic", 0) == (19, -1)
    assert limiter.available("topic", SECOND) == (50, -1)


def test_a_refund_gives_acquired_permits_back_to_a_classic_level():
    limiter = limiter_of({"name": "topic", "messages": 20, "implementation": "classic"}, reserve=True)
    granted = limiter.reserve(15, 1, 0)
    limiter.settle(granted, 5, 0, 0)

    assert limiter.available("topic", 0) == (15, -1)


@pytest.mark.parametrize(
    "level",
    [
        {"name": "group", "period_s": 2},
        {"name": "group", "relative": True},
        {"name": "group", "implementation": "classic"},
        {"name": "topic", "implementation": "classic", "period_s": 0},
        {"name": "topic", "implementation": "window"},
        {"name": "topic", "messages": MAX + 1},
        {"name": "topic", "period_s": None},
        {"name": "topic", "relative": 1},
        {"name": 5},
        {"name": "broker"},
    ],
)
def test_levels_that_are_out_of_range_are_refused(level):
    with pytest.raises(InvalidArgument):
        limiter_of({"name": "broker"}, level)


def test_negative_periods_count_as_one_second_on_token_buckets():
    limiter = limiter_of({"name": "topic", "messages": 10, "period_s": -7}, {"name": "group", "period_s": 0})

    assert buckets(limiter, "topic")[0].period_ns == SECOND


@pytest.mark.parametrize(
    "operation",
    [
        lambda limiter: limiter.available("x", 0),
        lambda limiter: limiter.effective("x", 0),
        lambda limiter: limiter.try_acquire("topic", 1, 1, 0),
        lambda limiter: limiter.try_acquire("group", None, 1, 0),
        lambda limiter: limiter.update("group", 5, 5, 0, period_s=2),
        lambda limiter: limiter.update("group", 5, 5, 0, relative=True),
        lambda limiter: limiter.update("topic", 5, MAX + 1, 0),
        lambda limiter: limiter.publish_rate("topic", "7", 0, 0),
        lambda limiter: limiter.publish_rate("topic", 5, MAX + 1, 0),
        lambda limiter: limiter.publish_rate("topic", True, 1, 0),
        lambda limiter: limiter.dispatched(1, None, 0),
        lambda limiter: limiter.dispatched(1, 1, 0, entries=1.5),
        lambda limiter: limiter.dispatched(1, 1, 0, caught_up=1),
        lambda limiter: limiter.read_limits(1.5, 1, 0),
        lambda limiter: limiter.settle([1, 1], -1, 0, 0),
        lambda limiter: limiter.settle([1, 1], 1, -1, 0),
        lambda limiter: limiter.settle([1, 1], 1, 1, 0, entries=-1),
        lambda limiter: limiter.settle([-1, 1], 1, 1, 0),
        lambda limiter: limiter.settle([1], 1, 1, 0),
        lambda limiter: limiter.settle(None, 1, 1, 0),
    ],
)
def test_a_refused_operation_changes_nothing(operation):
    limiter = limiter_of({"name": "topic", "messages": 9}, {"name": "group", "messages": 9}, reserve=True)
    before = limiter.state()

    with pytest.raises(InvalidArgument):
        operation(limiter)
    assert limiter.state() == before


def test_reserve_and_settle_need_the_option():
    limiter = limiter_of({"name": "topic", "messages": 9})

    for operation in (lambda: limiter.reserve(1, 1, 0), lambda: limiter.settle([1, 1], 1, 1, 0)):
        with pytest.raises(InvalidArgument, match="reserve then settle is off"):
            operation()
