"""When a producer must not write, and for how long it was throttled (throttle-protocol 9, 10.1)."""

from collections import Counter
from typing import NamedTuple

from headgate.core.protocol.reasons import Reason


class Window(NamedTuple):
    """An interval up to `end_ms`, exclusive, in which a producer must not write."""

    end_ms: int
    reason: Reason


def join(*windows: Window) -> Window:
    """The window with the latest end; of equal ends the lowest reason code.

    Commutative, associative and idempotent: the order and the number of copies of commands do not matter.
    Source: throttle-protocol 9
    """
    return min(windows, key=lambda window: (-window.end_ms, window.reason))


class Notice(NamedTuple):
    """Reads are off for an unknown time. `base`: how many writes the producer had made when it was last told."""

    reason: Reason
    base: int


class Throttle:
    """A producer's window and notice, and Θ: the ms before now in which a window was active or a notice open.

    Θ never decreases and grows by at most 1 a ms. Every use is preceded by `settle` with the time of the use, which
    never goes back; then `window` is None where no window is active. Times are not bounded: a window may end after
    2^63-1.

    Attributes: `window`; `notice`; `last_reason`, that of the last command which was obeyed; `theta_ms`, Θ.
    Source: PIP-385; throttle-protocol 10.1
    """

    __slots__ = ("_by_reason_ms", "_settled_ms", "last_reason", "notice", "theta_ms", "window")

    def __init__(self) -> None:
        self.window: Window | None = None
        self.notice: Notice | None = None
        self.last_reason: Reason | None = None
        self.theta_ms = 0
        self._by_reason_ms: Counter[Reason] = Counter()
        self._settled_ms = 0

    @property
    def reason(self) -> Reason | None:
        """The window's if it is active, else the open notice's, else the last one, else None."""
        if self.window is not None:
            return self.window.reason
        return self.last_reason if self.notice is None else self.notice.reason

    def settle(self, now_ms: int) -> None:
        """Account for the time up to `now_ms`, and end the window if it is over by then."""
        if self.window is not None:
            self._account(self.window.reason, min(self.window.end_ms, now_ms))
            if self.window.end_ms <= now_ms:
                self.window = None
        if self.notice is not None:
            self._account(self.notice.reason, now_ms)
        self._settled_ms = now_ms

    def hold_back(self, passed_ms: int) -> None:
        """After a window its client let nothing out for so long: Θ counts it, unless it has it by a notice already."""
        if self.notice is None:
            self.theta_ms += passed_ms

    def remaining_ms(self, now_ms: int) -> int:
        """Time until the window's end, 0 without a window."""
        return 0 if self.window is None else self.window.end_ms - now_ms

    def hold(self, window: Window) -> bool:
        """Join a window that is not over; false if that changes neither the end nor the reason."""
        joined = window if self.window is None else join(self.window, window)
        if joined == self.window:
            return False
        self.window, self.last_reason = joined, window.reason
        return True

    def notify(self, reason: Reason, writes: int) -> None:
        """Open a notice after that many writes of the producer; one that is open takes reason and base of this one."""
        self.notice = Notice(reason, writes)

    def progress(self, write: int) -> None:
        """The write of that number was acknowledged: reads have resumed if it is younger than the notice's base."""
        if self.notice is not None and write > self.notice.base:
            self.notice = None

    def end(self) -> None:
        """End the window and the notice now."""
        self.window = self.notice = None

    def taken_ms(self) -> dict[Reason, int]:
        """What Θ grew by since the last call, by what was the reason at the time."""
        taken, self._by_reason_ms = self._by_reason_ms, Counter()
        return taken

    def _account(self, reason: Reason, until_ms: int) -> None:
        passed_ms = until_ms - self._settled_ms
        if passed_ms > 0:
            self.theta_ms += passed_ms
            self._by_reason_ms[reason] += passed_ms
            self._settled_ms = until_ms
