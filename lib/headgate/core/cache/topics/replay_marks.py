"""What cursors will read again: the replay queues of a topic (entry-cache 3, 5.3)."""

from headgate.core.cache.rows import Position


class ReplayMarks:
    """When each cursor marked a position for replay, and how many cursors have it marked.

    Attributes: `by_cursor`, times in microseconds by cursor and position; `counts`, cursors by position.
    Source: entry-cache 3, 5.3
    """

    __slots__ = ("by_cursor", "counts")

    def __init__(self) -> None:
        self.by_cursor: dict[str, dict[Position, int]] = {}
        self.counts: dict[Position, int] = {}

    def has(self, cursor: str, position: Position) -> bool:
        """Whether the cursor has the position in its replay queue."""
        return position in self.by_cursor.get(cursor, ())

    def add(self, cursor: str, position: Position, now_us: int) -> None:
        """Mark a position that the cursor has not marked."""
        self.by_cursor.setdefault(cursor, {})[position] = now_us
        self.counts[position] = self.counts.get(position, 0) + 1

    def remove(self, cursor: str, position: Position) -> int | None:
        """Unmark a position: when it was marked, None where it was not."""
        marked = self.by_cursor.get(cursor, {})
        marked_us = marked.pop(position, None)
        if marked_us is not None:
            self._less(position)
            if not marked:
                del self.by_cursor[cursor]
        return marked_us

    def forget_cursor(self, cursor: str) -> list[Position]:
        """The cursor is closed: the positions that it had marked."""
        marked = list(self.by_cursor.pop(cursor, ()))
        for position in marked:
            self._less(position)
        return marked

    def forget_ledger(self, ledger: int) -> None:
        """The ledger is deleted."""
        for cursor, marked in list(self.by_cursor.items()):
            for position in [position for position in marked if position[0] == ledger]:
                self.remove(cursor, position)

    def _less(self, position: Position) -> None:
        self.counts[position] -= 1
        if not self.counts[position]:
            del self.counts[position]
