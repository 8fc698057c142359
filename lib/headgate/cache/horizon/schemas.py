"""Arrow schemas of mode horizon (entry-cache 14). docs/tables.md has the columns of the tables."""

from enum import StrEnum

import pyarrow as pa

from headgate.arrow.schemas import TIMESTAMP
from headgate.cache.schemas import METRICS, ROWS


class Mark(StrEnum):
    """What stands between the rows of a broker, for all of its shards.

    OPEN: a second begins; SECOND: it has ended; TELL: tell of it as it is; CHANGE: conf files have changed;
    END: a round ends.
    """

    OPEN = "open"
    SECOND = "second"
    TELL = "tell"
    CHANGE = "change"
    END = "end"


ITEMS = pa.schema(
    [
        ("broker", pa.string()),
        ("place", pa.int64()),
        ("round", pa.int64()),
        ("shard", pa.int32()),
        ("mark", pa.string()),
        ("at_us", pa.int64()),
        ("values", pa.string()),
        *(ROWS.field(name) for name in ROWS.names if name != "broker"),
    ]
)
"""The table `cache_rounds`: the rows of a broker that are well formed and in time, in order, and marks between them.

place: counts them; shard: null is all; mark: null is a row; at_us and values are of a mark.
"""

REPORTS = pa.schema(
    [
        ("broker", pa.string()),
        ("round", pa.int64()),
        ("shard", pa.int32()),
        ("at_us", pa.int64()),
        ("rows", pa.int64()),
        ("current_bytes", pa.int64()),
        ("inserted_bytes", pa.int64()),
        ("limit_bytes", pa.int64()),
        ("watermark", pa.float64()),
        ("laps", pa.list_(pa.int64())),
        ("keys", pa.list_(pa.list_(pa.int64()))),
        ("sizes", pa.list_(pa.int64())),
    ]
)
"""What a shard says at the end of a round. laps, keys, sizes: its queue, line by line."""

HORIZONS = pa.schema(
    [
        ("broker", pa.string()),
        ("round", pa.int64()),
        ("event_time", TIMESTAMP),
        ("rows", pa.int64()),
        ("used_bytes", pa.int64()),
        ("inserted_bytes", pa.int64()),
        ("limit_bytes", pa.int64()),
        ("goal_bytes", pa.int64()),
        ("laps", pa.int64()),
        ("key", pa.list_(pa.int64())),
    ]
)
"""The table `cache_horizons`: what became of each round. goal_bytes, laps, key: null where nothing had to leave."""

_OF_PARTS = (
    ("place", pa.int64()),
    ("shard", pa.int32()),
    ("left_bytes", pa.int64()),
    ("goal_bytes", pa.int64()),
    ("limit_bytes", pa.int64()),
)
PARTS = pa.schema([*METRICS, *_OF_PARTS])
"""METRICS of one shard. place: of the mark at which it tells.

left_bytes: after the last horizon, goal_bytes: those that it aimed at, of all shards.
"""
