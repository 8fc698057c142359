"""How many messages a producer's library may have at once."""

LEAST = 1000
STOPPED_MS = 5000
"""A library that has messages, and is done with none for so long, has stopped."""


class InLibrary:
    """The library has at most LEAST messages, and twice as many each time that it was full and then was done with so
    many within STOPPED_MS: so at most what it is done with in 10 s, and enough to go on where a batch waits for long.

    Once a message fails, or none is done with for STOPPED_MS, it is LEAST again: in an outage the rest stays where it
    can be dropped. Where there was no room there is some again once half of it is free. Times are in ms and never go
    back.
    """

    __slots__ = ("_done", "_full_ms", "_held", "_is_full", "_moved_ms", "_room")

    def __init__(self, now_ms: int) -> None:
        self._room = LEAST
        self._held = self._done = 0
        self._is_full = False
        self._full_ms: int | None = None
        """Since when it is counted how many are done with; None until it is full."""
        self._moved_ms = now_ms

    @property
    def is_full(self) -> bool:
        """Whether one more found no room, and none has come since."""
        return self._is_full

    def take(self, now_ms: int) -> bool:
        """The library has one more, if there is room for it; whether there is."""
        if not self._held:
            self._moved_ms = now_ms
        self._end_if_stopped(now_ms)
        if not self._is_full and self._held >= self._room:
            self._is_full = True
            if self._full_ms is None:
                self._full_ms, self._done = now_ms, 0
        self._held += not self._is_full
        return not self._is_full

    def drop(self, now_ms: int, *, is_failed: bool = False) -> bool:
        """It is done with one; whether there is room again where there was none."""
        self._end_if_stopped(now_ms)
        self._held -= 1
        self._moved_ms = now_ms
        if is_failed:
            self._room, self._full_ms = LEAST, None
        elif self._full_ms is not None:
            self._count(now_ms, self._full_ms)
        has_room = self._is_full and 2 * self._held <= self._room
        self._is_full = self._is_full and not has_room
        return has_room

    def _end_if_stopped(self, now_ms: int) -> None:
        if now_ms >= self._moved_ms + STOPPED_MS:
            self._room, self._full_ms = LEAST, None

    def _count(self, now_ms: int, full_ms: int) -> None:
        self._done += 1
        if self._done >= self._room:
            if now_ms < full_ms + STOPPED_MS:
                self._room *= 2
            self._full_ms = None
