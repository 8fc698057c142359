"""The compiled arithmetic equals Python's integers, at the edges of 64 bits first of all."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy import uint64

from headgate.core.kernels import int128

MAX = 2**63 - 1
MIN = -(2**63)
UNSIGNED_MAX = 2**64 - 1


def edged(low, high):
    """Integers of every magnitude, and the ones next to powers of two and to the bounds."""
    near = {low, low + 1, high - 1, high} | {2**bits + step for bits in range(65) for step in (-1, 0, 1)}
    magnitudes = st.integers(0, 64).flatmap(lambda bits: st.integers(0, 2**bits))
    inside = st.sampled_from(sorted(value for value in near if low <= value <= high))
    return st.one_of(inside, magnitudes.map(lambda value: min(max(value, low), high)), st.integers(low, high))


signed = edged(MIN, MAX)
unsigned = edged(0, UNSIGNED_MAX)
positive = edged(1, MAX)


def every(*strategies):
    """A property without a deadline: its first example waits for the compiler."""
    return lambda check: settings(deadline=None)(given(*strategies)(check))


def sat(value):
    return min(max(value, MIN), MAX)


@every(signed, signed)
@example(MIN, MIN)
@example(MAX, MAX)
def test_sums_saturate(a, b):
    assert sat(a + b) == int128.sat_add(a, b)


@every(signed, signed)
@example(MIN, MAX)
def test_the_distance_between_any_two_integers_is_exact(a, b):
    low, high = sorted((a, b))
    assert high - low == int128.distance(low, high)


@every(signed, unsigned, positive)
@example(MIN, UNSIGNED_MAX, MAX)
@example(MIN, UNSIGNED_MAX - 1, MAX)
@example(MAX, 1, 1)
def test_credit_is_capped_and_never_wraps(balance, new, capacity):
    assert min(balance + new, capacity) == int128.credit(balance, uint64(new), capacity)


@every(unsigned, unsigned)
def test_wide_product_is_exact(a, b):
    assert divmod(a * b, 2**64) == int128.multiply_wide(uint64(a), uint64(b))


@every(unsigned, unsigned, positive)
@example(UNSIGNED_MAX, UNSIGNED_MAX, 1)
@example(UNSIGNED_MAX, MAX, MAX)
@example(2**63 - 1, 2**63 - 1, 2**63 - 2)
def test_quotient_saturates_and_its_remainder_is_exact(a, b, divisor):
    quotient, remainder = divmod(a * b, divisor)
    assert (min(quotient, UNSIGNED_MAX), remainder) == int128.multiply_divide(uint64(a), uint64(b), uint64(divisor))


@every(unsigned, unsigned, positive)
def test_wide_division_is_exact(high, low, divisor):
    high %= divisor
    assert divmod(high * 2**64 + low, divisor) == int128.divide_wide(uint64(high), uint64(low), uint64(divisor))


@every(unsigned, positive, positive)
@example(UNSIGNED_MAX, MAX, 1)
@example(UNSIGNED_MAX, 1, MAX)
@example(92_233_720_369, 100_000_000, 1_000_000_000)
def test_earned_tokens_and_the_time_left_over_are_those_of_the_specification(elapsed_ns, rate, period_ns):
    new = elapsed_ns * rate // period_ns
    remainder_ns = elapsed_ns - new * period_ns // rate
    assert (min(new, UNSIGNED_MAX), remainder_ns) == int128.earn(uint64(elapsed_ns), rate, period_ns)


@every(unsigned, positive, positive)
@example(UNSIGNED_MAX, MAX, 1)
def test_pauses_saturate(missing, period_ns, rate):
    assert min(missing * period_ns // rate, MAX) == int128.wait_ns(uint64(missing), period_ns, rate)


@pytest.mark.parametrize("bits", range(64))
def test_leading_zeros_of_each_power_of_two(bits):
    assert 63 - bits == int128.leading_zeros(uint64(2**bits))
