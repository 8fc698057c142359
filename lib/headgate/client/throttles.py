"""Which of a wrapper's producers are throttled, for how long and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headgate.client.held_reasons import held_reason
from headgate.core.protocol.client.windows import Window
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import HeldReason


@dataclass(frozen=True, slots=True)
class Throttle:
    """A producer, or one of its partitions, writes nothing up to `until_ms`, or did; a later command can put that off.

    Attributes: `topic`; `partition`, None for a producer without partitions; `reason`, None for one that this version
    does not know; `protocol_reason`, the same as the broker said it; `throttled_ms`, for how long it has been
    throttled; `remaining_ms`, for how long it stays so, 0 where that is over; `until_ms`, the end in ms since 1970.
    """

    topic: str
    partition: int | None
    reason: HeldReason | None
    protocol_reason: Reason
    throttled_ms: int
    remaining_ms: int
    until_ms: int


class _Open(NamedTuple):
    """A window that is active. since_ms: when its first command came."""

    since_ms: int
    window: Window


class Throttles:
    """Every window that begins is told once, and once more when it is over; one that is extended stays the same.

    All calls are made under the lock, with times in ms that never go back.

    Arguments: topics: by producer id. is_partitioned: whether the ids are partitions. tell: called at once with a
    window that has begun, or with one that is over, of which nothing remains.
    Attributes: `due_ms`, when to settle again, None for never.
    """

    def __init__(self, topics: Mapping[int, str], *, is_partitioned: bool, tell: Callable[[Throttle], object]) -> None:
        self.due_ms: int | None = None
        self._topics = topics
        self._is_partitioned = is_partitioned
        self._tell = tell
        self._open: dict[int, _Open] = {}

    def settle(self, now_ms: int) -> None:
        """End what is over by now."""
        if self.due_ms is None or now_ms < self.due_ms:
            return
        for producer_id, one in list(self._open.items()):
            if one.window.end_ms <= now_ms:
                self._end(producer_id)
        self.due_ms = min((one.window.end_ms for one in self._open.values()), default=None)

    def hold(self, producer_id: int, window: Window, now_ms: int) -> None:
        """That window is active; what was over by now is settled."""
        old = self._open.get(producer_id)
        self._open[producer_id] = one = _Open(now_ms if old is None else old.since_ms, window)
        self.due_ms = window.end_ms if self.due_ms is None else min(window.end_ms, self.due_ms)
        if old is None:
            self._tell(self._throttle(producer_id, one, now_ms))

    def end_all(self, now_ms: int) -> None:
        """All windows end by now."""
        for producer_id, (since_ms, window) in self._open.items():
            self._open[producer_id] = _Open(since_ms, window._replace(end_ms=min(now_ms, window.end_ms)))
        for producer_id in list(self._open):
            self._end(producer_id)
        self.due_ms = None

    def of(self, producer_id: int | None, now_ms: int) -> Throttle | None:
        """How that producer is throttled, or without an id the one whose window ends last; None if none is."""
        throttled = [
            (one.window.end_ms, -number, one)
            for number, one in self._open.items()
            if now_ms < one.window.end_ms and producer_id in {None, number}
        ]
        if not throttled:
            return None
        _, number, one = max(throttled)
        return self._throttle(-number, one, now_ms)

    def _end(self, producer_id: int) -> None:
        one = self._open.pop(producer_id)
        self._tell(self._throttle(producer_id, one, one.window.end_ms))

    def _throttle(self, producer_id: int, one: _Open, now_ms: int) -> Throttle:
        end_ms, reason = one.window
        return Throttle(
            topic=self._topics[producer_id],
            partition=producer_id if self._is_partitioned else None,
            reason=held_reason(reason),
            protocol_reason=reason,
            throttled_ms=now_ms - one.since_ms,
            remaining_ms=end_ms - now_ms,
            until_ms=end_ms,
        )
