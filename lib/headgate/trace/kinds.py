"""Rows of other kinds in place of publishes: which ones, and whose they are."""

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.draws import Floats, Longs, pick, uniforms
from headgate.trace.spec import TraceSpec

KIND_STREAM = 2
COLUMNS = {
    "dispatch": pa.schema([("subscription", pa.string())]),
    "subscribe": pa.schema([("client", pa.string()), ("consumer", pa.string()), ("consumer_id", pa.int64())]),
    "unload": pa.schema([("bundle", pa.string()), ("duration_ms", pa.int64())]),
    "connection": pa.schema([("action", pa.string()), ("command", pa.string()), ("io_thread", pa.int64())]),
}
"""Columns of each kind alone; a trace has them if it has rows of that kind."""
NOT_THERE = {
    "dispatch": ("producer", "connection"),
    "subscribe": ("producer", "connection", "messages", "bytes"),
    "unload": ("topic", "producer", "connection", "messages", "bytes"),
    "connection": ("topic", "producer", "messages"),
}
"""Columns of publishes that are null in rows of each kind."""
IO_THREADS = 8
PAIRS = (
    ("start", "finish"),
    ("start", "finish"),
    ("start", "finish"),
    ("unwritable", "writable"),
    ("command", "command"),
)
"""What a connection does in two rows, all equally likely."""
COMMAND = "SEND"
BUNDLES = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")
"""Ranges of the hash of topics' names, a bundle each: as many a namespace as Pulsar makes by default."""
DURATIONS_MS = np.array([5, 20, 50, 100, 200, 500, 2_000, 90_000], np.int64)
"""How long an unload needs, all equally likely; the last is longer than a broker waits by default."""


def with_kinds(table: pa.Table, spec: TraceSpec, block: int) -> pa.Table:
    """The publishes of a block, the shares of the spec made rows of other kinds; as it is where all are 0.

    Nothing but the kind and the columns of kinds changes in any row, but for connections: rows of them are pairs within
    the block, the second of the first one's connection.
    """
    shares = {
        "dispatch": spec.dispatch_share,
        "subscribe": spec.subscribe_share,
        "unload": spec.unload_share,
        "connection": spec.connection_share,
    }
    if not any(shares.values()):
        return table
    chosen, which = uniforms(spec.seed, KIND_STREAM, block, 2, len(table))
    topics = table["topic"]
    low = 0.0
    for kind, share in shares.items():
        if share:
            here = (chosen >= low) & (chosen < low + share)
            if kind == "connection":
                table, values = _pairs(table, np.flatnonzero(here), which)
            else:
                values = _columns(kind, spec, which, topics)
            table = _made(table, kind, pa.array(here), values)
        low += share
    return table


def _columns(kind: str, spec: TraceSpec, which: Floats, topics: pa.ChunkedArray) -> list[pa.Array]:
    """Values of the columns of a kind, in the order of COLUMNS, for every row."""
    if kind == "dispatch":
        return [_named("sub", _number(which, spec.subscriptions_per_topic))]
    if kind == "unload":
        return [_bundles(topics), pa.array(pick(which, DURATIONS_MS))]
    number = _number(which, spec.consumers_per_topic)
    return [_named("host", number), _named("consumer", number), number]


def _bundles(topics: pa.ChunkedArray) -> pa.ChunkedArray:
    """The bundle that each topic lies in, by the CRC-32 of its name, as Pulsar has it."""
    codes = topics.combine_chunks().dictionary_encode()
    names = codes.dictionary.to_pylist()
    bundles = [f"{_namespace(name)}/{BUNDLES[zlib.crc32(name.encode()) * len(BUNDLES) >> 32]}" for name in names]
    return pa.array(bundles).take(codes.indices)


def _namespace(topic: str) -> str:
    return "/".join(topic.split("/")[2:4])


def _pairs(table: pa.Table, rows: Longs, which: Floats) -> tuple[pa.Table, list[pa.Array]]:
    """The table in which every second one of `rows` is of the connection of the one before, and what both do.

    The last of an odd number is a command.
    """
    first, second = rows[: len(rows) // 2 * 2 : 2], rows[1::2]
    source = np.arange(len(table))
    source[second] = first
    for name in ("broker", "connection", "bytes"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), table[name].take(pa.array(source)))
    number = np.full(len(table), len(PAIRS) - 1)
    number[first] = number[second] = (which[first] * len(PAIRS)).astype(np.int64)
    is_second = np.zeros(len(table), np.int64)
    is_second[second] = 1
    action = pa.array([action for pair in PAIRS for action in pair]).take(pa.array(number * 2 + is_second))
    is_request = pc.is_in(action, value_set=pa.array(["start", "finish"]))
    names = table["connection"].combine_chunks().dictionary_encode()
    threads = pa.array([zlib.crc32(name.encode()) % IO_THREADS for name in names.dictionary.to_pylist()], pa.int64())
    place = table.schema.get_field_index("bytes")
    has_bytes = np.ones(len(table), np.bool_)
    has_bytes[rows] = is_request.to_numpy(zero_copy_only=False)[rows]
    counted = pc.if_else(pa.array(has_bytes), table["bytes"], pa.scalar(None, pa.int64()))
    command = pc.if_else(pc.equal(action, "command"), COMMAND, pa.scalar(None, pa.string()))
    thread = pc.if_else(is_request, threads.take(names.indices), pa.scalar(None, pa.int64()))
    return table.set_column(place, table.schema.field(place), counted), [action, command, thread]


def _number(which: Floats, count: int) -> pa.Array:
    return pa.array((which * count).astype(np.int64) + 1)


def _named(stem: str, number: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(stem, number.cast(pa.string()), "-")


def _made(table: pa.Table, kind: str, of_kind: pa.Array, values: list[pa.Array]) -> pa.Table:
    for column, value in (("kind", kind), *((name, None) for name in NOT_THERE[kind])):
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        table = table.set_column(place, field, pc.if_else(of_kind, pa.scalar(value, field.type), table[column]))
    for field, column in zip(COLUMNS[kind], values, strict=True):
        place = table.schema.get_field_index("messages")
        table = table.add_column(place, field, pc.if_else(of_kind, column, pa.scalar(None, field.type)))
    return table
