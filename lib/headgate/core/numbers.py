"""Signed 64-bit integers: state and results are saturated, arguments outside the range are refused.

Python integers make every product exact, so only stored sums and returned instants need saturating (rate-limiters 1).
"""

from headgate.errors import InvalidArgument

MAX = 2**63 - 1
MIN = -(2**63)
SECOND_NS = 1_000_000_000
SECOND_MS = 1000
MILLISECOND_NS = 1_000_000
HOUR_NS = 3600 * SECOND_NS
HOUR_MS = 3600 * SECOND_MS
HOUR_US = 1000 * HOUR_MS


def sat(value: int) -> int:
    """The result lies in MIN..MAX and equals `value` wherever that does. Source: rate-limiters 1."""
    if value > MAX:
        return MAX
    if value < MIN:
        return MIN
    return value


def int64(value: int, name: str) -> int:
    """Return `value` unchanged: an int (no bool, no float) in MIN..MAX.

    Raises InvalidArgument, which names the argument `name`. Source: rate-limiters 1.
    """
    if type(value) is not int or not MIN <= value <= MAX:
        raise InvalidArgument(f"{name}: got {value!r}, allowed is an integer of 64 bits")
    return value


def at_least(least: int, value: int, name: str) -> int:
    """Return `value` unchanged: an int in least..MAX. Raises InvalidArgument. Source: rate-limiters 1."""
    if type(value) is not int or not least <= value <= MAX:
        raise InvalidArgument(f"{name}: got {value!r}, allowed is an integer from {least} to {MAX}")
    return value


def flag(value: bool, name: str) -> bool:
    """Return `value` unchanged: true or false, no number that stands for one. Raises InvalidArgument."""
    if value is not True and value is not False:
        raise InvalidArgument(f"{name}: got {value!r}, allowed are true and false")
    return value
