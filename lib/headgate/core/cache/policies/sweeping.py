"""Policies that look through topics at ticks: only those that changed, or whose time has come (entry-cache 4, 10)."""

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.policy import NEVER, Policy
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.positions import OrderedPositions
from headgate.core.cache.topics.topic import Topic
from headgate.core.numbers import MAX

BEHIND_ALL: Position = (MAX + 1, 0)


class Sweeps:
    """Which topics a tick has to look through: those that changed since the last one, and those that wait for a time.

    Attributes: `changed`; `waiting`, the first instant at which a topic's sweep does something, by topic.
    """

    __slots__ = ("changed", "waiting")

    def __init__(self) -> None:
        self.changed: set[Topic] = set()
        self.waiting: dict[Topic, int] = {}

    def take_due(self, now_us: int) -> list[Topic]:
        """The topics to sweep at a tick, in order of first appearance."""
        due = self.changed | {topic for topic, at_us in self.waiting.items() if at_us <= now_us}
        self.changed = set()
        for topic in due:
            self.waiting.pop(topic, None)
        return sorted(due, key=_place)

    def wait(self, topic: Topic, at_us: int | None) -> None:
        """The topic is next swept at the first tick from `at_us` on, and when it changes; None: only then."""
        if at_us is not None:
            self.waiting[topic] = at_us

    def forget(self, topic: Topic) -> None:
        """The topic is not there any more."""
        self.changed.discard(topic)
        self.waiting.pop(topic, None)

    def earliest_us(self) -> int:
        """The first instant that a topic waits for."""
        return min(self.waiting.values(), default=NEVER)

    def dump(self) -> dict[str, Any]:
        """Names of topics, and times by name."""
        return {
            "changed": [topic.name for topic in sorted(self.changed, key=_place)],
            "waiting": {topic.name: at_us for topic, at_us in self.waiting.items()},
        }

    def load(self, stored: Mapping[str, Any], topics: Mapping[str, Topic]) -> None:
        """Take what `dump` gave."""
        names: Sequence[str] = stored["changed"]
        self.changed = {topics[name] for name in names}
        self.waiting = {topics[name]: at_us for name, at_us in stored["waiting"].items()}


class Sweeping(Policy):
    """A policy that looks through topics; `tick`, `dump` and `load` are those of the policy."""

    watches_topics = True

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._sweeps = Sweeps()

    def topic_changed(self, topic: Topic, now_us: int) -> None:
        """The topic is looked through at the next tick."""
        self._sweeps.changed.add(topic)
        self.due_us = min(self.due_us, self.next_tick_us(now_us))

    def topic_forgotten(self, topic: Topic) -> None:
        """The topic is not looked through any more."""
        self._sweeps.forget(topic)


def _place(topic: Topic) -> int:
    return topic.place


class LowestFirst:
    """The cached positions of each topic in order, so that the lowest is at hand."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: dict[Topic, OrderedPositions] = {}

    def add(self, entry: Entry) -> None:
        """An entry is cached."""
        self._positions.setdefault(entry.topic, OrderedPositions()).add(entry.position)

    def discard(self, entry: Entry) -> None:
        """An entry leaves."""
        self._positions[entry.topic].discard(entry.position)

    def of(self, topic: Topic) -> Entry | None:
        """The lowest entry of a topic, None where nothing is cached."""
        position = self._positions[topic].lowest() if topic in self._positions else None
        return None if position is None else topic.entries.get(position)


def drop_consumed(policy: Policy, topic: Topic, lowest: LowestFirst) -> None:
    """Drop what no cursor is at or behind: all without a registered cursor, nothing without a tracked one."""
    end = topic.cursors.slowest() if topic.cursors.by_name else BEHIND_ALL
    while end is not None and (entry := lowest.of(topic)) is not None and entry.position < end:
        policy.remove(entry, Cause.DROPPED)
