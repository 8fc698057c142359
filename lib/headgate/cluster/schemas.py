"""Tables of a collector and an enforcer (clusters 1, 3)."""

from typing import Final

import pyarrow as pa

_TIME: Final = pa.timestamp("us", tz="UTC")

COUNTERS: Final = pa.schema(
    [
        ("event_time", _TIME),
        ("kind", pa.string()),
        ("at_us", pa.int64()),
        ("from_us", pa.int64()),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("direction", pa.string()),
        ("messages", pa.int64()),
        ("bytes", pa.int64()),
        ("throttled", pa.int64()),
        ("seq", pa.int64()),
        ("collector", pa.string()),
        ("messages_total", pa.int64()),
        ("bytes_total", pa.int64()),
        ("throttled_total", pa.int64()),
    ]
)
BROKER_LOOKS: Final = pa.schema(
    [
        ("at_us", pa.int64()),
        ("cluster", pa.string()),
        ("broker", pa.string()),
        ("seq", pa.int64()),
        ("collector", pa.string()),
        ("took_ms", pa.int64()),
        ("topics", pa.int64()),
        ("error", pa.string()),
        ("cache_hits_per_s", pa.float64()),
        ("cache_misses_per_s", pa.float64()),
        ("cache_used_bytes", pa.int64()),
    ]
)
ENFORCED: Final = pa.schema(
    [
        ("at_us", pa.int64()),
        ("by", pa.string()),
        ("epoch", pa.int64()),
        ("resource", pa.string()),
        ("path", pa.string()),
        ("action", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("found", pa.string()),
        ("reason", pa.string()),
    ]
)
OF_ENFORCER: Final = {"enforced": ENFORCED}
OF_COLLECTOR: Final = {"counters": COUNTERS, "broker_looks": BROKER_LOOKS}
