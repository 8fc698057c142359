"""Time as the client machine takes it: ms since 1970 that never go back."""

import threading
import time
from typing import Protocol

from headgate.core.numbers import MILLISECOND_NS, SECOND_NS

LONGEST_WAIT_S = 3600.0


class Clock(Protocol):
    """Where times come from, and how to wait for one."""

    def now_ms(self) -> int:
        """The time; it never goes back."""

    def wait(self, changed: threading.Condition, until_ms: int | None) -> None:
        """Wait for a notification, at most until that time; it may be shorter. `changed` is held."""


class MonotonicClock:
    """The wall clock's time when it was made, and from there on the steady one: steps of the wall clock do not show."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """The time in ms."""
        return self._now_ns() // MILLISECOND_NS

    def wait(self, changed: threading.Condition, until_ms: int | None) -> None:
        """Wait for a notification, at most until that time, at most an hour."""
        left_ns = LONGEST_WAIT_S * SECOND_NS if until_ms is None else until_ms * MILLISECOND_NS - self._now_ns()
        changed.wait(min(max(left_ns / SECOND_NS, 0.0), LONGEST_WAIT_S))

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self._offset_ns
