"""How fast what a window held back leaves when it is over."""

SECOND_MS = 1000
LEAST_PER_S = 20
"""So many messages leave in the first second in any case: the rate of one who sends now and then says little."""
LONGEST_MS = 10_000


class Release:
    """In the first second after a window a producer writes at most twice the messages a second that it wrote up to
    then, pauses included, and at least LEAST_PER_S; in each second that follows at most twice those of the one before,
    until it writes fewer. Each of these seconds begins with its first write, however late that is. A window that ends
    within one of them is followed by the rest of it first: short windows let nothing more in.

    Whoever is held to a limit is so let in at about the limit, and what waits is many times that: written at once, it
    would be a debt of as many seconds. Times are in ms and never go back.
    """

    __slots__ = (
        "_allowed",
        "_counted_ms",
        "_end_ms",
        "_per_s",
        "_since_ms",
        "_slot_ms",
        "_slot_writes",
        "_waited_ms",
        "_writes",
    )

    def __init__(self, now_ms: int) -> None:
        self._since_ms = now_ms
        self._writes = 0
        self._per_s = 0
        self._end_ms: int | None = None
        self._allowed: int | None = None
        self._slot_ms: int | None = None
        """When the second began; None while it waits for its first write."""
        self._slot_writes = 0
        self._counted_ms: int | None = None
        """Up to when the wait for the next second is in _waited_ms; None while it has writes left."""
        self._waited_ms = 0

    def hold(self, end_ms: int, now_ms: int) -> None:
        """A window lasts until then; one that is extended is told again."""
        self._settle(now_ms)
        self._end_ms = end_ms
        if self._counted_ms is not None:
            self._counted_ms = end_ms

    def waited_ms(self, now_ms: int) -> int:
        """For how long since the last call no write might be made, windows left out."""
        self._settle(now_ms)
        waited_ms, self._waited_ms = self._waited_ms, 0
        return waited_ms

    def due_ms(self, now_ms: int) -> int:
        """When the next write may be made; now or earlier if it may be at once."""
        self._settle(now_ms)
        if self._end_ms is not None and now_ms < self._end_ms:
            return self._end_ms
        if self._allowed is None or self._slot_ms is None or self._slot_writes < self._allowed:
            return now_ms
        return self._slot_ms + SECOND_MS

    def wrote(self, now_ms: int) -> None:
        """A write was made; it was due."""
        if self._slot_ms is None:
            if now_ms >= self._since_ms + LONGEST_MS:
                self._measure(now_ms)
            self._slot_ms = now_ms
        self._writes += 1
        self._slot_writes += 1
        if self._slot_writes == self._allowed:
            self._counted_ms = now_ms

    def _settle(self, now_ms: int) -> None:
        if self._slot_ms is not None:
            self._settle_second(now_ms, self._slot_ms + SECOND_MS)
        is_let_out = self._slot_ms is not None and self._allowed is not None
        if self._end_ms is not None and now_ms >= self._end_ms and not is_let_out:
            self._begin(self._end_ms)

    def _settle_second(self, now_ms: int, over_ms: int) -> None:
        if self._counted_ms is not None:
            until_ms = max(self._counted_ms, min(now_ms, over_ms))
            self._waited_ms += until_ms - self._counted_ms
            self._counted_ms = until_ms
        if now_ms >= over_ms:
            if self._allowed is not None:
                self._allowed = 2 * self._allowed if self._slot_writes >= self._allowed else None
                if self._end_ms is not None:
                    self._end_ms = max(self._end_ms, over_ms)
            self._slot_ms, self._slot_writes, self._counted_ms = None, 0, None

    def _begin(self, end_ms: int) -> None:
        if end_ms >= self._since_ms + SECOND_MS:
            self._measure(end_ms)
        per_s = max(self._per_s, self._writes)  # what is not measured yet was written in less than a second
        self._allowed = max(2 * per_s, LEAST_PER_S)
        self._end_ms, self._slot_ms, self._slot_writes = None, None, 0

    def _measure(self, now_ms: int) -> None:
        self._per_s = self._writes * SECOND_MS // (now_ms - self._since_ms)
        self._since_ms, self._writes = now_ms, 0
