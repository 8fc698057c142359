"""IEEE single precision, ties to even, as the released broker computes quotas and drifts (resource-groups 6.2, 8.3).

A single is a Python float that holds it exactly. A sum, difference, product or quotient of two singles taken in double
and then rounded is the single-precision result, since 53 >= 2 * 24 + 2; so `rounded(a * b)` is one operation.
Magnitudes here lie in 2**-126 .. 2**127: subnormals and infinity do not occur.
"""

import math

DIGITS = 24


def rounded(value: float) -> float:
    """The single nearest to the double `value`."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, DIGITS)), exponent - DIGITS)


def from_integer(value: int) -> float:
    """The single nearest to the integer `value`, in one rounding: by way of a double it would be two."""
    magnitude = abs(value)
    excess = magnitude.bit_length() - DIGITS
    if excess <= 0:
        return float(value)
    kept, lost = divmod(magnitude, 1 << excess)
    half = 1 << (excess - 1)
    if lost > half or (lost == half and kept % 2 == 1):
        kept += 1
    return math.copysign(math.ldexp(kept, excess), value)
