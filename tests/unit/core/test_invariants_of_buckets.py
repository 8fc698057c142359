"""Invariants I3 to I8 of rate-limiters 14: one bucket with a fixed rate."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.token_bucket import TokenBucket
from unit.core.traces import CREATED, amounts, bucket_configs, bucket_ops, op, perform, quick, traces

thorough = settings(quick, max_examples=examples(40))
fixed = bucket_configs(bounded=False, dynamic=False)
moving_ops = (*bucket_ops, op("refund", n=amounts))
unbounded_traces = traces(fixed, *moving_ops)


class WatchedBucket(TokenBucket):
    """A bucket that remembers what each refill earned."""

    def refill(self, now_ns):
        new = super().refill(now_ns)
        self.__dict__.setdefault("earned", []).append(new)
        return new

    @property
    def refills(self):
        return [new for new in self.__dict__.get("earned", []) if new > 0]


def copy_of(bucket):
    return TokenBucket.from_state(bucket.state())


def after(trace):
    config, ops = trace
    bucket = WatchedBucket(**config)
    for operation in ops:
        perform("token_bucket", bucket, operation)
    return bucket


def earning_bounds(bucket):
    """The bounds of I5 on the tokens earned, as exact fractions."""
    elapsed_ns = bucket.last_ns - CREATED
    least = Fraction(bucket.rate * (elapsed_ns - bucket.remainder_ns), bucket.period_ns)
    most = Fraction(bucket.rate * (elapsed_ns + len(bucket.refills)), bucket.period_ns)
    return least, most


@thorough
@given(traces(bucket_configs(), *moving_ops), st.integers(0, 10**10), st.integers(0, 10**10))
def test_i3_reads_at_one_instant_are_equal_and_reads_in_the_past_change_nothing(trace, ahead_ns, back_ns):
    bucket = after(trace)
    now_ns = bucket.last_ns + ahead_ns
    first = bucket.balance_at(now_ns)
    read = bucket.state()

    assert first == bucket.balance_at(now_ns)
    bucket.balance_at(bucket.last_ns - back_ns)
    assert read == bucket.state()


@thorough
@given(unbounded_traces)
def test_i4_tokens_are_conserved(trace):
    config, ops = trace
    bucket = WatchedBucket(**config)
    initial, consumed, refunded, cut = bucket.balance, 0, 0, 0
    for operation in ops:
        before, refills = bucket.balance, len(bucket.refills)
        perform("token_bucket", bucket, operation)
        new = bucket.refills[-1] if len(bucket.refills) > refills else 0
        surplus = max(0, before + new - bucket.capacity) if new else 0
        cut += surplus
        if operation["op"] in {"consume", "consume_check"}:
            consumed += operation["n"]
        if operation["op"] == "refund":
            refunded += min(operation["n"], max(0, bucket.capacity - before))

    assert initial + sum(bucket.refills) - consumed + refunded - cut == bucket.balance


@thorough
@given(unbounded_traces)
def test_i5_earned_tokens_are_rate_times_time_but_for_one_nanosecond_a_refill(trace):
    bucket = after(trace)
    least, most = earning_bounds(bucket)

    assert least <= sum(bucket.refills) <= most
    if bucket.period_ns % bucket.rate == 0:
        assert least == sum(bucket.refills)


@thorough
@given(traces(fixed, op("consume_check", n=amounts)))
def test_i6_what_is_admitted_is_bounded_by_what_was_earned_and_the_last_cost(trace):
    config, ops = trace
    bucket = WatchedBucket(**config)
    initial, admitted, last_cost = bucket.balance, 0, 0
    for operation in ops:
        if bucket.contains(operation["at_ns"]):
            last_cost = operation["n"]
            admitted += last_cost
        bucket.consume_check(operation["n"], operation["at_ns"])
    if admitted > 0:
        assert admitted < initial + earning_bounds(bucket)[1] + last_cost


@thorough
@given(unbounded_traces, st.integers(0, 10**10))
def test_i7_after_the_pause_the_target_is_there(trace, ahead_ns):
    bucket = after(trace)
    now_ns = bucket.last_ns + ahead_ns
    pause_ns = bucket.pause_ns(now_ns)

    assert bucket.balance_at(now_ns + max(pause_ns, bucket.resolution_ns) + 1) >= bucket.target


@thorough
@given(unbounded_traces, st.integers(0, 10**10), st.integers(0, 10**10))
def test_i7_long_before_the_end_of_the_pause_the_target_is_not_there(trace, ahead_ns, early_ns):
    bucket = after(trace)
    now_ns = bucket.last_ns + ahead_ns
    pause_ns = bucket.pause_ns(now_ns)
    token_ns = -(-bucket.period_ns // bucket.rate)
    too_late_ns = now_ns + pause_ns - bucket.resolution_ns - 2 * token_ns - 2
    if pause_ns > 0:
        for read_ns in (too_late_ns - 1, too_late_ns - 1 - early_ns):
            assert copy_of(bucket).balance_at(read_ns) < bucket.target


@thorough
@given(traces(bucket_configs(), *moving_ops), amounts, st.integers(-(10**9), 10**10))
def test_i8_consume_check_tells_whether_more_than_n_was_there(trace, n, ahead_ns):
    bucket = after(trace)
    now_ns = bucket.last_ns + ahead_ns
    balance = copy_of(bucket).balance_at(now_ns)

    assert (balance > n) is bucket.consume_check(n, now_ns)
    assert bucket.max_debt is None or bucket.balance >= -bucket.max_debt
