"""Policies under a hard cap, which evict one by one before each insertion: lru and fifo (entry-cache 10, 10.1)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.policy import Policy
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic


class Capped(Policy):
    """Never more than the limit is cached: what is admitted pushes out what the policy values least.

    Source: entry-cache 10
    """

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:  # noqa: ARG002  a hook
        """Evict until the entry fits; one that is larger than the limit is refused."""
        limit = self._limit
        if size > limit.max_bytes:
            return False
        while limit.current_bytes + size > limit.max_bytes:
            self.evict_one()
        return True

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:
        """A lower limit holds at once."""
        super().settings_changed(settings, now_us)
        while self._limit.current_bytes > self._limit.max_bytes:
            self.evict_one()

    def evict_one(self) -> None:
        """Evict the entry that is valued least."""
        raise NotImplementedError


class Fifo(Capped):
    """Oldest insertion first. Source: entry-cache 10.1"""

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._order: OrderedDict[Entry, None] = OrderedDict()

    def inserted(self, entry: Entry) -> None:
        """The entry is the newest."""
        self._order[entry] = None

    def forget(self, entry: Entry) -> None:
        """The entry leaves."""
        del self._order[entry]

    def evict_one(self) -> None:
        """Evict the oldest entry."""
        self.work.visits += 1
        self.remove(next(iter(self._order)), Cause.EVICTED)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The order, oldest first."""
        return {"order": [numbers[entry] for entry in self._order]}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:  # noqa: ARG002
        """Take the order."""
        self._order = OrderedDict.fromkeys(entries[number] for number in stored["order"])


class Lru(Fifo):
    """Least recently inserted or read first. Source: entry-cache 10.1"""

    def touch(self, entries: Sequence[Entry]) -> None:
        """Entries that are read are the newest, in the order of their positions."""
        for entry in entries:
            entry.accessed = True
            self._order.move_to_end(entry)
