"""Which request ids of a connection were seen (throttle-protocol 9)."""

from bisect import bisect_right


class RequestIds:
    """Ids from 1, seen or not. Ids are gapless in the end, so that all that is kept is one span an open gap.

    The first span is the low-water mark, the others are what was seen above it. A call takes the logarithm of the
    number of gaps, however many ids were seen.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts = [0]
        self._ends = [0]

    @property
    def spans(self) -> int:
        """How many runs of ids are kept."""
        return len(self._starts)

    def add(self, request_id: int) -> bool:
        """See an id >= 1; false if it was seen before."""
        after = bisect_right(self._starts, request_id)
        before = after - 1
        if request_id <= self._ends[before]:
            return False
        joins_before = self._ends[before] == request_id - 1
        joins_after = after < len(self._starts) and self._starts[after] == request_id + 1
        if joins_before and joins_after:
            self._ends[before] = self._ends.pop(after)
            del self._starts[after]
        elif joins_before:
            self._ends[before] = request_id
        elif joins_after:
            self._starts[after] = request_id
        else:
            self._starts.insert(after, request_id)
            self._ends.insert(after, request_id)
        return True
