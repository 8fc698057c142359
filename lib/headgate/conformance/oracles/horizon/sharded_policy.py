"""The policy pip430 in one shard of a broker: everything but the size pass, which all shards make together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headgate.conformance.oracles.horizon.keyed_queue import Horizon, KeyedQueue, Line
from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.pip430 import Pip430
from headgate.core.cache.reasons import Cause
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic


class Report(NamedTuple):
    """What a shard says at the end of a round: what it has cached, what it inserted, and its queue in lines."""

    current_bytes: int
    inserted_bytes: int
    lines: tuple[Line, ...]


class ShardedPip430(Pip430):
    """Ranks, counters, ticks and the pass by age are exact; size is seen to at the end of rounds.

    Source: entry-cache 14
    """

    queue: KeyedQueue

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self.queue = KeyedQueue(settings.max_requeue, extend_accessed=settings.extend_accessed)
        self._inserted_bytes = 0

    def inserted(self, entry: Entry) -> None:
        """Queue an entry, and count it to the round."""
        super().inserted(entry)
        self._inserted_bytes += entry.size

    def forget(self, entry: Entry) -> None:
        """The entry leaves by another way than a pass."""
        super().forget(entry)
        self.queue.forget_key(entry)

    def left_queue(self, entry: Entry) -> None:
        """A pass removed the entry."""
        self.queue.forget_key(entry)

    def need_bytes(self) -> int | None:
        """A shard alone never frees for size."""
        return None

    def report(self) -> Report:
        """What the horizon is found from; ends the round of this shard."""
        divisor = self._settings.chunk_divisor * self._settings.shards
        least_bytes = self._limit.max_bytes // divisor if divisor else 0
        report = Report(self._limit.current_bytes, self._inserted_bytes, tuple(self.queue.lines(least_bytes)))
        self._inserted_bytes = 0
        return report

    def apply(self, horizon: Horizon, now_us: int) -> None:
        """Evict what a pass over the queue of the whole broker evicts up to the horizon."""
        done = self.queue.apply(horizon, now_us)
        self.work.requeues += done.requeues
        self._remove(done.removed, Cause.EVICTED)
        self.plan(now_us)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The queue with its keys, head first, and what was inserted in the round."""
        return {
            "queue": [[numbers[entry], list(self.queue.keys[entry])] for entry in self.queue],
            "epoch": self.queue.epoch,
            "inserted_bytes": self._inserted_bytes,
        }

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Queue the entries as they were."""
        for number, key in stored["queue"]:
            self.queue.restore(entries[number], tuple(key))
        self.queue.epoch = stored["epoch"]
        self._inserted_bytes = stored["inserted_bytes"]
        self.plan(now_us)
