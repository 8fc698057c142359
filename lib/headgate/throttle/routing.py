"""Which key's state an event belongs to, and packing events into one block a key. No engine: Arrow in, Arrow out.

Limiters that share events must share a key. With state_key `auto` that is the broker where topics can share a limiter,
the broker's or a group's: what a topic is attached to may change, and no state ever moves from key to key. Where they
share none, a broker's topics are split by hash. Keys are slots, a fixed number of them, so that a row of the control
stream can be sent to all. With state_key `topic`, the key is the topic, for all its partitions: a limit row that names
the topic concerns them all.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.blocks import encode
from headgate.throttle.columns import encoded
from headgate.throttle.faults import CONNECTION, DISPATCH, PUBLISH, SUBSCRIBE, UNLOAD, Fault, dead_letter
from headgate.throttle.keys import broker_key
from headgate.throttle.names import without_partitions
from headgate.throttle.schemas import DEAD_LETTERS, TICKS, TRAFFIC
from headgate.throttle.slots import place_of, slot_keys

PACKED = pa.schema([("key", pa.string()), ("kind", pa.string()), ("block", pa.binary())])
SPREAD = 8
"""Slots that the topics of a broker are split over: enough for the cores, few for hundreds of brokers."""
BLOCKS = {
    PUBLISH: "events",
    DISPATCH: "dispatches",
    SUBSCRIBE: "subscribes",
    UNLOAD: "unloads",
    CONNECTION: "connections",
}
"""The kind of the blocks in which rows of each kind travel."""
DEAD_LETTER_KEY = "dead letters"
BLANK_LINE = "blank line"
"""The reason of a row that is no row: it is counted as a line of its file, and then left out."""


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


def pack(routing: Routing, faults: Sequence[Fault], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parsed rows (spark.parse) in; a block of each kind of traffic a key, each broker's time for every key, and bad
    rows out.

    Rows with a `file` are its lines, in order, and are counted here: a task reads a file from its start to its end, or
    a part of a large one, whose name then says where it starts.
    """
    lines: dict[str, int] = {}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        bad = np.flatnonzero(rows["bad"].is_valid())
        letters = [dead_letter(faults, json.loads(letter)) for letter in rows["bad"].take(pa.array(bad)).to_pylist()]
        if "file" in rows.column_names:
            letters = _numbered(letters, line_numbers(rows["file"], lines)[bad])
        good = rows.filter(rows["bad"].is_null()) if len(bad) else rows
        own = good if routing.broker is None else good.filter(pc.equal(good["broker"], routing.broker))
        yield packed([*_dead_letters(letters), *_time(routing, good), *_traffic(routing, own)])


def packed(blocks: Iterable[tuple[str, str, bytes]]) -> pa.RecordBatch:
    """PACKED of blocks with their key and kind."""
    return pa.RecordBatch.from_pylist([dict(zip(PACKED.names, block, strict=True)) for block in blocks], PACKED)


def blocks_by_key(rows: pa.Table, keys: Sequence[str], codes: Ints, kind: str) -> Iterator[tuple[str, str, bytes]]:
    """A block for each key that any of the rows belongs to, with its rows in their order. codes: each row's key."""
    order = np.argsort(codes, kind="stable")
    chosen = rows.take(pa.array(order)).combine_chunks()
    present, starts = np.unique(codes[order], return_index=True)
    for code, start, end in zip(present, starts, [*starts[1:], len(order)], strict=True):
        yield keys[code], kind, encode(chosen.slice(start, end - start))


def line_numbers(column: pa.ChunkedArray, lines: dict[str, int]) -> Ints:
    """The number of each row's line in its file, counted on from `lines` (line 1 comes first)."""
    files, codes = encoded(column)
    numbers = np.empty(len(column), np.int64)
    for code, name in enumerate(files.to_pylist()):
        here = codes == code
        start = lines.get(name, 0)
        lines[name] = start + int(here.sum())
        numbers[here] = np.arange(start + 1, lines[name] + 1)
    return numbers


def _numbered(letters: list[dict[str, Any]], numbers: Ints) -> list[dict[str, Any]]:
    """With their lines, and without blank ones."""
    numbered = [letter | {"offset": number} for letter, number in zip(letters, numbers.tolist(), strict=True)]
    return [letter for letter in numbered if letter["reason"] != BLANK_LINE]


def _dead_letters(letters: list[dict[str, Any]]) -> Iterator[tuple[str, str, bytes]]:
    if letters:
        yield DEAD_LETTER_KEY, "dead_letters", encode(pa.Table.from_pylist(letters, DEAD_LETTERS))


def _time(routing: Routing, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    """How far brokers are goes to every key, also of those whose rows are not taken in."""
    if len(rows):
        ticks = encode(_ticks(rows))
        yield from ((key, "ticks", ticks) for key in routing.keys)


def _traffic(routing: Routing, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    if not len(rows):
        return
    kinds = pc.unique(rows["kind"]).to_pylist()
    for kind in kinds:
        of_kind = rows if len(kinds) == 1 else rows.filter(pc.equal(rows["kind"], kind))
        yield from _blocks(routing, of_kind, BLOCKS[kind])


def _blocks(routing: Routing, rows: pa.Table, kind: str) -> Iterator[tuple[str, str, bytes]]:
    schema = TRAFFIC[kind]
    names, codes = _keys(routing, rows, has_topics="topic" in schema.names)
    yield from blocks_by_key(rows.select(schema.names).cast(schema), names, codes, kind)


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
    """The highest time in `rows` by broker: it moves the clock of every key."""
    highest = rows.group_by("broker").aggregate([("event_time_us", "max")])
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
