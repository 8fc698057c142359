"""Which timer of a client is due next (throttle-protocol 1)."""

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple


class TimerKind(IntEnum):
    """What a timer does, in the order of those that are due in one ms."""

    SEND_TIMEOUT = 0
    DRAIN = 1


class Timer(NamedTuple):
    """A timer, ordered as timers fire: by time in ms, kind, then producer."""

    due_ms: int
    kind: TimerKind
    producer_id: int


class ClientTimers:
    """The next timer in the order of throttle-protocol 1; a call takes the logarithm of the number of producers.

    `due_of(kind, producer)` is the truth: when that timer is due, None for never. The timers here are lower bounds of
    it, one or more for each that is due, so that a timer which moves to a later time costs nothing until then.
    """

    __slots__ = ("_due_of", "_heap", "_planned")

    def __init__(self, due_of: Callable[[TimerKind, int], int | None]) -> None:
        self._due_of = due_of
        self._heap: list[Timer] = []
        self._planned: dict[tuple[TimerKind, int], int] = {}

    def plan(self, producer_id: int) -> None:
        """Look at a producer's timers after anything that may have set them, or to an earlier time."""
        for kind in TimerKind:
            due_ms = self._due_of(kind, producer_id)
            planned_ms = self._planned.get((kind, producer_id))
            if due_ms is not None and (planned_ms is None or due_ms < planned_ms):
                self._planned[kind, producer_id] = due_ms
                heappush(self._heap, Timer(due_ms, kind, producer_id))

    def next(self) -> Timer | None:
        """The timer that is due first, None if none is."""
        while self._heap:
            timer = self._heap[0]
            if self._due_of(timer.kind, timer.producer_id) == timer.due_ms:
                return timer
            heappop(self._heap)
            if self._planned.get((timer.kind, timer.producer_id)) == timer.due_ms:
                del self._planned[timer.kind, timer.producer_id]
            self.plan(timer.producer_id)
        return None

    def due_by(self, until_ms: int) -> Timer | None:
        """The timer that is due first, None if it is due after `until_ms`."""
        if not self._heap or self._heap[0].due_ms > until_ms:
            return None
        timer = self.next()
        return timer if timer is not None and timer.due_ms <= until_ms else None
