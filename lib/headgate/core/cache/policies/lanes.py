"""When an entry is read next, as far as a broker can tell: by the distance of its cursors (entry-cache 10.3)."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from headgate.core.cache.entries import Entry
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.topics.cursors import Cursor
from headgate.core.cache.topics.positions import OrderedPositions
from headgate.core.cache.topics.topic import Topic

INFINITE = 1 << 127
"""After every time that can be foreseen."""
SILENT_INTERVALS = 4


class Cached:
    """The cached positions of a topic, those in a replay queue apart."""

    __slots__ = ("plain", "replayed")

    def __init__(self) -> None:
        self.plain = OrderedPositions()
        self.replayed = OrderedPositions()


class Approach(NamedTuple):
    """A cursor as it comes nearer: how long until it wakes up, its place, and how often it wakes up."""

    wait_us: int
    ordinal: int
    interval_us: int


class Lane:
    """The entries between one cursor position and the next, replayed ones or the others: the farthest is the highest.

    `next_us` never decreases from one position of a lane to the next, so its highest entry stands for all.
    Source: entry-cache 10.3
    """

    __slots__ = ("_approaches", "_batch", "_cap_us", "_end", "_first", "_positions", "topic")

    def __init__(  # noqa: PLR0917  made for every lane of every pass
        self,
        topic: Topic,
        positions: OrderedPositions,
        first: Position | None,
        end: Position | None,
        approaches: list[Approach],
        cap_us: int,
        batch: int,
    ) -> None:
        self.topic = topic
        self._positions = positions
        self._first = first
        self._end = end
        self._approaches = approaches
        self._cap_us = cap_us
        self._batch = batch

    def candidate(self) -> Entry | None:
        """The entry of the lane that is read last."""
        position = self._positions.highest(self._first, self._end)
        return None if position is None else self.topic.entries.get(position)

    def next_us(self, entry: Entry) -> int:
        """How long from now until the entry is read."""
        next_us = self._cap_us
        ordinal, batch = self.topic.ends.ordinal((entry.ledger, entry.number)), self._batch
        for wait_us, at, interval_us in self._approaches:
            reached_us = wait_us + (ordinal - at) * interval_us // batch
            next_us = min(next_us, reached_us)
        return next_us


def lanes(topic: Topic, cached: Cached, now_us: int, settings: CacheSettings) -> Iterator[Lane]:
    """The lanes of a topic, also empty ones, from the highest position down."""
    tracked = [cursor for cursor in topic.cursors.by_name.values() if cursor.read is not None]
    farthest_us = INFINITE if tracked else settings.grace_us
    parts = [(cached.plain, farthest_us), (cached.replayed, min(farthest_us, topic.replay_delay_us))]
    parts = [(positions, cap_us) for positions, cap_us in parts if positions]
    if not parts:
        return
    tracked.sort(key=lambda cursor: cursor.registration)
    tracked.sort(key=_read_position, reverse=True)
    approaches = [_approach(topic, cursor, now_us) for cursor in tracked]
    end: Position | None = None
    place = 0
    for first, group in groupby(tracked, key=_read_position):
        near = approaches[place : place + settings.distance_look]
        for positions, cap_us in parts:
            yield Lane(topic, positions, first, end, near, cap_us, settings.distance_batch)
        end = first
        place += sum(1 for _ in group)
    for positions, cap_us in parts:
        yield Lane(topic, positions, None, end, [], cap_us, settings.distance_batch)


def _read_position(cursor: Cursor) -> Position:
    assert cursor.read is not None  # noqa: S101  only tracked cursors are asked
    return cursor.read


def _approach(topic: Topic, cursor: Cursor, now_us: int) -> Approach:
    silence_us, interval_us = now_us - cursor.last_wake_us, cursor.interval_us
    is_silent = silence_us > SILENT_INTERVALS * interval_us
    wait_us = silence_us if is_silent else max(0, interval_us - silence_us)
    return Approach(wait_us, topic.ends.ordinal(_read_position(cursor)), interval_us)
