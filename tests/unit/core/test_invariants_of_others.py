"""Invariants I14 and I15 of rate-limiters 14: dispatch, subscribe, clocks, unloads."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.registry import RATE_LIMITERS
from headgate.core.unload_limiter import UnloadLimiter
from unit.core.traces import (
    SECOND,
    clock_traces,
    dispatch_configs,
    dispatch_levels,
    dispatch_traces,
    durations,
    op,
    perform,
    quick,
    run,
    subscribe_traces,
    traces,
    unload_configs,
    unload_traces,
    update_level_op,
    weighted,
    wishes,
)

thorough = settings(quick, max_examples=examples(40))
LEVELS = ("broker", "topic", "group")
reserve_traces = traces(
    dispatch_configs(reserve=True),
    *[op("reserve", **wishes)] * 4,
    op("available", level=dispatch_levels),
    update_level_op,
    op("advance"),
)
bursts = st.lists(weighted(st.just(0), st.integers(0, 3 * SECOND)), min_size=20, max_size=60)


def meters(limiter):
    return [meter for level in limiter._levels.values() for meter in level.meters if meter is not None]


def permits_left(meter):
    return meter.bucket.balance if hasattr(meter, "bucket") else meter.window.permits - meter.window.acquired


@thorough
@given(dispatch_traces)
def test_i14_available_permits_are_minus_1_or_not_negative(trace):
    config, ops = trace
    limiter = RATE_LIMITERS["dispatch_limiter"].build(config)
    for operation in ops:
        perform("dispatch_limiter", limiter, operation)
        for level in LEVELS:
            assert min(limiter.available(level, limiter.high_ns)) >= -1


@thorough
@given(reserve_traces)
def test_i14_a_reserve_never_overdraws(trace):
    config, ops = trace
    limiter = RATE_LIMITERS["dispatch_limiter"].build(config)
    for operation in ops:
        before = [permits_left(meter) for meter in meters(limiter)]
        granted = perform("dispatch_limiter", limiter, operation)
        if operation["op"] == "reserve" and granted is not None:
            left = [permits_left(meter) for meter in meters(limiter)]

            assert len(before) == len(left)
            assert min(left, default=0) >= 0


@thorough
@given(subscribe_traces)
def test_i14_no_subscribe_balance_is_negative(trace):
    config, ops = trace
    limiter = RATE_LIMITERS["subscribe_limiter"].build(config)
    for operation in ops:
        perform("subscribe_limiter", limiter, operation)

        assert all(bucket.balance >= 0 for bucket in limiter._buckets.values())


@thorough
@given(clock_traces)
def test_i14_clocks_never_step_back(trace):
    readings = run("clock", trace)

    assert sorted(readings) == readings


@thorough
@given(unload_traces)
def test_i15_unloads_start_in_order_and_never_overlap(trace):
    unloads = run("unload_limiter", trace)

    assert all(end_ns <= next_start_ns for (_, end_ns, _), (next_start_ns, _, _) in pairwise(unloads))
    assert all(start_ns <= end_ns for start_ns, end_ns, _ in unloads)


@thorough
@given(unload_configs, bursts, st.sampled_from([0, 1000, SECOND // 10]) | durations)
def test_i15_starts_in_any_window_are_bounded(config, steps_ns, duration_ns):
    limiter = RATE_LIMITERS["unload_limiter"].build(config)
    now_ns, starts = config["created_ns"], []
    for step_ns in steps_ns:
        now_ns += step_ns
        starts.append(limiter.unload(duration_ns, now_ns)[0])
    per_second = config["maxConcurrentUnload"]
    if per_second > 0:
        assert_windows_are_bounded(starts, per_second)


@thorough
@given(bursts, st.lists(st.sampled_from([1, 2, 7]), min_size=20, max_size=60), st.sampled_from([0, 1000]) | durations)
def test_i15_starts_in_any_window_are_bounded_by_the_largest_n_where_it_changes(steps_ns, rates, duration_ns):
    limiter = UnloadLimiter(rates[0], created_ns=0)
    now_ns, starts, last_ns = 0, [], 0
    for step_ns, per_second in zip(steps_ns, rates, strict=False):
        now_ns += step_ns
        limiter.update(per_second, 60_000, now_ns)
        start_ns, end_ns, _ = limiter.unload(duration_ns, now_ns)
        assert max(now_ns, last_ns) <= start_ns
        starts.append(start_ns)
        last_ns = end_ns
    assert_windows_are_bounded(starts, max(rates))


def assert_windows_are_bounded(starts, per_second):
    for first, start_ns in enumerate(starts):
        for count, end_ns in enumerate(starts[first:], start=1):
            window_s = Fraction(end_ns - start_ns, SECOND)

            assert count <= per_second * (window_s + 1) + 2
