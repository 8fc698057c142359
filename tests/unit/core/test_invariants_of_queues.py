"""Invariants I9 to I13 of rate-limiters 14: publish limiters, their queues and the connections' trackers."""

from collections import Counter, deque

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.oracles.publish_limiters import PublishLimiters
from headgate.conformance.registry import RATE_LIMITERS
from headgate.core.publish.throttle_tracker import COUNTERS, ThrottleType
from unit.core.traces import (
    LIMITERS,
    SCOPES,
    SECOND,
    byte_limits,
    limits,
    perform,
    publish_configs,
    publish_op,
    publish_ops,
    quick,
    traces,
    tracker_traces,
    update_op,
)

thorough = settings(quick, max_examples=examples(40))
COUNTED = {"topic": ThrottleType.TOPIC_PUBLISH_RATE, "group": ThrottleType.RESOURCE_GROUP_PUBLISH_RATE}
queue_traces = traces(publish_configs(), *publish_ops)
whole_queue_traces = traces(publish_configs(quantum=False), *publish_ops)
last_change_traces = traces(publish_configs(quantum=False), *[publish_op] * 6, update_op)


def fresh(config):
    return RATE_LIMITERS["publish_limiter"].build(config)


def after(trace):
    config, ops = trace
    limiters = fresh(config)
    for operation in ops:
        perform("publish_limiter", limiters, operation)
    return limiters


def copy_of(limiters):
    return PublishLimiters.from_state(limiters.state())


def entries(limiters):
    """Queue entries by (connection, scope)."""
    return Counter((connection, SCOPES[name]) for name in LIMITERS for _, connection in limiters._limiters[name].queue)


@thorough
@given(queue_traces)
def test_i9_releases_are_in_the_order_of_the_queue_and_each_entry_is_released_once(trace):
    config, ops = trace
    limiters, waiting = fresh(config), {name: deque() for name in LIMITERS}
    for operation in ops:
        throttling = perform("publish_limiter", limiters, operation)
        released = throttling if operation["op"] == "releases" else limiters.releases(limiters.high_ns)
        for _, limiter, producer in released:
            assert waiting[limiter].popleft() == producer
        if operation["op"] == "publish":
            for limiter in throttling:
                waiting[limiter].append(operation["producer"])

        assert {name: list(queue) for name, queue in waiting.items()} == {
            name: limiters.queue(name, limiters.high_ns) for name in LIMITERS
        }


@thorough
@given(queue_traces)
def test_i9_a_drain_is_planned_after_now_if_and_only_if_somebody_waits(trace):
    config, ops = trace
    limiters = fresh(config)
    for operation in ops:
        perform("publish_limiter", limiters, operation)
        for name in LIMITERS:
            next_drain_ns = limiters.next_drain_ns(name, limiters.high_ns)

            assert (next_drain_ns is None) is (limiters.queue(name, limiters.high_ns) == [])
            assert next_drain_ns is None or next_drain_ns > limiters.high_ns


@thorough
@given(queue_traces)
def test_i10_counters_of_a_connection_equal_its_queue_entries(trace):
    config, ops = trace
    limiters = fresh(config)
    for operation in ops:
        perform("publish_limiter", limiters, operation)
        waiting = entries(limiters)
        for connection in ("c0", "c1"):
            marks = limiters.marks(connection, limiters.high_ns)
            for scope, kind in COUNTED.items():
                assert marks.get(kind, 0) == waiting[connection, scope]
            assert marks.get(ThrottleType.BROKER_PUBLISH_RATE, 0) <= waiting[connection, "broker"]


@thorough
@given(queue_traces)
def test_i11_an_active_connection_is_read_if_and_only_if_nothing_is_marked(trace):
    config, ops = trace
    limiters = fresh(config)
    for operation in ops:
        perform("publish_limiter", limiters, operation)
        for connection in ("c0", "c1"):
            marks = limiters.marks(connection, limiters.high_ns)

            assert limiters.auto_read(connection, limiters.high_ns) is (marks == {})


@thorough
@given(tracker_traces)
def test_i11_flags_are_0_or_1_and_no_count_is_negative(trace):
    config, ops = trace
    tracker = RATE_LIMITERS["throttle_tracker"].build(config)
    for operation in ops:
        perform("throttle_tracker", tracker, operation)
        counts = tracker.counts()

        assert all(count > 0 for count in counts.values())
        assert all(counts.get(kind, 0) <= 1 for kind in ThrottleType if kind not in COUNTERS)
        assert not tracker.active or tracker.auto_read is (counts == {})


@thorough
@given(last_change_traces)
def test_i12_every_queue_empties_after_the_last_publish_or_update(trace):
    config, ops = trace
    limiters, end_ns = after(trace), {}
    for name in LIMITERS:
        first = next(limiter for limiter in config["limiters"] if limiter["name"] == name)
        updates = [operation for operation in ops if operation["op"] == "update" and operation["limiter"] == name]
        rates = [rate for change in [first, *updates] for rate in (change["messages"], change["bytes"]) if rate > 0]
        pause_ns = copy_of(limiters).pause_ns(name, limiters.high_ns)
        slowest_token_ns = -(-SECOND // min(rates, default=SECOND))
        end_ns[name] = limiters.high_ns + pause_ns + 16_000_000 + slowest_token_ns + 3
    for name in LIMITERS:
        assert copy_of(limiters).queue(name, end_ns[name]) == []


@thorough
@given(queue_traces, st.sampled_from(LIMITERS), st.integers(0, SECOND))
def test_i13_an_update_with_unchanged_rates_is_unobservable(trace, name, ahead_ns):
    updated = after(trace)
    now_ns = updated.high_ns + ahead_ns
    updated.advance(now_ns)
    expected = updated.state()
    updated.update(name, *updated._limiters[name].rates, now_ns)

    assert expected == updated.state()


@thorough
@given(whole_queue_traces, st.sampled_from(LIMITERS), limits, byte_limits)
def test_i13_an_update_that_ends_the_pause_empties_the_queue(trace, name, messages, bytes_):
    limiters = after(trace)
    rates = limiters._limiters[name].rates
    limiters.update(name, messages, bytes_, limiters.high_ns)
    if rates != (messages, bytes_) and copy_of(limiters).pause_ns(name, limiters.high_ns) == 0:
        assert limiters.queue(name, limiters.high_ns) == []
