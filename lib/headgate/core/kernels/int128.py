"""Exact products and saturated sums of 64-bit integers (rate-limiters 1, "Products are exact").

A product of two 64-bit integers is never wrapped: it is taken in 64 bits where it surely fits and in two 64-bit halves
otherwise. In numba an operation on int64 and uint64 is a float. `credit`, `earn` and `wait_ns` convert their arguments,
so a non-negative int64 may stand for a uint64 there; the other functions take exactly the types they name. From Python,
pass `numpy.uint64(value)` for what may exceed MAX.
"""

import numpy as np
from numpy import int64, uint64

from headgate.core.kernels.compiled import borrowing, inner

MAX = int64(2**63 - 1)
MIN = int64(-(2**63))

_LARGEST = uint64(2**64 - 1)
_MAX_UNSIGNED = uint64(2**63 - 1)
_LOW_HALF = uint64(2**32 - 1)
_HALF = uint64(2**32)
_HALF_BITS = uint64(32)
_BITS = uint64(64)
_ZERO = uint64(0)
_ONE = uint64(1)
# The float product of two integers is within a relative 2**-50 of the exact one: below 2**63 it says that 64 bits do.
_SURELY_FITS = 2.0**63


@borrowing
def sat_add(a: int64, b: int64) -> int64:
    """min(max(a + b, MIN), MAX)."""
    if b > 0 and a > MAX - b:
        return MAX
    if b < 0 and a < MIN - b:
        return MIN
    return a + b


@borrowing
def distance(low: int64, high: int64) -> uint64:
    """Exact high - low for every pair with low <= high (up to 2**64 - 1)."""
    return uint64(high) - uint64(low)


@borrowing
def credit(balance: int64, new: uint64, capacity: int64) -> int64:
    """min(balance + new, capacity), exact: `new` up to 2**64 - 1 and a balance down to MIN (rate-limiters 2.2)."""
    if balance >= capacity or uint64(new) >= distance(balance, capacity):
        return capacity
    return int64(uint64(balance) + uint64(new))


@borrowing
def multiply_wide(a: uint64, b: uint64) -> tuple[uint64, uint64]:
    """The 128-bit product of a and b as (high, low) halves."""
    a_high, a_low = a >> _HALF_BITS, a & _LOW_HALF
    b_high, b_low = b >> _HALF_BITS, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF_BITS)
    carried = a_low * b_high + (middle & _LOW_HALF)
    high = a_high * b_high + (middle >> _HALF_BITS) + (carried >> _HALF_BITS)
    return high, a * b


@borrowing
def leading_zeros(value: uint64) -> uint64:
    """Bits above the highest set bit of `value`, which is at least 1."""
    count = _ZERO
    for bits in (uint64(32), uint64(16), uint64(8), uint64(4), uint64(2), _ONE):
        if value >> (_BITS - bits) == _ZERO:
            count += bits
            value <<= bits
    return count


@inner
def _digit(high: uint64, next_digit: uint64, divisor: uint64) -> uint64:
    """One 32-bit digit of a long division (Knuth 4.3.1 D): (high * 2**32 + next_digit) // divisor.

    Needs high < divisor and the divisor's top bit set.
    """
    top, bottom = divisor >> _HALF_BITS, divisor & _LOW_HALF
    digit = high // top
    rest = high - digit * top
    while digit >= _HALF or digit * bottom > (rest << _HALF_BITS) + next_digit:
        digit -= _ONE
        rest += top
        if rest >= _HALF:
            break
    return digit


@borrowing
def divide_wide(high: uint64, low: uint64, divisor: uint64) -> tuple[uint64, uint64]:
    """Quotient and remainder of the 128-bit (high, low) by divisor; high < divisor and 1 <= divisor < 2**63."""
    shift = leading_zeros(divisor)
    scaled = divisor << shift
    first = (high << shift) | (low >> (_BITS - shift))
    rest = low << shift
    upper = _digit(first, rest >> _HALF_BITS, scaled)
    second = (first << _HALF_BITS) + (rest >> _HALF_BITS) - upper * scaled
    lower = _digit(second, rest & _LOW_HALF, scaled)
    remainder = (second << _HALF_BITS) + (rest & _LOW_HALF) - lower * scaled
    return (upper << _HALF_BITS) + lower, remainder >> shift


@borrowing
def multiply_divide(a: uint64, b: uint64, divisor: uint64) -> tuple[uint64, uint64]:
    """(a * b // divisor saturated at 2**64 - 1, a * b % divisor exact); 1 <= divisor < 2**63."""
    if np.float64(a) * np.float64(b) < _SURELY_FITS:
        product = a * b
        quotient = product // divisor
        return quotient, product - quotient * divisor
    high, low = multiply_wide(a, b)
    excess = high // divisor
    quotient, remainder = divide_wide(high - excess * divisor, low, divisor)
    if excess > _ZERO:
        quotient = _LARGEST
    return quotient, remainder


@borrowing
def earn(elapsed_ns: uint64, rate: int64, period_ns: int64) -> tuple[uint64, int64]:
    """Whole tokens earned in `elapsed_ns` and the time they leave unused (`new`, `remainder_ns` of rate-limiters 2.2).

    With n = elapsed_ns * rate // period_ns, exact: returns (min(n, 2**64 - 1), elapsed_ns - n * period_ns // rate).
    The bound on n is unsigned because a balance of MIN and a capacity of MAX are 2**64 - 1 apart; add with `credit`.
    elapsed_ns: 0 to 2**64 - 1. rate, period_ns: 1 to MAX.
    """
    divisor = uint64(rate)
    new, unearned = multiply_divide(uint64(elapsed_ns), divisor, uint64(period_ns))
    # elapsed * rate = n * period + unearned, so elapsed - n * period // rate = ceil(unearned / rate)
    return new, int64((unearned + divisor - _ONE) // divisor)


@borrowing
def wait_ns(missing: uint64, period_ns: int64, rate: int64) -> int64:
    """min(missing * period_ns // rate, MAX): the pause until `missing` tokens are expected (rate-limiters 2.3).

    missing: 0 to 2**64 - 1, for instance `distance(balance, need)`. rate, period_ns: 1 to MAX.
    """
    wait, _ = multiply_divide(uint64(missing), uint64(period_ns), uint64(rate))
    return int64(min(wait, _MAX_UNSIGNED))
