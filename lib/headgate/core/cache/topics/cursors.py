"""The cursors of a topic: where they read, how often they wake up, how many are behind one (entry-cache 1, 5.2, 8)."""

from bisect import bisect_left, bisect_right, insort

from headgate.core.cache.rows import Position

_SILENCE_US = 50_000
_SILENCE_INTERVALS = 20


class Cursor:
    """A reader that is registered; it is tracked while it has a read position.

    Attributes: `read`, the next position that it will read; `mark`, the first one that is not acknowledged in order;
    `registration`, its number in its topic; `interval_us`, how often it wakes up; `last_wake_us`. Source: entry-cache 3
    """

    __slots__ = ("has_moved", "interval_us", "last_wake_us", "mark", "name", "ranked", "read", "registration")

    def __init__(self, name: str, registration: int, position: Position | None, now_us: int, interval_us: int) -> None:
        self.name = name
        self.registration = registration
        self.read = position
        self.mark = position
        self.interval_us = interval_us
        self.last_wake_us = now_us
        self.ranked: Position | None = None
        self.has_moved = False

    def wake(self, now_us: int) -> None:
        """It reads: fold the time since it last did into its interval, unless it was silent or reads at one instant."""
        gap_us = now_us - self.last_wake_us
        if gap_us > 0:
            if gap_us <= _SILENCE_US or gap_us <= _SILENCE_INTERVALS * self.interval_us:
                self.interval_us = (4 * self.interval_us + gap_us) // 5
            self.last_wake_us = now_us


class Cursors:
    """The registered cursors of a topic, and the order of the tracked positions, which is kept only when asked for.

    Arguments: `by_mark`: whether the mark position of a tracked cursor is its tracked position, or the read position.
    Attributes: `by_name`; `registrations`, how many there were. Source: entry-cache 8
    """

    __slots__ = ("_by_mark", "_moved", "_order", "by_name", "registrations")

    def __init__(self, *, by_mark: bool) -> None:
        self.by_name: dict[str, Cursor] = {}
        self.registrations = 0
        self._by_mark = by_mark
        self._order: list[Position] = []
        self._moved: list[Cursor] = []

    def __len__(self) -> int:
        return len(self.by_name)

    def open(self, name: str, position: Position | None, now_us: int, interval_us: int) -> Cursor:
        """Register a cursor that is not; None: without a position."""
        self.registrations += 1
        cursor = Cursor(name, self.registrations, position, now_us, interval_us)
        self.restore(cursor)
        return cursor

    def restore(self, cursor: Cursor) -> None:
        """Put a cursor where its name says."""
        self.by_name[cursor.name] = cursor
        self._note(cursor)

    def move(self, cursor: Cursor, position: Position | None) -> None:
        """Set the read position, and a missing mark position with it; None: it is not tracked any more."""
        cursor.read = position
        if cursor.mark is None:
            cursor.mark = position
        if not cursor.has_moved:
            self._note(cursor)

    def acknowledge(self, cursor: Cursor, position: Position) -> None:
        """Set the mark position: one behind the position that was acknowledged."""
        cursor.mark = (position[0], position[1] + 1)
        if self._by_mark and not cursor.has_moved:
            self._note(cursor)

    def close(self, cursor: Cursor) -> None:
        """Unregister a cursor."""
        del self.by_name[cursor.name]
        cursor.read = None
        self._note(cursor)

    def rank(self, cursor: Cursor | None) -> int:
        """How many tracked cursors are at the cursor's tracked position or before, itself included; 0 without one."""
        position = None if cursor is None else self._tracked(cursor)
        return 0 if position is None else bisect_right(self.order(), position)

    def slowest(self) -> Position | None:
        """The least tracked position."""
        order = self.order()
        return order[0] if order else None

    def slowest_other(self, reader: Cursor | None) -> Position | None:
        """The least tracked position among the cursors other than the reader."""
        order = self.order()
        own = None if reader is None else self._tracked(reader)
        place = 1 if own is not None and order[0] == own else 0
        return order[place] if place < len(order) else None

    def order(self) -> list[Position]:
        """The tracked positions, ascending, one for each tracked cursor: O(k log k) for the k that moved."""
        if 2 * len(self._moved) >= max(1, len(self._order)):
            self._rebuild()
        elif self._moved:
            for cursor in self._moved:
                self._place(cursor)
        self._moved.clear()
        return self._order

    def _rebuild(self) -> None:
        for cursor in self._moved:
            cursor.has_moved = False
            cursor.ranked = self._tracked(cursor)
        tracked = map(self._tracked, self.by_name.values())
        self._order = sorted(position for position in tracked if position is not None)

    def _place(self, cursor: Cursor) -> None:
        cursor.has_moved = False
        if cursor.ranked is not None:
            del self._order[bisect_left(self._order, cursor.ranked)]
        cursor.ranked = self._tracked(cursor)
        if cursor.ranked is not None:
            insort(self._order, cursor.ranked)

    def _tracked(self, cursor: Cursor) -> Position | None:
        return cursor.mark if self._by_mark and cursor.read is not None else cursor.read

    def _note(self, cursor: Cursor) -> None:
        if not cursor.has_moved:
            cursor.has_moved = True
            self._moved.append(cursor)
