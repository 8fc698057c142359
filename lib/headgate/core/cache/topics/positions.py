"""Positions in order: the lowest, and the highest of a range, without walking all (entry-cache 10.2, 10.3)."""

from bisect import bisect_left, insort

from headgate.core.cache.rows import Position

_BITS = 6
_LAST = 63


class OrderedPositions:
    """A set of positions, as bits of pages of 64; pages are in order."""

    __slots__ = ("_order", "_pages")

    def __init__(self) -> None:
        self._pages: dict[Position, int] = {}
        self._order: list[Position] = []

    def __bool__(self) -> bool:
        return bool(self._order)

    def __contains__(self, position: Position) -> bool:
        return bool(self._pages.get((position[0], position[1] >> _BITS), 0) >> (position[1] & _LAST) & 1)

    def add(self, position: Position) -> None:
        """Put a position in; once is enough."""
        page = (position[0], position[1] >> _BITS)
        if page not in self._pages:
            self._pages[page] = 0
            insort(self._order, page)
        self._pages[page] |= 1 << (position[1] & _LAST)

    def discard(self, position: Position) -> None:
        """Take a position out, where it is in."""
        page = (position[0], position[1] >> _BITS)
        left = self._pages.get(page, 0) & ~(1 << (position[1] & _LAST))
        if left:
            self._pages[page] = left
        elif page in self._pages:
            del self._pages[page]
            del self._order[bisect_left(self._order, page)]

    def lowest(self) -> Position | None:
        """The lowest position of all."""
        if not self._order:
            return None
        page = self._order[0]
        bits = self._pages[page]
        return (page[0], page[1] << _BITS | (bits & -bits).bit_length() - 1)

    def highest(self, first: Position | None, end: Position | None) -> Position | None:
        """The highest position from `first` on and before `end`; None for no bound, and for no such position."""
        if end is None:
            place, within = len(self._order), 0
        else:
            page = (end[0], end[1] >> _BITS)
            place = bisect_left(self._order, page)
            within = self._pages.get(page, 0) & (1 << (end[1] & _LAST)) - 1
        if within and end is not None:
            found = (end[0], end[1] >> _BITS << _BITS | within.bit_length() - 1)
        elif place:
            page = self._order[place - 1]
            found = (page[0], page[1] << _BITS | self._pages[page].bit_length() - 1)
        else:
            return None
        return found if first is None or found >= first else None
