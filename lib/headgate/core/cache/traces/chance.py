"""Chance that is the same on every platform: SplitMix64 in integers (entry-cache 15)."""

MASK = (1 << 64) - 1


class Chance:
    """A sequence of numbers that its state alone determines. Source: entry-cache 15"""

    __slots__ = ("state",)

    def __init__(self, state: int) -> None:
        self.state = state

    def u32(self) -> int:
        """The next number of 32 bits."""
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        mixed = self.state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        return (mixed ^ mixed >> 31) >> 32

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1."""
        return self.u32() * bound >> 32

    def happens(self, part: int, whole: int) -> bool:
        """True with probability part / whole."""
        return self.u32() * whole < part << 32

    def exponential(self, mean: int) -> int:
        """At least 1, exponentially distributed around `mean`: by comparisons only, so that no float is involved."""
        whole = 0
        while True:
            first = previous = self.u32()
            length = 1
            while (drawn := self.u32()) < previous:
                previous = drawn
                length += 1
            if length & 1:
                return max(1, ((whole << 32) + first) * mean >> 32)
            whole += 1
