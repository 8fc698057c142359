"""The array form of the token bucket does what the readable form does, on any trace and at the edges of 64 bits."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.core.kernels import token_bucket as kernels
from headgate.core.numbers import MAX, MIN
from headgate.core.token_bucket import TokenBucket

SECOND_NS = 1_000_000_000


def up_to(high, low=0):
    """Integers from `low` to `high`: small ones, any magnitude, the bounds."""
    magnitudes = st.integers(0, 63).flatmap(lambda bits: st.integers(0, 2**bits))
    return st.one_of(st.sampled_from([low, low + 1, high]), magnitudes).map(lambda value: min(max(value, low), high))


any_instant = st.one_of(st.sampled_from([MIN, MAX]), st.integers(-(2**40), 2**40), st.integers(MIN, MAX))
usual_rates = st.sampled_from([1, 3, 7, 62, 63, 1000, 4096, 333_333, 100_000_000, SECOND_NS, 7 * SECOND_NS])


@st.composite
def fixed_buckets(draw):
    usual = draw(st.booleans())
    return {
        "rate": draw(usual_rates if usual else up_to(MAX, 1)),
        "period_ns": SECOND_NS if usual else draw(up_to(MAX, 1)),
        "capacity": draw(st.none() | up_to(MAX, 1)),
        "initial": draw(st.none() | up_to(MAX)),
        "resolution_ns": draw(st.sampled_from([0, 16_000_000, MAX])),
        "max_debt": draw(st.none() | up_to(MAX)),
        "created_ns": draw(st.just(0) if usual else any_instant),
    }


@st.composite
def dynamic_buckets(draw):
    return {"rate": draw(usual_rates), "dynamic": True, "created_ns": draw(any_instant)}


steps_ns = st.one_of(st.integers(-(10**8), 10**8), st.sampled_from([0, 1, 16_000_000, 16_000_001, SECOND_NS, 2**61]))
operations = st.lists(
    st.tuples(
        st.sampled_from(["take", "consume", "consume_check", "balance", "contains", "pause", "refund", "set_rate"]),
        st.one_of(steps_ns, st.none()),
        any_instant,
        up_to(MAX),
    ),
    max_size=40,
)


def perform(readable, array, op, now_ns, n):
    """The results of one operation on both forms."""
    match op:
        case "take":
            return readable.take(n, now_ns), kernels.take(array, 0, n, now_ns)
        case "consume":
            return readable.consume(n), kernels.consume(array, 0, n)
        case "consume_check":
            return readable.consume_check(n, now_ns), kernels.consume_check(array, 0, n, now_ns)
        case "balance":
            return readable.balance_at(now_ns), kernels.balance_at(array, 0, now_ns)
        case "contains":
            return readable.contains(now_ns), kernels.contains(array, 0, now_ns)
        case "pause":
            return readable.pause_ns(now_ns, n), kernels.pause_ns(array, 0, now_ns, n)
        case "refund":
            return readable.refund(n), kernels.refund(array, 0, n)
        case "set_rate" if readable.dynamic:
            rate, period_ns = n % 10_000 + 1, max(1, n)
            return readable.set_rate(rate, now_ns, period_ns), kernels.set_rate(array, 0, rate, period_ns)
    return None, None


@given(fixed_buckets() | dynamic_buckets(), operations)
def test_each_operation_has_the_result_and_the_state_of_the_readable_form(parameters, trace):
    readable = TokenBucket(**parameters)
    array = kernels.pack([readable])
    now_ns = readable.last_ns
    for op, step_ns, instant_ns, n in trace:
        now_ns = instant_ns if step_ns is None else min(max(now_ns + step_ns, MIN), MAX)
        expected, got = perform(readable, array, op, now_ns, n)
        assert (op, expected) == (op, got)
        assert readable.state() == kernels.unpack(array, 0).state()
        assert readable.refill_due_ns() == kernels.refill_due_ns(array, 0)
        assert readable.target == kernels.target(array, 0)


events = st.lists(st.tuples(st.integers(0, 4), st.integers(-(10**6), 10**8), up_to(MAX)), max_size=30)


@given(st.lists(fixed_buckets() | dynamic_buckets(), min_size=5, max_size=5), events)
def test_a_batch_over_many_buckets_is_its_events_in_order(parameters, trace):
    readable = [TokenBucket(**each) for each in parameters]
    array = kernels.pack(readable)
    index, elapsed_ns, costs = (np.array([event[k] for event in trace], np.int64) for k in range(3))
    now_ns = np.cumsum(elapsed_ns)
    results = np.zeros(len(trace), np.bool_)
    kernels.consume_check_many(array, index, costs, now_ns, results)
    expected = [
        readable[i].consume_check(n, at_ns)
        for i, n, at_ns in zip(index.tolist(), costs.tolist(), now_ns.tolist(), strict=True)
    ]
    assert expected == results.tolist()
    assert [each.state() for each in readable] == [kernels.unpack(array, i).state() for i in range(5)]


@st.composite
def long_runs(draw):
    """A few hundred events that are alike for stretches, so that whole blocks of a batch are, and others are not."""
    stretch = st.tuples(st.integers(1, 200), st.sampled_from([0, 1, 1000, 300_000, 17_000_000, -500]), up_to(MAX))
    small = st.tuples(st.integers(1, 200), st.sampled_from([0, 1, 1000, 300_000, -500]), st.integers(0, 100))
    trace = draw(st.lists(st.one_of(small, stretch), min_size=1, max_size=4))
    elapsed_ns = np.repeat([step for _, step, _ in trace], [count for count, _, _ in trace])
    costs = np.repeat(np.array([n for _, _, n in trace], np.int64), [count for count, _, _ in trace])
    return np.cumsum(elapsed_ns), costs


def alike(count, n, at_ns=0):
    """`count` events of the same cost at the same instant."""
    return np.full(count, at_ns), np.full(count, n)


BLOCK = 256
DEBT = {"rate": 1000, "initial": 0, "max_debt": BLOCK, "created_ns": 0}
SURPLUS = {"rate": 1000, "capacity": 10, "initial": 500, "max_debt": 0, "created_ns": 0}
SPACED = np.arange(2 * BLOCK) * 17_000_000, np.ones(2 * BLOCK, np.int64)


@given(fixed_buckets() | dynamic_buckets(), long_runs())
@example({"rate": 1000, "initial": BLOCK, "created_ns": 0}, alike(2 * BLOCK, 1))  # the last token with a block's end
@example({"rate": 1000, "initial": BLOCK + 1, "created_ns": 0}, alike(2 * BLOCK, 1))
@example(DEBT, alike(2 * BLOCK, 1))  # the last token of the debt bound with a block's end
@example(DEBT, alike(BLOCK + 1, 1, at_ns=16_000_001))
@example(DEBT, alike(2 * BLOCK, 20, at_ns=16_000_001))
@example({"rate": MAX, "created_ns": 0}, alike(2 * BLOCK, 2**50 - 1))  # the largest costs that a block adds unlooked
@example({"rate": MAX, "created_ns": 0}, alike(BLOCK + 1, MAX))
@example({"rate": 1000, "capacity": 10, "initial": 500, "created_ns": 0}, SPACED)  # a surplus, cut by a refill
@example(SURPLUS, alike(BLOCK, 1, at_ns=17_000_000))  # cut, then spent down to the debt bound
@example({"rate": 1000, "created_ns": -1}, SPACED)
@example({"rate": 3, "resolution_ns": 0, "created_ns": 0}, SPACED)
@example({"rate": 62, "created_ns": 0}, SPACED)
@example({"rate": 10, "initial": 0, "created_ns": 0}, SPACED)  # slow: not every event refills
@example({"rate": 1000, "created_ns": 2**62 - 10**9}, (SPACED[0] + 2**62 - 10**9, SPACED[1]))  # past the latest tame
def test_a_batch_on_one_bucket_is_its_events_in_order(parameters, run):
    now_ns, costs = run
    readable = TokenBucket(**parameters)
    array = kernels.pack([readable])
    results = np.zeros(costs.size, np.bool_)
    kernels.consume_check_one(array, 0, costs, now_ns, results)
    expected = [readable.consume_check(n, at_ns) for n, at_ns in zip(costs.tolist(), now_ns.tolist(), strict=True)]
    assert expected == results.tolist()
    assert readable.state() == kernels.unpack(array, 0).state()


@pytest.mark.parametrize("max_debt", [None, 0, 50, MAX])
@pytest.mark.parametrize("dynamic", [False, True])
def test_packing_keeps_parameters_and_state(max_debt, dynamic):
    bucket = TokenBucket(rate=3, created_ns=-5, max_debt=max_debt, dynamic=dynamic)
    bucket.take(7, 400_000_000)
    assert bucket.state() == kernels.unpack(kernels.pack([bucket, bucket]), 1).state()


def test_a_column_of_an_array_is_a_view():
    array = kernels.pack([TokenBucket(rate=10, created_ns=0), TokenBucket(rate=20, created_ns=0)])
    array["balance"] -= 5
    assert [kernels.balance_at(array, i, 0) for i in range(2)] == [5, 15]


def test_an_empty_batch_has_no_effect():
    array = kernels.pack([TokenBucket(rate=10, created_ns=0)])
    none = np.zeros(0, np.int64)
    kernels.consume_check_one(array, 0, none, none, np.zeros(0, np.bool_))
    kernels.consume_check_many(array, none, none, none, np.zeros(0, np.bool_))
    assert TokenBucket(rate=10, created_ns=0).state() == kernels.unpack(array, 0).state()
