"""Lines about connections that the gate refused: few, and none left out."""

from collections.abc import Callable

from headgate.gate.feed import GateClock

QUIET_MS = 10_000
"""At least as long from one line to the next."""


class Refusals:
    """The first refusal is said at once, those that follow together once QUIET_MS is over, the rest at the end."""

    __slots__ = ("_clock", "_count", "_is_quiet", "_last", "_say")

    def __init__(self, clock: GateClock, say: Callable[[str], None]) -> None:
        self._clock = clock
        self._say = say
        self._count = 0
        self._last = ""
        self._is_quiet = False

    def add(self, address: str, limit: str) -> None:
        """A connection from there was refused, since the limit was reached."""
        self._count += 1
        self._last = f"{address}: {limit} is reached"
        if not self._is_quiet:
            self._say_all()

    def end(self) -> None:
        """Say those that were not said yet."""
        self._say_all()

    def _say_all(self) -> None:
        self._is_quiet = False
        if self._count:
            self._say(f"refused {self._count} since the last such line, the last from {self._last}")
            self._count = 0
            self._is_quiet = True
            self._clock.call_at(self._clock.now_ms() + QUIET_MS, self._say_all)
