"""How many messages a producer's library may have at once."""

LEAST = 1000
SECOND_MS = 1000


class InLibrary:
    """The library has at most twice the messages that it was done with in a second, the last one that was measured, or
    LEAST: enough to go on at that rate, and in an outage the rest stays where it can be dropped.

    Where there was no room there is some again once half of it is free. Times are in ms and never go back.
    """

    __slots__ = ("_done", "_held", "_is_full", "_room", "_since_ms")

    def __init__(self, now_ms: int) -> None:
        self._room = LEAST
        self._held = self._done = 0
        self._since_ms = now_ms
        self._is_full = False

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more."""
        self._is_full = self._is_full or self._held >= self._room
        return self._is_full

    def take(self) -> None:
        """The library has one more."""
        self._held += 1

    def drop(self, now_ms: int) -> bool:
        """It is done with one; whether there is room again where there was none."""
        self._held -= 1
        self._done += 1
        if now_ms >= self._since_ms + SECOND_MS:
            self._room = max(LEAST, 2 * self._done * SECOND_MS // (now_ms - self._since_ms))
            self._since_ms, self._done = now_ms, 0
        has_room = self._is_full and 2 * self._held <= self._room
        self._is_full = self._is_full and not has_room
        return has_room
