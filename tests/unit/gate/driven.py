"""A clock that a test moves, and a link that writes down what it is told."""

import heapq
from collections.abc import Callable
from itertools import count

from headgate.wire import ThrottleProducer


class Due:
    def __init__(self, at_ms: int, act: Callable[[], None]) -> None:
        self.at_ms, self.act, self.is_cancelled = at_ms, act, False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandClock:
    """Time goes on by `pass_to` alone, through all that is due on the way."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._due: list[tuple[int, int, Due]] = []
        self._order = count()

    def now_ms(self) -> int:
        return self._now_ms

    def call_at(self, at_ms: int, act: Callable[[], None]) -> Due:
        due = Due(at_ms, act)
        heapq.heappush(self._due, (at_ms, next(self._order), due))
        return due

    def pass_to(self, at_ms: int) -> None:
        while self._due and self._due[0][0] <= at_ms:
            due_ms, _, due = heapq.heappop(self._due)
            self._now_ms = max(self._now_ms, due_ms)
            if not due.is_cancelled:
                due.act()
        self._now_ms = max(self._now_ms, at_ms)

    def jump_to(self, at_ms: int) -> None:
        """Time has gone on, and nobody had the time to act."""
        self._now_ms = at_ms

    @property
    def waiting(self) -> int:
        return sum(not due.is_cancelled for _, _, due in self._due)


class Told:
    """What a client's connection was told, in order."""

    def __init__(self) -> None:
        self.said: list[ThrottleProducer | str] = []

    def send(self, command: ThrottleProducer) -> None:
        self.said.append(command)

    def stop_reading(self) -> None:
        self.said.append("off")

    def resume_reading(self) -> None:
        self.said.append("on")

    def taken(self) -> list[ThrottleProducer | str]:
        said, self.said = self.said, []
        return said
