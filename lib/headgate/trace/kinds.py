"""Rows that are dispatches, subscribes or unloads in place of publishes: which ones, and whose they are."""

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.draws import Floats, pick, uniforms
from headgate.trace.spec import TraceSpec

KIND_STREAM = 2
COLUMNS = {
    "dispatch": pa.schema([("subscription", pa.string())]),
    "subscribe": pa.schema([("client", pa.string()), ("consumer", pa.string()), ("consumer_id", pa.int64())]),
    "unload": pa.schema([("bundle", pa.string()), ("duration_ms", pa.int64())]),
}
"""Columns of each kind alone; a trace has them if it has rows of that kind."""
NOT_THERE = {
    "dispatch": ("producer", "connection"),
    "subscribe": ("producer", "connection", "messages", "bytes"),
    "unload": ("topic", "producer", "connection", "messages", "bytes"),
}
"""Columns of publishes that are null in rows of each kind."""
BUNDLES = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")
"""Ranges of the hash of topics' names, a bundle each: as many a namespace as Pulsar makes by default."""
DURATIONS_MS = np.array([5, 20, 50, 100, 200, 500, 2_000, 90_000], np.int64)
"""How long an unload needs, all equally likely; the last is longer than a broker waits by default."""


def with_kinds(table: pa.Table, spec: TraceSpec, block: int) -> pa.Table:
    """The publishes of a block, the shares of the spec made rows of other kinds; as it is where all are 0.

    Nothing but the kind and the columns of kinds changes in any row.
    """
    shares = {"dispatch": spec.dispatch_share, "subscribe": spec.subscribe_share, "unload": spec.unload_share}
    if not any(shares.values()):
        return table
    chosen, which = uniforms(spec.seed, KIND_STREAM, block, 2, len(table))
    topics = table["topic"]
    low = 0.0
    for kind, share in shares.items():
        if share:
            of_kind = pa.array((chosen >= low) & (chosen < low + share))
            table = _made(table, kind, of_kind, _columns(kind, spec, which, topics))
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
