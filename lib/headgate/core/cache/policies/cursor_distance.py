"""Keep what is read soonest: by who is behind, how far, and how often it wakes up (entry-cache 10.3)."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.lanes import Cached, Lane, lanes
from headgate.core.cache.policies.policy import Read
from headgate.core.cache.policies.sweeping import Sweeping
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic

_Scored = tuple[int, int, Position, int, Entry]
"""A heap's item, the farthest entry first: next read, place of the topic, position reversed, lane, entry."""


class CursorDistance(Sweeping):
    """Never more than the limit is cached after a row; what is read last leaves first.

    Without counters: what a cursor has not read yet is awaited, and so is what is in a replay queue.
    Source: entry-cache 10.3
    """

    peaks_after_pass = True

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._cached: dict[Topic, Cached] = {}

    def admits_added(self, topic: Topic, position: Position) -> bool:
        """In a topic with a registered cursor, what is awaited."""
        return not topic.cursors.by_name or _is_awaited(topic, position, topic.cursors.slowest())

    def admits_missed(self, read: Read, offset: int) -> bool:
        """What another cursor than the reader awaits."""
        position = (read.ledger, read.first + offset)
        slowest = read.topic.cursors.slowest_other(read.reader)
        if slowest is not None and slowest <= position:
            return True
        own = read.reader is not None and read.topic.marks.has(read.reader.name, position)
        return read.topic.marks.counts.get(position, 0) > own

    def admits_replayed(self, read: Read) -> bool:
        """What any cursor awaits."""
        return _is_awaited(read.topic, (read.ledger, read.first), read.topic.cursors.slowest())

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:  # noqa: ARG002  a hook
        """There is room for all but what is larger than the limit: the pass comes after the row."""
        return size <= self._limit.max_bytes

    def inserted(self, entry: Entry) -> None:
        """Note where the entry is; over the limit a pass is due."""
        self._side(entry.topic, entry.position).add(entry.position)
        if self._limit.current_bytes > self._limit.max_bytes:
            self.is_over = True

    def forget(self, entry: Entry) -> None:
        """The entry leaves."""
        self._side(entry.topic, entry.position).discard(entry.position)

    def marked(self, topic: Topic, position: Position) -> None:
        """The entry is among the replayed ones."""
        cached = self._cached.get(topic)
        if cached is not None and position in cached.plain:
            cached.plain.discard(position)
            cached.replayed.add(position)

    def unmarked(self, topic: Topic, position: Position) -> None:
        """The entry is not among the replayed ones any more."""
        cached = self._cached.get(topic)
        if cached is not None and position in cached.replayed:
            cached.replayed.discard(position)
            cached.plain.add(position)

    def tick(self, now_us: int) -> None:
        """Drop what no cursor will read."""
        for topic in self._sweeps.take_due(now_us):
            self._sweeps.wait(topic, self._sweep(topic, now_us))
        self.plan(now_us)

    def size_pass(self, now_us: int) -> None:
        """Evict what is read last until a little less than the limit is cached."""
        goal_bytes = int(float(self._limit.max_bytes) * self._settings.distance_target)
        if self._limit.current_bytes <= goal_bytes:
            return
        self._all_lanes = self._lanes(now_us)
        heap = [scored for lane in range(len(self._all_lanes)) if (scored := self._score(lane)) is not None]
        heapq.heapify(heap)
        visits = len(heap)
        while heap and self._limit.current_bytes > goal_bytes:
            *_, lane, entry = heap[0]
            self.remove(entry, Cause.EVICTED)
            successor = self._score(lane)
            if successor is None:
                heapq.heappop(heap)
            else:
                visits += 1
                heapq.heapreplace(heap, successor)
        self.work.add_size_pass(visits)

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:
        """A lower limit holds at the end of the row."""
        super().settings_changed(settings, now_us)
        self.is_over = self._limit.current_bytes > self._limit.max_bytes

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:  # noqa: ARG002  a hook
        """Which topics are to be looked through."""
        return {"sweeps": self._sweeps.dump()}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Take the topics to be looked through."""
        for entry in entries:
            self._side(entry.topic, entry.position).add(entry.position)
        self._sweeps.load(stored["sweeps"], self._topics)
        self.plan(now_us)

    def _side(self, topic: Topic, position: Position) -> Any:
        cached = self._cached.get(topic)
        if cached is None:
            cached = self._cached[topic] = Cached()
        return cached.replayed if position in topic.marks.counts else cached.plain

    def _sweep(self, topic: Topic, now_us: int) -> int | None:
        """Drop what is finished, without tracked cursors once the grace is over; when it is, None where it is now."""
        cached = self._cached.get(topic)
        if cached is None or not cached.plain:
            return None
        slowest = topic.cursors.slowest()
        ends_us = topic.last_removal_us + self._settings.grace_us
        if slowest is None and now_us < ends_us:
            return ends_us
        while (position := cached.plain.lowest()) is not None and (slowest is None or position < slowest):
            self.remove(topic.entries.ledgers[position[0]][position[1]], Cause.DROPPED)
        return None

    def plan(self, now_us: int) -> None:
        """Name the next tick that can change anything."""
        after_us = now_us if self._sweeps.changed else max(now_us, self._sweeps.earliest_us() - 1)
        self.due_us = self.next_tick_us(after_us)

    def _lanes(self, now_us: int) -> list[Lane]:
        return [lane for topic, cached in self._cached.items() for lane in lanes(topic, cached, now_us, self._settings)]

    def _score(self, number: int) -> _Scored | None:
        """The candidate of a lane as the heap takes it."""
        lane = self._all_lanes[number]
        entry = lane.candidate()
        if entry is None:
            return None
        reversed_position = (-entry.ledger, -entry.number)
        return (-lane.next_us(entry), lane.topic.place, reversed_position, number, entry)


def _is_awaited(topic: Topic, position: Position, slowest: Position | None) -> bool:
    return (slowest is not None and slowest <= position) or position in topic.marks.counts
