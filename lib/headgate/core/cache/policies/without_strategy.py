"""Pulsar 4.2 with cacheEvictionByExpectedReadCount = false (entry-cache 5.5, 10.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.pip430 import Pip430
from headgate.core.cache.policies.sweeping import LowestFirst, Sweeping, drop_consumed
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic


class Pip430WithoutStrategy(Sweeping, Pip430):
    """What every cursor has passed is dropped at ticks, before the pass that looks at age.

    Source: entry-cache 10.2
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._lowest = LowestFirst()

    def inserted(self, entry: Entry) -> None:
        """Queue the entry, and note where it is."""
        super().inserted(entry)
        self._lowest.add(entry)

    def left_queue(self, entry: Entry) -> None:
        """A pass removed the entry."""
        self._lowest.discard(entry)

    def forget(self, entry: Entry) -> None:
        """The entry leaves by another way than a pass."""
        super().forget(entry)
        self._lowest.discard(entry)

    def tick(self, now_us: int) -> None:
        """Sweep, then look at age and size."""
        for topic in self._sweeps.take_due(now_us):
            drop_consumed(self, topic, self._lowest)
        super().tick(now_us)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The queue, and which topics are to be looked through."""
        return {**super().dump(numbers), "sweeps": self._sweeps.dump()}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Take the queue and the topics to be looked through."""
        for entry in entries:
            self._lowest.add(entry)
        self._sweeps.load(stored["sweeps"], self._topics)
        super().load(stored, entries, now_us)

    def plan(self, now_us: int) -> None:
        """Name the next tick that can change anything: the next one where a topic changed."""
        super().plan(now_us)
        if self._sweeps.changed:
            self.due_us = self.next_tick_us(now_us)
