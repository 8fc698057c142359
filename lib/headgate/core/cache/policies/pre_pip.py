"""The policies before PIP-430: what all have read is dropped, and large topics pay for size (entry-cache 10.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.policy import Read
from headgate.core.cache.policies.sweeping import LowestFirst, Sweeping, drop_consumed
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic


class PrePip(Sweeping):
    """Entries that every cursor has passed are dropped at ticks, the others expire in the order of positions.

    The passed position of a cursor is its mark position for `by_mark_delete`, its read position, or mark position by
    cacheEvictionByMarkDeletedPosition, for `size_proportional`. Source: entry-cache 10.2
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._lowest = LowestFirst()

    def admits_topic(self, topic: Topic, now_us: int) -> bool:  # noqa: ARG002  there is no grace
        """Whether the topic has a cursor."""
        return bool(topic.cursors.by_name)

    def admits_missed(self, read: Read, offset: int) -> bool:  # noqa: ARG002  a hook
        """Reads are cached where the settings say so."""
        return self._settings.cache_reads

    def admits_replayed(self, read: Read) -> bool:  # noqa: ARG002  a hook
        """A replay is never cached."""
        return False

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:  # noqa: ARG002  a hook
        """The check precedes the insertion: over the trigger a pass is due, at the limit there is no room."""
        if self._limit.current_bytes > self._limit.trigger_bytes:
            self.is_over = True
        return self._limit.current_bytes < self._limit.max_bytes

    def inserted(self, entry: Entry) -> None:
        """Note where the entry is; over the trigger the next tick has something to do."""
        self._lowest.add(entry)

    def forget(self, entry: Entry) -> None:
        """The entry leaves."""
        self._lowest.discard(entry)

    def tick(self, now_us: int) -> None:
        """Sweep, then free what is too much."""
        for topic in self._sweeps.take_due(now_us):
            drop_consumed(self, topic, self._lowest)
            self._sweeps.wait(topic, self._expire(topic, now_us))
        self.size_pass(now_us)
        self.plan(now_us)

    def size_pass(self, now_us: int) -> None:
        """The largest topics, which have half of all bytes, give from their lowest position, each by its size.

        What comes to be the lowest of a topic may be older than what was.
        """
        need_bytes = self._limit.need_bytes()
        if need_bytes is None:
            return
        chosen = self._largest()
        chosen_bytes = sum(topic.entries.size_bytes for topic in chosen)
        victims = 0
        for topic in chosen:
            share_bytes = need_bytes * topic.entries.size_bytes // chosen_bytes
            victims += self._free(topic, share_bytes)
            self.topic_changed(topic, now_us)
        self.work.add_size_pass(victims)

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:
        """Look through all topics at the next tick."""
        super().settings_changed(settings, now_us)
        self._sweeps.changed.update(self._topics.values())
        self.plan(now_us)

    def plan(self, now_us: int) -> None:
        """Name the next tick that can change anything."""
        if self._sweeps.changed or self._limit.need_bytes() is not None:
            self.due_us = self.next_tick_us(now_us)
        else:
            self.due_us = self.next_tick_us(max(now_us, self._sweeps.earliest_us() - 1))

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:  # noqa: ARG002  a hook
        """Which topics are to be looked through."""
        return {"sweeps": self._sweeps.dump()}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Take the topics to be looked through."""
        for entry in entries:
            self._lowest.add(entry)
        self._sweeps.load(stored["sweeps"], self._topics)
        self.plan(now_us)

    def _expire(self, topic: Topic, now_us: int) -> int | None:
        """Expire from the lowest position on; when the next one does, None for never."""
        cutoff_us = now_us - self._settings.ttl_us
        while (entry := self._lowest.of(topic)) is not None and entry.ts_us < cutoff_us:
            self.remove(entry, Cause.EXPIRED)
        return None if entry is None else entry.ts_us + self._settings.ttl_us + 1

    def _largest(self) -> list[Topic]:
        """The topics with most bytes, until they have half of all."""
        by_size = sorted(self._topics.values(), key=lambda topic: (-topic.entries.size_bytes, topic.place))
        half_bytes = self._limit.current_bytes // 2
        chosen: list[Topic] = []
        for topic in by_size:
            if half_bytes <= 0 and chosen:
                break
            chosen.append(topic)
            half_bytes -= topic.entries.size_bytes
        return chosen

    def _free(self, topic: Topic, share_bytes: int) -> int:
        """Evict from the lowest position until a share is free; how many entries that were."""
        victims = 0
        while share_bytes > 0 and (entry := self._lowest.of(topic)) is not None:
            share_bytes -= entry.size
            self.remove(entry, Cause.EVICTED)
            victims += 1
        return victims
