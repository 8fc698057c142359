"""The bundle-unload limiter: unloads run one after another, their starts are bounded per second (rate-limiters 9)."""

from headgate.core.numbers import MILLISECOND_NS, SECOND_NS, at_least, int64, sat
from headgate.core.ordered_time import enter
from headgate.core.state import PlainState


class UnloadLimiter(PlainState):
    """Starts never decrease and never overlap a running unload; any w seconds hold at most N * (w + 1) + 2 starts.

    A start that nobody waited for earns credit, up to one second's permits. Operations act at the highest time seen.
    Where N changes, and stays above 0, the largest one bounds a window.

    Arguments, each with its range:
        max_concurrent_unload: N, starts per second (not concurrency); 0 or below does not bound them.
        timeout_ms: an unload is awaited no longer than this, >= 1; one minute by default.
        created_ns: the first instant.

    Raises InvalidArgument for values out of range. Source: rate-limiters 9.
    """

    __slots__ = ("busy_until_ns", "credit", "high_ns", "max_concurrent_unload", "next_free_ns", "timeout_ms")

    def __init__(self, max_concurrent_unload: int = 0, *, created_ns: int, timeout_ms: int = 60_000) -> None:
        self.max_concurrent_unload = int64(max_concurrent_unload, "max_concurrent_unload")
        self.timeout_ms = at_least(1, timeout_ms, "timeout_ms")
        self.high_ns = self.busy_until_ns = self.next_free_ns = int64(created_ns, "created_ns")
        self.credit = 0

    def unload(self, duration_ns: int, now_ns: int) -> tuple[int, int, str]:
        """Start one unload that takes `duration_ns` >= 0 and return its start, its end and `done` or `timed_out`."""
        self.high_ns = enter(now_ns, self.high_ns)
        at_least(0, duration_ns, "duration_ns")
        ready_ns = max(self.high_ns, self.busy_until_ns)
        start_ns = self._permitted(ready_ns) if self.max_concurrent_unload > 0 else ready_ns
        timeout_ns = self.timeout_ms * MILLISECOND_NS
        self.busy_until_ns = sat(start_ns + min(duration_ns, timeout_ns))
        return start_ns, self.busy_until_ns, "done" if duration_ns <= timeout_ns else "timed_out"

    def update(self, max_concurrent_unload: int, timeout_ms: int, now_ns: int) -> None:
        """Set N and the time-out for unloads from now on. What was decided stays: a running unload ends as it was told,
        the next permit is due when it was, and credit stays up to one second's permits of the new N; idle time that is
        not credit yet counts at the new N, as in a dynamic bucket (rate-limiters 2.5). Without a bound there is no such
        cap: N that is set again finds its credit. Ranges are those of the constructor.
        """
        self.high_ns = enter(now_ns, self.high_ns)
        int64(max_concurrent_unload, "max_concurrent_unload")
        at_least(1, timeout_ms, "timeout_ms")
        self.max_concurrent_unload, self.timeout_ms = max_concurrent_unload, timeout_ms
        if max_concurrent_unload > 0:
            self.credit = min(self.credit, _most_credit(max_concurrent_unload))

    def advance(self, now_ns: int) -> None:
        """Move time to `now_ns`; no other effect. rate-limiters 3.1"""
        self.high_ns = enter(now_ns, self.high_ns)

    def _permitted(self, ready_ns: int) -> int:
        """The start that the next permit allows; credit is counted in billionths of a permit."""
        starts_per_s = self.max_concurrent_unload
        if ready_ns > self.next_free_ns:
            earned = (ready_ns - self.next_free_ns) * starts_per_s
            self.credit = min(_most_credit(starts_per_s), self.credit + earned)
            self.next_free_ns = ready_ns
        start_ns = self.next_free_ns
        spent = min(SECOND_NS, self.credit)
        self.credit -= spent
        self.next_free_ns = sat(start_ns + (SECOND_NS - spent) // starts_per_s)
        return start_ns


def _most_credit(starts_per_s: int) -> int:
    """One second's permits, in billionths of a permit."""
    return sat(starts_per_s * SECOND_NS)
