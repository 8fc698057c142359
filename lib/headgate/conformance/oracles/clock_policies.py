"""Clock policies: source time in, `now_ns` out, and the output never decreases (rate-limiters 3.2)."""

from headgate.core.numbers import MILLISECOND_NS, at_least, flag, int64, sat
from headgate.core.state import PlainState

DEFAULT_INTERVAL_NS = 16 * MILLISECOND_NS


class HighWaterClock(PlainState):
    """The output is the highest source time seen. The default policy. Source: rate-limiters 3.2"""

    __slots__ = ("high_ns",)

    def __init__(self) -> None:
        self.high_ns: int | None = None

    def observe(self, source_ns: int) -> int:
        """`now_ns` for a reading of the source. Raises InvalidArgument outside 64 bits."""
        int64(source_ns, "source_ns")
        self.high_ns = source_ns if self.high_ns is None else max(self.high_ns, source_ns)
        return self.high_ns


class LeapTolerantClock(PlainState):
    """The output never decreases, follows the source's pace, and outlives steps of the source's clock.

    Backward steps of up to two intervals freeze the output until the source catches up; larger ones rebase it.
    Forward steps pass through: a bucket's capacity bounds what they earn. The output saturates at 64 bits.

    Arguments, each with its range:
        interval_ns: the source's reading interval, >= 1,000,000; 16 ms by default.

    Raises InvalidArgument for a shorter interval. Source: PR 23930; rate-limiters 3.2.
    """

    __slots__ = ("base_ns", "interval_ns", "previous_ns", "reference_ns")

    def __init__(self, interval_ns: int = DEFAULT_INTERVAL_NS) -> None:
        self.interval_ns = at_least(MILLISECOND_NS, interval_ns, "interval_ns")
        self.reference_ns: int | None = None
        self.base_ns = 0
        self.previous_ns = 0

    def update(self, source_ns: int, *, waited: bool) -> int:
        """`now_ns` for a reading of the source; `waited`: a full interval passed before it was taken."""
        int64(source_ns, "source_ns")
        flag(waited, "waited")
        if self.reference_ns is None:
            self.reference_ns = self.base_ns = self.previous_ns = source_ns
            return source_ns
        current_ns = sat(self.base_ns + (source_ns - self.reference_ns))
        if current_ns < self.previous_ns - 2 * self.interval_ns:
            current_ns = sat(self.previous_ns + (self.interval_ns if waited else 0))
            self.reference_ns, self.base_ns = source_ns, current_ns
        self.previous_ns = max(self.previous_ns, current_ns)
        return self.previous_ns
