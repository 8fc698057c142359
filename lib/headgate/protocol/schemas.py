"""Arrow schemas of the throttle protocol's job. docs/tables.md has every column."""

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS, TIMESTAMP

_BUCKETS = pa.list_(pa.struct([("balance", pa.int64()), ("rate", pa.int64())]))
_TRIPS = pa.list_(pa.struct([("reason", pa.int32()), ("ordinal", pa.int64()), ("buckets", _BUCKETS)]))

INPUTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("kind", pa.string()),
        ("at_ms", pa.int64()),
        ("connection", pa.string()),
        ("producer_id", pa.int64()),
        ("topic", pa.string()),
        ("producer", pa.string()),
        ("supports_throttle", pa.bool_()),
        ("trips", _TRIPS),
        ("trigger", pa.bool_()),
        ("reason", pa.int32()),
        ("ordinal", pa.int64()),
        ("buckets", _BUCKETS),
        ("request_id", pa.int64()),
    ]
)
"""What the broker's machines are told (throttle-protocol 6). producer: its name, by which marks find its id."""

ROWS = INPUTS.append(pa.field("at_ns", pa.int64())).append(pa.field("by_marks", pa.bool_()))
"""Inputs on their way and in state. at_ns: the time of the row of `marks` that it is of, null: of none.
by_marks: made of rows of `marks`; ids and ordinals are found as it is fed.
"""

DECISIONS = pa.schema(
    [
        ("connection", pa.string()),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("at_ms", pa.int64()),
        ("request_id", pa.int64()),
        ("producer_id", pa.int64()),
        ("topic", pa.string()),
        ("reason", pa.int32()),
        ("pause_for_millis", pa.int64()),
        ("until_ms", pa.int64()),
        ("command_kind", pa.string()),
        ("cause", pa.string()),
        ("off_ms", pa.int64()),
    ]
)
"""The table `throttle_decisions` (throttle-protocol 6); (connection, seq) is its key."""

COUNTS = pa.schema(
    [
        ("connection", pa.string()),
        ("name", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("value", pa.int64()),
    ]
)
"""What counters rose by in a batch."""
METRICS = pa.schema([("batch_id", pa.int64()), *COUNTS])
"""The table `throttle_metrics` (throttle-protocol 6); all but `value` is its key."""

TIME = pa.schema([("source", pa.string()), ("at_ms", pa.int64()), ("finish", pa.bool_())])
"""A source has come to `at_ms`; null: all have. finish: nothing more comes of that millisecond."""
TICKS = pa.schema([("at_ms", pa.int64()), ("finish", pa.bool_()), ("written_at", TIMESTAMP)])
"""The table `protocol_ticks`: the time to which all sources have come."""

PROGRESS = pa.schema(
    [
        ("key", pa.string()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("high_ms", pa.int64()),
        ("done_ms", pa.int64()),
        ("kept", pa.int64()),
        ("due_ms", pa.int64()),
    ]
)
"""How far a key is: rows of this batch, those of them behind the watermark, the highest time, the watermark, rows that
wait for it, and when a machine acts next by itself (null: never).
"""


WRITTEN: dict[str, pa.Schema] = {
    "throttle_decisions": DECISIONS,
    "throttle_metrics": METRICS,
    "protocol_dead_letters": DEAD_LETTERS,
}
"""What a batch brings."""
OF_PROTOCOL: dict[str, pa.Schema] = {**WRITTEN, "protocol_ticks": TICKS}
"""Beside those of the throttle job whose marks are followed."""
