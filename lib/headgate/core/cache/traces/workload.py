"""Reproducible traffic of one broker, bit for bit the same everywhere (entry-cache 15).

Families: fanout, tail cursors that stall; catchup, a backlog and cursors that come later; replay, entries that are
redelivered; mixed, all of these and a lone scan.
"""

import heapq
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from headgate.core.cache.rows import EventKind, Row
from headgate.core.cache.traces.chance import Chance
from headgate.core.names import one_of
from headgate.core.numbers import at_least

SECOND_US = 1_000_000
EQUAL_BYTES = 1024
READ_LIMIT = 100
REPLAY_DELAY_US = 300_000
SIZES_ACTOR = 0xFFFF
TRAITS_ACTOR = 0x4000


class Family(StrEnum):
    """Kinds of traffic. A family's number is its place here, from 1."""

    FANOUT = "fanout"
    CATCHUP = "catchup"
    REPLAY = "replay"
    MIXED = "mixed"


class Sizes(StrEnum):
    """Sizes of entries: all 1024 bytes, or many small and few large ones."""

    EQUAL = "equal"
    SKEWED = "skewed"


class _Part(NamedTuple):
    """Topics of one kind: F fanout, C catchup, R replay, S scan."""

    kind: str
    topics: int
    cursors: int


_SECONDS = {Family.FANOUT: 20, Family.CATCHUP: 12, Family.REPLAY: 20, Family.MIXED: 15}
_PLAN = {
    Family.FANOUT: [_Part("F", 10, 8)],
    Family.CATCHUP: [_Part("C", 6, 5)],
    Family.REPLAY: [_Part("R", 10, 3)],
    Family.MIXED: [_Part("F", 4, 6), _Part("C", 3, 5), _Part("R", 4, 3), _Part("S", 1, 1)],
}
_BACKLOG = {"C": 9000, "S": 30_000}
_PUBLISH_GAP_US = {"F": 5000, "C": 5000, "R": 3333}
_REPLAY_WAKE_US = (5000, 20_000, 80_000)
_OPEN, _PUBLISH, _WAKE, _REPLAY = range(4)


class _Reader:
    """A cursor of the traffic: where it reads, how often it wakes up, what it has not acknowledged."""

    def __init__(self, actor: int, start_position: int, chance: Chance) -> None:
        self.actor = actor
        self.name = f"c{actor:02d}"
        self.position = start_position
        self.acknowledged = start_position - 1
        self.outstanding: set[int] = set()
        self.chance = chance
        self.mean_us = 50_000
        self.start_us = 0


class _Log:
    """A topic of the traffic: the sizes of what was published, and who reads it."""

    def __init__(self, index: int, kind: str, sizes: Chance, publishing: Chance) -> None:
        self.index = index
        self.name = f"t{index:04d}"
        self.kind = kind
        self.size_chance = sizes
        self.publishing = publishing
        self.gap_us = _PUBLISH_GAP_US.get(kind)
        self.sizes: list[int] = []
        self.readers: dict[int, _Reader] = {}


class _Traffic:
    """The events of one workload, by time, topic, actor, what and entry."""

    def __init__(self, family: Family, seed: int, sizes: Sizes, scale: int) -> None:
        self._number = list(Family).index(family) + 1
        self._seed = seed
        self._equal = sizes is Sizes.EQUAL
        self._end_us = _SECONDS[family] * SECOND_US
        self._events: list[tuple[int, int, int, int, int]] = []
        self._seq = 0
        parts = [part for part in _PLAN[family] for _ in range(part.topics * scale)]
        self._topics = [self._topic(index, part) for index, part in enumerate(parts)]

    def rows(self) -> Iterator[Row]:
        """The rows in order of time, numbered from 0."""
        while self._events and self._events[0][0] < self._end_us:
            t_us, index, actor, what, entry = heapq.heappop(self._events)
            topic = self._topics[index]
            if what == _PUBLISH:
                yield self._publish(t_us, topic)
            elif what == _OPEN:
                yield self._open(t_us, topic, topic.readers[actor])
            elif what == _REPLAY:
                yield from self._replay(t_us, topic, topic.readers[actor], entry)
            else:
                yield from self._wake(t_us, topic, topic.readers[actor])

    def _topic(self, index: int, part: _Part) -> _Log:
        topic = _Log(index, part.kind, self._chance(index, SIZES_ACTOR), self._chance(index, 0))
        topic.sizes = [self._size(topic) for _ in range(_BACKLOG.get(part.kind, 0))]
        if topic.gap_us:
            self._push(topic.publishing.exponential(topic.gap_us), index, 0, _PUBLISH)
        for actor in range(1, 1 + part.cursors):
            topic.readers[actor] = self._reader(topic, actor)
            self._push(0, index, actor, _OPEN)
        return topic

    def _reader(self, topic: _Log, actor: int) -> _Reader:
        is_tail = topic.kind == "C" and actor == 1
        reader = _Reader(actor, len(topic.sizes) if is_tail else 0, self._chance(topic.index, actor))
        traits = self._chance(topic.index, TRAITS_ACTOR + actor)
        if topic.kind == "F":
            doublings = traits.below(7)
            reader.mean_us = (2000 * (1024 + traits.below(1024)) >> 10) << doublings
        elif topic.kind == "C" and not is_tail:
            reader.start_us = traits.below(2 * SECOND_US)
            reader.mean_us = 25_000 + traits.below(25_001)
        elif topic.kind == "C":
            reader.mean_us = 10_000
        elif topic.kind == "R":
            reader.mean_us = _REPLAY_WAKE_US[actor - 1]
        return reader

    def _open(self, t_us: int, topic: _Log, reader: _Reader) -> Row:
        wakes_us = reader.start_us + reader.chance.exponential(reader.mean_us)
        self._push(wakes_us, topic.index, reader.actor, _WAKE)
        return self._row(t_us, EventKind.OPEN, topic, reader.name, reader.position)

    def _publish(self, t_us: int, topic: _Log) -> Row:
        assert topic.gap_us is not None  # noqa: S101  only topics that publish have such events
        topic.sizes.append(self._size(topic))
        self._push(t_us + topic.publishing.exponential(topic.gap_us), topic.index, 0, _PUBLISH)
        return self._row(t_us, EventKind.ADD, topic, None, len(topic.sizes) - 1, sizes=topic.sizes[-1:])

    def _replay(self, t_us: int, topic: _Log, reader: _Reader, entry: int) -> Iterator[Row]:
        sizes = topic.sizes[entry : entry + 1]
        yield self._row(t_us, EventKind.REPLAY_READ, topic, reader.name, entry, sizes=sizes)
        reader.outstanding.remove(entry)
        if reader.chance.happens(3, 10):
            yield self._negative(t_us, topic, reader, entry)

    def _wake(self, t_us: int, topic: _Log, reader: _Reader) -> Iterator[Row]:
        first = reader.position
        count = min(READ_LIMIT, len(topic.sizes) - first)
        acknowledged = min(reader.outstanding, default=first) - 1
        if count and acknowledged > reader.acknowledged:
            reader.acknowledged = acknowledged
            yield self._row(t_us, EventKind.MARK, topic, reader.name, acknowledged)
        if count:
            sizes = [EQUAL_BYTES] if self._equal else topic.sizes[first : first + count]
            yield self._row(t_us, EventKind.READ, topic, reader.name, first, count=count, sizes=sizes)
            reader.position = first + count
        if topic.kind == "R":
            for entry in range(first, first + count):
                if reader.chance.happens(1, 5):
                    yield self._negative(t_us, topic, reader, entry)
        self._push(t_us + self._sleep_us(topic, reader), topic.index, reader.actor, _WAKE)

    def _sleep_us(self, topic: _Log, reader: _Reader) -> int:
        if topic.kind == "F" and reader.chance.happens(reader.mean_us, 10 * SECOND_US):
            return 200_000 + reader.chance.below(3_800_001)
        return reader.chance.exponential(reader.mean_us)

    def _negative(self, t_us: int, topic: _Log, reader: _Reader, entry: int) -> Row:
        reader.outstanding.add(entry)
        self._push(t_us + reader.chance.exponential(REPLAY_DELAY_US), topic.index, reader.actor, _REPLAY, entry)
        return self._row(t_us, EventKind.REPLAY_ADD, topic, reader.name, entry)

    def _size(self, topic: _Log) -> int:
        if self._equal:
            return EQUAL_BYTES
        doublings = (topic.size_chance.u32() & 63).bit_count()
        return (128 << doublings) * (1024 + topic.size_chance.below(1024)) >> 10

    def _chance(self, index: int, actor: int) -> Chance:
        return Chance(self._seed << 48 | self._number << 40 | index << 16 | actor)

    def _push(self, t_us: int, index: int, actor: int, what: int, entry: int = -1) -> None:
        heapq.heappush(self._events, (t_us, index, actor, what, entry))

    def _row(
        self,
        t_us: int,
        kind: EventKind,
        topic: _Log,
        cursor: str | None,
        entry: int,
        *,
        count: int = 1,
        sizes: list[int] | None = None,
    ) -> Row:
        row = Row(t_us, self._seq, kind.value, topic.name, cursor, 0, entry, count, sizes)
        self._seq += 1
        return row


def generate(family: str, seed: int, sizes: str = Sizes.EQUAL, scale: int = 1) -> Iterator[Row]:
    """The rows of one broker: the same for the same arguments, everywhere and for ever.

    Arguments: `seed` from 0; `scale` multiplies the topics, from 1 (the cache should grow with it).
    Raises InvalidArgument for an unknown name or a number out of range. Source: entry-cache 15
    """
    known, at = one_of(Family, family, "family"), one_of(Sizes, sizes, "sizes")
    return _Traffic(known, at_least(0, seed, "seed"), at, at_least(1, scale, "scale")).rows()
