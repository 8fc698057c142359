"""Reproducible chance: numbers that follow from a seed and a position alone, on every machine (SplitMix64)."""

_MASK = 2**64 - 1
_STEP = 0x9E3779B97F4A7C15


def mixed(value: int) -> int:
    """64 bits in which every bit of `value` (0 to 2**64 - 1) counts: SplitMix64's finalizer, a bijection."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class Chance:
    """A sequence of independent draws. `seed` and `stream` (>= 0) choose it: equal ones give equal sequences."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, stream: int = 0) -> None:
        self._state = mixed(mixed(seed & _MASK) ^ (stream * _STEP & _MASK))

    def happens(self, numerator: int, denominator: int) -> bool:
        """True in `numerator` of `denominator` draws; to within 2**-64 of that probability."""
        self._state = (self._state + _STEP) & _MASK
        return mixed(self._state) * denominator < numerator << 64
