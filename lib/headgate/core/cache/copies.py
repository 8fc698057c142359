"""Copies of entries that were handed out and not freed yet (entry-cache 5)."""

from collections import deque
from collections.abc import Sequence

from headgate.core.cache.entries import Handler
from headgate.core.cache.rows import Position

Handlers = Sequence[Handler | None]


def free(handlers: Handlers) -> None:
    """Copies are freed: one read less is foreseen of each that has a handler."""
    for handler in handlers:
        if handler is not None:
            handler.count -= 1


class OutstandingCopies:
    """The copies of a topic by cursor and position, oldest first; None for a copy without a handler.

    A copy keeps its handler when the entry leaves the cache or is inserted anew. Source: entry-cache 5.4
    """

    __slots__ = ("by_cursor",)

    def __init__(self) -> None:
        self.by_cursor: dict[str, dict[Position, deque[Handler | None]]] = {}

    def hand_out(self, cursor: str, ledger: int, first: int, handlers: Handlers) -> None:
        """The cursor gets a copy of each position from (ledger, first) on."""
        held = self.by_cursor.setdefault(cursor, {})
        for number, handler in enumerate(handlers, first):
            held.setdefault((ledger, number), deque()).append(handler)

    def are_held(self, cursor: str, ledger: int, numbers: range) -> bool:
        """Whether the cursor holds a copy of each position."""
        held = self.by_cursor.get(cursor, {})
        return all((ledger, number) in held for number in numbers)

    def release(self, cursor: str, ledger: int, numbers: range) -> None:
        """The oldest copy of each position, which the cursor holds, is freed."""
        held = self.by_cursor[cursor]
        for number in numbers:
            copies = held[ledger, number]
            free([copies.popleft()])
            if not copies:
                del held[ledger, number]
        if not held:
            del self.by_cursor[cursor]

    def newest(self, cursor: str, position: Position) -> deque[Handler | None]:
        """The newest copy that the cursor holds of a position, as a sequence of one or none."""
        copies = self.by_cursor.get(cursor, {}).get(position, ())
        return deque(copies, maxlen=1)

    def forget_cursor(self, cursor: str) -> None:
        """The cursor is closed."""
        self.by_cursor.pop(cursor, None)

    def forget_ledger(self, ledger: int) -> None:
        """The ledger is deleted."""
        for cursor, held in list(self.by_cursor.items()):
            for position in [position for position in held if position[0] == ledger]:
                del held[position]
            if not held:
                del self.by_cursor[cursor]
