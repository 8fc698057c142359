"""The removal queue of a shard: places are keys that all shards of a broker compare alike (entry-cache 14)."""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.core.cache.entries import Entry
from headgate.core.cache.removal_queue import Pass, RemovalQueue

TIME_BASE = 1 << 62
_BEFORE_ROWS = -1

Key = tuple[int, ...]
"""A place in the queue of the whole broker: integers, compared one after the other."""


class Line(NamedTuple):
    """Bytes of a shard that survive `laps` laps of its queue, up to the place `key` from the line before."""

    laps: int
    key: Key
    size_bytes: int


class Horizon(NamedTuple):
    """How far a pass over the queue of the whole broker gets: to the place `key` in the lap `laps`."""

    laps: int
    key: Key


class KeyedQueue(RemovalQueue):
    """The order of the keys is the order of the queue; shards whose queues are merged by key have that of the broker.

    Attributes: `epoch`, how many horizons there were; `seq` of the row whose insertions are queued.
    Source: entry-cache 14
    """

    __slots__ = ("_insertion", "epoch", "keys", "seq")

    def __init__(self, max_requeue: int, *, extend_accessed: bool) -> None:
        super().__init__(max_requeue, extend_accessed=extend_accessed)
        self.epoch = 0
        self.keys: dict[Entry, Key] = {}
        self.begin_row(0)

    def begin_row(self, seq: int) -> None:
        """The insertions that follow are those of this row."""
        self.seq = seq
        self._insertion = 0

    def append(self, entry: Entry) -> None:
        """Queue an entry that is inserted now."""
        self.keys[entry] = (self.epoch, TIME_BASE + entry.ts_us, self.seq, self._insertion)
        self._insertion += 1
        super().append(entry)

    def restore(self, entry: Entry, key: Key) -> None:
        """Queue an entry where it was."""
        super().append(entry)
        self.keys[entry] = key

    def forget_key(self, entry: Entry) -> None:
        """The entry left the queue."""
        del self.keys[entry]

    def lines(self, least_bytes: int) -> Iterator[Line]:
        """What is queued by laps and key; a line is closed once it has `least_bytes`, or when the laps change."""
        by_laps = self._by_laps()
        for laps in sorted(by_laps):
            size_bytes, key = 0, None
            for entry in by_laps[laps]:
                size_bytes += entry.size
                key = self.keys[entry]
                if size_bytes >= least_bytes:
                    yield Line(laps, key, size_bytes)
                    size_bytes, key = 0, None
            if key is not None:
                yield Line(laps, key, size_bytes)

    def apply(self, horizon: Horizon, now_us: int) -> Pass:
        """Cut the queue at a horizon, as a size pass over the queue of the whole broker would."""
        self.epoch += 1
        leaving: list[tuple[int, Entry]] = []
        passed: list[Entry] = []
        stayed: list[Entry] = []
        for entry in self:
            laps, is_passed = self.laps(entry), self.keys[entry] <= horizon.key
            if laps < horizon.laps or (laps == horizon.laps and is_passed):
                leaving.append((laps, entry))
            else:
                (passed if is_passed else stayed).append(entry)
        leaving.sort(key=_laps)
        requeues = sum(map(_laps, leaving)) + self._rotate(passed, now_us, horizon.laps + 1)
        if horizon.laps:
            requeues += self._rotate(stayed, now_us, horizon.laps)
        for entry in passed:
            self.keys[entry] = (self.epoch, *self.keys[entry])
        self._reorder(stayed + passed)
        removed = [entry for _, entry in leaving]
        for entry in removed:
            entry.is_queued = False
        return Pass(removed, requeues=requeues)

    def _by_laps(self) -> dict[int, list[Entry]]:
        by_laps: dict[int, list[Entry]] = {}
        for entry in self:
            by_laps.setdefault(self.laps(entry), []).append(entry)
        return by_laps

    def _requeue_expired(self, entry: Entry, now_us: int) -> None:
        super()._requeue_expired(entry, now_us)
        self.keys[entry] = (self.epoch, TIME_BASE + now_us, _BEFORE_ROWS, *self.keys[entry])


def _laps(leaving: tuple[int, Entry]) -> int:
    return leaving[0]
