"""Arrow schemas of the entry cache's job. docs/tables.md has every column."""

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS, TIMESTAMP
from headgate.core.cache.reasons import Cause

COUNTS_BY_NAME = pa.map_(pa.string(), pa.int64())

EVENTS = pa.schema(
    [
        ("event_time", TIMESTAMP),
        ("seq", pa.int64()),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("kind", pa.string()),
        ("cursor", pa.string()),
        ("ledger", pa.int64()),
        ("entry", pa.int64()),
        ("count", pa.int64()),
        ("sizes", pa.list_(pa.int64())),
        ("conf", pa.string()),
    ]
)
"""Cache events in a table; conf is a JSON object."""
INPUT = EVENTS.set(0, pa.field("event_time", pa.string()))
"""What a cache event has in an input, with its type in JSON (entry-cache 2)."""

_OF_ROWS = ("seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes", "conf", "broker")
ROWS = pa.schema(
    [
        ("event_time_us", pa.int64()),
        *(EVENTS.field(name) for name in _OF_ROWS),
        ("raw", pa.string()),
        ("source", pa.string()),
        ("offset", pa.int64()),
    ]
)
"""Events on their way and in state, the fields of `core.cache.rows.Row` first. A value that could not be read is one
out of range: an empty name, -1, no sizes. raw: of a row that has such a value.
"""

CONTROL = pa.schema(
    [
        ("kind", pa.string()),
        ("event_time", TIMESTAMP),
        ("conf", pa.string()),
        ("changes", pa.string()),
        ("finish", pa.bool_()),
        ("written_at", TIMESTAMP),
    ]
)
"""The table `cache_control`: what conf files said, from when on, and times to which all brokers have come."""

_USE = ("hits", "hit_bytes", "misses", "storage_bytes", "storage_reads", "used_bytes", "entries")
"""Of a broker and of a topic."""
_OF_BROKER = (
    *("inserted", *(cause.value for cause in Cause), "size_passes", "requeues", "visits", "max_pass_visits"),
    *("peak_bytes", "overshoot_bytes", "finished_bytes", "pinned_bytes"),
)
RATES = ("hits_rate", "hits_throughput", "misses_rate", "misses_throughput")

METRICS = pa.schema(
    [
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("second", TIMESTAMP),
        ("until", TIMESTAMP),
        *((name, pa.int64()) for name in (*_USE, *_OF_BROKER)),
        *((name, pa.float64()) for name in RATES),
        ("misses_by_reason", COUNTS_BY_NAME),
        ("dead_letters", COUNTS_BY_NAME),
    ]
)
"""What is told of a second."""
CACHE_METRICS = METRICS.insert(0, pa.field("batch_id", pa.int64()))
"""The table `cache_metrics` (entry-cache 13); (broker, topic, second, until, batch_id) is its key."""

EVICTIONS = pa.schema(
    [
        ("broker", pa.string()),
        ("event_time", TIMESTAMP),
        ("seq", pa.int64()),
        ("topic", pa.string()),
        ("ledger", pa.int64()),
        ("entry", pa.int64()),
        ("cause", pa.string()),
    ]
)
"""The table `cache_evictions`."""

PROGRESS = pa.schema(
    [
        ("broker", pa.string()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("dead_letters", pa.int64()),
        ("event_time", TIMESTAMP),
        ("watermark", TIMESTAMP),
        ("waiting", pa.int64()),
        ("is_open", pa.bool_()),
    ]
)
"""How far a broker is: rows that came in a batch, rows that were refused in it, those of them that were late, the
highest time of its rows that may act, the one up to which they were fed, rows that wait for it, and whether a second is
not told of.
"""
CACHE_BATCHES = PROGRESS.insert(0, pa.field("batch_id", pa.int64())).remove(PROGRESS.names.index("is_open") + 1)
"""The table `cache_batches`: a row a broker that rows came for."""


WRITTEN: dict[str, pa.Schema] = {
    "cache_metrics": CACHE_METRICS,
    "cache_evictions": EVICTIONS,
    "dead_letters": DEAD_LETTERS,
    "cache_batches": CACHE_BATCHES,
}
"""What a batch brings."""
OF_CACHE: dict[str, pa.Schema] = {**WRITTEN, "cache_control": CONTROL}
