"""Arrow schemas of the tables that a replay writes. docs/tables.md has every column."""

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS, TIMESTAMP

_CONF = [("conf", pa.string())]
_AMOUNTS = [(f"{what}_{unit}", pa.int64()) for what in ("offered", "admitted", "failed") for unit in ("msgs", "bytes")]
SUMS = (
    "offered_publishes",
    *(name for name, _ in _AMOUNTS),
    "delayed_publishes",
    "failed_publishes",
    "throttled_publishes",
    "throttled_by_topic",
    "throttled_by_broker",
    "throttled_by_group",
)
"""Counts that add up over topics and time."""

REPLAY_LIMITS = pa.schema(
    [
        *_CONF,
        ("group", pa.string()),
        ("broker", pa.string()),
        ("event_time", TIMESTAMP),
        ("limit_msgs", pa.int64()),
        ("limit_bytes", pa.int64()),
    ]
)
REPLAY_SECONDS = pa.schema([*REPLAY_LIMITS, *((name, pa.int64()) for name in SUMS)])
_DELAYS = [("delayed_msgs", pa.int64())] + [(f"delay_{name}_ms", pa.float64()) for name in ("p50", "p99", "max")]
REPLAY_TENANTS = pa.schema(
    [
        *_CONF,
        ("group", pa.string()),
        ("tenant", pa.string()),
        *((name, pa.int64()) for name in SUMS),
        *_DELAYS,
        ("waiting_msgs", pa.int64()),
    ]
)
REPLAY_GROUPS = pa.schema(
    [
        *_CONF,
        ("group", pa.string()),
        ("quota_msgs", pa.int64()),
        ("quota_bytes", pa.int64()),
        ("brokers", pa.int64()),
        ("tenants", pa.int64()),
        *((name, pa.int64()) for name in SUMS),
        *_DELAYS,
        ("waiting_msgs", pa.int64()),
        ("overshoot_percent", pa.float64()),
        ("overshoot_max_percent", pa.float64()),
        ("fairness", pa.float64()),
    ]
)
TABLES = {
    "replay_groups": REPLAY_GROUPS,
    "replay_tenants": REPLAY_TENANTS,
    "replay_seconds": REPLAY_SECONDS,
    "replay_limits": REPLAY_LIMITS,
    "dead_letters": DEAD_LETTERS,
}

TENANT_SUMS = pa.schema(
    [("group", pa.string()), ("tenant", pa.string()), ("broker", pa.string()), ("max_delay_ns", pa.int64())]
    + [(name, pa.int64()) for name in SUMS]
)
"""What one key says of tenants, by broker."""
TENANT_DELAYS = pa.schema(
    [("group", pa.string()), ("tenant", pa.string()), ("bucket", pa.int64()), ("messages", pa.int64())]
)
"""What one key says of delays (replay.histogram)."""
GROUP_SHARES = pa.schema(
    [
        ("group", pa.string()),
        ("broker", pa.string()),
        ("admitted_msgs", pa.int64()),
        ("admitted_bytes", pa.int64()),
        ("fair_msgs", pa.float64()),
        ("fair_bytes", pa.float64()),
        ("worst_msgs", pa.int64()),
        ("worst_bytes", pa.int64()),
        ("seconds", pa.int64()),
    ]
)
"""What a broker was let have of a group in all, and what the exact max-min splits of all seconds add up to.

worst: the most that all brokers together were let have in one second, the same in all rows of a group,
as is seconds: from the first with traffic to the last.
"""
