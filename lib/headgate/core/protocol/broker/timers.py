"""The times at which a connection's machine acts by itself (throttle-protocol 1)."""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from headgate.core.protocol.broker.producer import Producer

SPARE = 64
"""Stale entries that may always stay."""


class Deadlines:
    """The open ids of a connection, earliest deadline first; in one millisecond by ascending producer id.

    `open_ids` has each open id's producer, and is its owner's to change: an entry that is not there is stale. Stale
    entries are dropped when they come up, and all of them once they outnumber the others and `SPARE`.
    """

    __slots__ = ("_heap", "_open_ids")

    def __init__(self, open_ids: Mapping[int, Producer]) -> None:
        self._open_ids = open_ids
        self._heap: list[tuple[int, int, int]] = []

    def add(self, deadline_ms: int, producer: int, request_id: int) -> None:
        """An id was opened."""
        heappush(self._heap, (deadline_ms, producer, request_id))
        if len(self._heap) > 2 * len(self._open_ids) + SPARE:
            self._heap = [entry for entry in self._heap if entry[2] in self._open_ids]
            heapify(self._heap)

    def first(self) -> tuple[int, Producer] | None:
        """The earliest deadline in ms of reading, and its producer."""
        heap, open_ids = self._heap, self._open_ids
        while heap and heap[0][2] not in open_ids:
            heappop(heap)
        return (heap[0][0], open_ids[heap[0][2]]) if heap else None


class WindowEnds:
    """The windows of a connection's producers, earliest end first; in one millisecond by ascending producer id.

    `windows` has the producers with a window, and is its owner's to change: an entry that is not its producer's end
    is stale, and dropped as in Deadlines.
    """

    __slots__ = ("_heap", "_windows")

    def __init__(self, windows: Mapping[int, Producer]) -> None:
        self._windows = windows
        self._heap: list[tuple[int, int]] = []

    def add(self, end_ms: int, producer: int) -> None:
        """A window was announced."""
        heappush(self._heap, (end_ms, producer))
        if len(self._heap) > 2 * len(self._windows) + SPARE:
            self._heap = sorted({entry for entry in self._heap if self._is_end(entry)})

    def first(self) -> tuple[int, Producer] | None:
        """The earliest end in ms, and its producer."""
        heap = self._heap
        while heap and not self._is_end(heap[0]):
            heappop(heap)
        return (heap[0][0], self._windows[heap[0][1]]) if heap else None

    def _is_end(self, entry: tuple[int, int]) -> bool:
        end_ms, producer = entry
        told = self._windows.get(producer)
        return told is not None and told.window is not None and told.window.end_ms == end_ms
