"""Which key's state an event belongs to, and packing events into one block a key. No engine: Arrow in, Arrow out.

Limiters that share events must share a key. With state_key `auto` that is the broker where topics can share a limiter,
the broker's or a group's: what a topic is attached to may change, and no state ever moves from key to key. Where they
share none, a broker's topics are split by hash. Keys are slots, a fixed number of them, so that a row of the control
stream can be sent to all. With state_key `topic`, the key is the topic, for all its partitions: a limit row that names
the topic concerns them all.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode
from headgate.arrow.columns import encoded
from headgate.arrow.topic_names import without_partitions
from headgate.conf import InputSettings
from headgate.core.kernels.columns import Ints
from headgate.keyed.packing import blocks_by_key, dead_letter_blocks, packed
from headgate.keyed.slots import place_of, slot_keys
from headgate.rows.batches import parsed
from headgate.rows.kinds import INPUT, KINDS
from headgate.rows.traffic import Parsed, parse_traffic
from headgate.throttle.keys import broker_key
from headgate.throttle.schemas import TICKS

SPREAD = 8
"""Slots that the topics of a broker are split over: enough for the cores, few for hundreds of brokers."""


@dataclass(frozen=True)
class Routing:
    """The state layout of a job, fixed by its first start. whole_brokers: one key has all of a broker's topics.

    broker: the one whose rows are taken in, None: every one.
    """

    slots: int = 32
    by_topic: bool = False
    whole_brokers: bool = False
    broker: str | None = None

    @property
    def keys(self) -> list[str]:
        """Every key that exists before a row has come: the slots, none by topic."""
        return [] if self.by_topic else list(slot_keys(self.slots))

    def keys_of(self, broker: str | None) -> list[str]:
        """Those of `keys` that may ever get a row of this broker, None: of any."""
        if broker is None or self.by_topic:
            return self.keys
        first, width = place_of(broker), 1 if self.whole_brokers else min(SPREAD, self.slots)
        return [self.keys[slot % self.slots] for slot in range(first, first + width)]


def pack(routing: Routing, parts: Iterable[Parsed]) -> Iterator[pa.RecordBatch]:
    """A block of each kind of traffic a key, each broker's time for the keys that it has, and bad rows."""
    for rows, dead_letters in parts:
        own = rows if routing.broker is None else rows.filter(pc.equal(rows["broker"], routing.broker))
        yield packed([*dead_letter_blocks(dead_letters), *_time(routing, rows), *_traffic(routing, own)])


def pack_input(
    format_: str, settings: InputSettings, routing: Routing, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of an input (rows.batches.parsed) to PACKED."""
    return pack(routing, parsed(partial(parse_traffic, settings=settings), format_, INPUT, batches))


def _time(routing: Routing, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    """How far a broker is goes to every key that it has, also if its rows are not taken in."""
    ticks = _ticks(rows)
    of_keys: dict[str, list[int]] = defaultdict(list)
    for place, broker in enumerate(ticks["broker"].to_pylist()):
        for key in routing.keys_of(broker):
            of_keys[key].append(place)
    yield from ((key, "ticks", encode(ticks.take(places))) for key, places in of_keys.items())


def _traffic(routing: Routing, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    found = set(pc.unique(rows["kind"]).to_pylist())
    for kind in KINDS:
        if kind.name in found:
            of_kind = rows if len(found) == 1 else rows.filter(pc.equal(rows["kind"], kind.name))
            names, codes = _keys(routing, of_kind, has_topics=kind.has_topics)
            yield from blocks_by_key(of_kind.select(kind.schema.names).cast(kind.schema), names, codes, kind.block)


def _keys(routing: Routing, rows: pa.Table, *, has_topics: bool) -> tuple[list[str], Ints]:
    """Names of keys, and which of them each row belongs to: its topic's, or its broker's where it has no topic."""
    if not has_topics:
        if routing.by_topic:
            brokers, codes = encoded(rows["broker"])
            return [broker_key(broker) for broker in brokers.to_pylist()], codes
        return routing.keys, _places(rows["broker"]) % routing.slots
    topics, of_topic = encoded(rows["topic"])
    if routing.by_topic:
        keys = without_partitions(topics).dictionary_encode()
        return keys.dictionary.to_pylist(), keys.indices.to_numpy().astype(np.int64)[of_topic]
    return routing.keys, (_places(rows["broker"]) + _spread(routing, topics)[of_topic]) % routing.slots


def _ticks(rows: pa.Table) -> pa.Table:
    """The highest time in `rows` by broker: it moves the clock of its keys."""
    highest = rows.group_by("broker", use_threads=False).aggregate([("event_time_us", "max")])
    return pa.table(
        [highest["broker"], highest["event_time_us_max"], pa.repeat(pa.scalar(False), len(highest))],
        TICKS,
    )


def _places(column: pa.ChunkedArray) -> Ints:
    """The slot that each row's broker begins with, before it is brought into the number of slots."""
    brokers, codes = encoded(column)
    places: Ints = np.array([place_of(broker) for broker in brokers.to_pylist()], np.int64)[codes]
    return places


def _spread(routing: Routing, topics: pa.StringArray) -> Ints:
    """How many slots each topic lies behind its broker's."""
    if routing.whole_brokers:
        return np.zeros(len(topics), np.int64)
    return np.array([_hash(topic) % SPREAD for topic in topics.to_pylist()], np.int64)


def _hash(name: str) -> int:
    return zlib.crc32(name.encode())
