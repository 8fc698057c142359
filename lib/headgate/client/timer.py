"""The one thread that tells the machine that time has passed (throttle-protocol 13)."""

import threading
from collections.abc import Callable

from headgate.client.clock import Clock
from headgate.client.threads import join, started


class Timer:
    """`act` is called, by one thread, as soon as the earliest time that was given to `plan` has come.

    A time is forgotten when `act` begins; what is still to come has to be planned again, in it or later.
    """

    def __init__(self, clock: Clock, act: Callable[[], object]) -> None:
        self._clock = clock
        self._act = act
        self._changed = threading.Condition(threading.Lock())
        self._due_ms: int | None = None
        self._is_stopped = False
        self._thread = started("timer", self._run)

    def plan(self, due_ms: int | None) -> None:
        """Act at that time, or earlier if that was planned; None changes nothing."""
        if due_ms is None:
            return
        with self._changed:
            if self._due_ms is None or due_ms < self._due_ms:
                self._due_ms = due_ms
                self._changed.notify()

    def stop(self, timeout_s: float) -> None:
        """Act no more; waits for the end of an action unless it is the one that stops."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        join(self._thread, timeout_s)

    def _run(self) -> None:
        while self._has_come():
            self._act()

    def _has_come(self) -> bool:
        with self._changed:
            while not self._is_stopped:
                if self._due_ms is not None and self._due_ms <= self._clock.now_ms():
                    self._due_ms = None
                    return True
                self._clock.wait(self._changed, self._due_ms)
            return False
