"""The clock of an event loop, in milliseconds since 1970."""

import asyncio
import time
from collections.abc import Callable

from headgate.core.numbers import SECOND_MS


class LoopClock:
    """Wall-clock time as of when it was made, and from there on the loop's own time, which never goes back."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._start_s = loop.time()
        self._start_ms = time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        """The millisecond that is not over yet."""
        return self._start_ms + int((self._loop.time() - self._start_s) * SECOND_MS)

    def call_at(self, at_ms: int, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `act` once `at_ms` has begun. A turn of the loop calls what sockets bring before what is due."""
        return self._loop.call_at(self._start_s + (at_ms - self._start_ms) / SECOND_MS, act)
