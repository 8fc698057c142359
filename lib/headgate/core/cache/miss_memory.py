"""Why positions that are not cached are not (entry-cache 13)."""

from collections import OrderedDict

from headgate.core.cache.rows import Position


class MissMemory:
    """The reasons of the last positions that were noted, oldest first, at most `capacity` of them.

    Arguments: `capacity`, positions; 0 remembers nothing. Source: entry-cache 13
    """

    __slots__ = ("_capacity", "reasons")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.reasons: OrderedDict[Position, str] = OrderedDict()

    def note(self, position: Position, reason: str) -> None:
        """Remember why a position is not cached, as the newest."""
        if self._capacity:
            self.reasons[position] = reason
            self.reasons.move_to_end(position)
            if len(self.reasons) > self._capacity:
                self.reasons.popitem(last=False)

    def forget(self, position: Position) -> None:
        """The position is cached now."""
        self.reasons.pop(position, None)
