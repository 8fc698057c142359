"""Which key's state an event belongs to, and packing events into one block a key. No engine: Arrow in, Arrow out.

Limiters that share events must share a key. The layout is the finest split that allows it (design: state_key `auto`):
the broker if a broker limit is set, else (broker, group), topics without a group by hash. Keys are slots, a fixed
number of them, so that a row of the control stream can be sent to all. With state_key `topic`, the key is the topic,
for all its partitions: a limit row that names the topic concerns them all.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.blocks import encode
from headgate.throttle.keys import group_key
from headgate.throttle.limits import IN_NAMESPACE, PARTITION
from headgate.throttle.schemas import DEAD_LETTERS, EVENTS, TICKS
from headgate.throttle.state import strings

PACKED = pa.schema([("key", pa.string()), ("kind", pa.string()), ("block", pa.binary())])
SPREAD = 8
"""Slots that the ungrouped topics of one broker are spread over: enough for the cores, few for hundreds of brokers."""
DEAD_LETTER_KEY = "dead letters"
BLANK_LINE = "blank line"
"""The reason of a row that is no row: it is counted as a line of its file, and then left out."""


@dataclass(frozen=True)
class Routing:
    """The state layout of a job, fixed by its first start, and the groups that topics are attached to."""

    slots: int = 32
    by_topic: bool = False
    broker_wide: bool = False
    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """Every key that exists before a row has come: the slots, none by topic."""
        return [] if self.by_topic else [slot_key(slot) for slot in range(self.slots)]

    @property
    def has_groups(self) -> bool:
        return bool(self.tenants or self.namespaces or self.topics)


def slot_key(slot: int) -> str:
    return f"slot-{slot:04}"


def pack(routing: Routing, batches: Iterator[pa.RecordBatch], *, count_lines: bool = True) -> Iterator[pa.RecordBatch]:
    """Parsed rows (spark.parse) in; a block of events a key, each broker's time for every key, and bad rows out.

    count_lines: rows without an offset are the lines of their files.
    """
    lines: dict[str, int] = {}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if count_lines:
            rows = _without_blank_lines(_numbered(rows, lines))
        good = pc.is_null(rows["reason"])
        packed = [*_dead_letters(rows.filter(pc.invert(good))), *_events(routing, rows.filter(good))]
        yield pa.RecordBatch.from_pylist([dict(zip(PACKED.names, row, strict=True)) for row in packed], PACKED)


def _numbered(rows: pa.Table, lines: dict[str, int]) -> pa.Table:
    """Give rows without an offset the number of their line in their file, counted on from `lines` (line 1 comes first).

    A task reads a file from its start to its end, or a part of a large one, whose name then says where it starts.
    """
    if not routing_needs_lines(rows):
        return rows
    files = strings(rows["source"]).dictionary_encode()
    codes = files.indices.to_numpy()
    offsets = np.empty(len(rows), np.int64)
    for code, name in enumerate(files.dictionary.to_pylist()):
        here = codes == code
        start = lines.get(name, 0)
        lines[name] = start + int(here.sum())
        offsets[here] = np.arange(start + 1, lines[name] + 1)
    return rows.set_column(rows.schema.get_field_index("offset"), "offset", pa.array(offsets))


def _without_blank_lines(rows: pa.Table) -> pa.Table:
    blank = pc.equal(rows["reason"], BLANK_LINE).fill_null(False)
    return rows.filter(pc.invert(blank)) if pc.any(blank).as_py() else rows


def routing_needs_lines(rows: pa.Table) -> bool:
    return len(rows) > 0 and rows["source"].null_count == 0 and rows["offset"].null_count == len(rows)


def _dead_letters(rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    if len(rows):
        yield DEAD_LETTER_KEY, "dead_letters", encode(rows.select(DEAD_LETTERS.names).cast(DEAD_LETTERS))


def _events(routing: Routing, rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    if not len(rows):
        return
    rows = rows.append_column("group", _groups(routing, rows))
    if routing.by_topic:
        keys = strings(_without_partitions(rows["topic"])).dictionary_encode()
        names, codes = keys.dictionary.to_pylist(), keys.indices.to_numpy().astype(np.int64)
    else:
        codes = _slots(routing, rows)
        names = routing.keys
    order = np.argsort(codes, kind="stable")
    events = rows.select(EVENTS.names).cast(EVENTS).take(order).combine_chunks()
    present, starts = np.unique(codes[order], return_index=True)
    for code, start, end in zip(present, starts, [*starts[1:], len(order)], strict=True):
        yield names[code], "events", encode(events.slice(start, end - start))
    ticks = encode(_ticks(rows))
    yield from ((key, "ticks", ticks) for key in routing.keys)


def _ticks(rows: pa.Table) -> pa.Table:
    """The highest time in `rows` by broker: it moves the clock of every key."""
    highest = rows.group_by("broker").aggregate([("event_time_us", "max")])
    return pa.table(
        [highest["broker"], highest["event_time_us_max"], pa.repeat(pa.scalar(False), len(highest))],
        TICKS,
    )


def _groups(routing: Routing, rows: pa.Table) -> pa.Array:
    """Key of the group limiter that each topic is attached to: by topic, else namespace, else tenant; null without."""
    if not routing.has_groups:
        return pa.nulls(len(rows), pa.string())
    topics = strings(rows["topic"]).dictionary_encode()
    namespaces = pc.replace_substring_regex(topics.dictionary, IN_NAMESPACE, r"\1").dictionary_encode()
    of_namespace = [
        routing.namespaces.get(name, routing.tenants.get(name.partition("/")[0]))
        for name in namespaces.dictionary.to_pylist()
    ]
    groups = pa.array(of_namespace, pa.string()).take(namespaces.indices)
    if routing.topics:
        names = _without_partitions(topics.dictionary)
        own = pc.index_in(names, value_set=pa.array(list(routing.topics), pa.string()))
        groups = pc.coalesce(pa.array(list(routing.topics.values()), pa.string()).take(own), groups)
    return pc.binary_join_element_wise(group_key(""), groups, "").take(topics.indices)


def _without_partitions(topics: Any) -> Any:
    return pc.replace_substring_regex(topics, PARTITION, "")


def _slots(routing: Routing, rows: pa.Table) -> Ints:
    brokers = strings(rows["broker"]).dictionary_encode()
    broker_hashes = np.array([zlib.crc32(name.encode()) for name in brokers.dictionary.to_pylist()], np.int64)
    hashes: Ints = broker_hashes[brokers.indices.to_numpy()]
    if routing.broker_wide:
        return hashes % routing.slots
    groups = strings(rows["group"]).dictionary_encode() if "group" in rows.schema.names else None
    spread = rows["topic_hash"].to_numpy() % SPREAD
    if groups is not None and len(groups.dictionary):
        group_hashes = np.array([zlib.crc32(name.encode()) for name in groups.dictionary.to_pylist()], np.int64)
        codes = groups.indices.fill_null(-1).to_numpy()
        spread = np.where(codes >= 0, group_hashes[codes], spread)
    slots: Ints = (hashes + spread) % routing.slots
    return slots
