"""Arrow schemas of everything that is written: tables, blocks between the stages. docs/tables.md has every column."""

import pyarrow as pa

from headgate.arrow.schemas import TIMESTAMP
from headgate.core import usage
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.rows.kinds import KINDS, PUBLISH

TRAFFIC = {kind.block: kind.schema for kind in KINDS}
"""Kinds of blocks of traffic, with the schemas of their rows."""
EVENTS = TRAFFIC[PUBLISH.block]
"""A publish on its way to the operator."""

TICKS = pa.schema([("broker", pa.string()), ("event_time_us", pa.int64()), ("finish", pa.bool_())])
"""Time has come to `event_time_us` on `broker` (null: on all). `finish`: nothing more will come, close what is open."""

CONTROL = pa.schema(
    [
        ("effective_time", TIMESTAMP),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("broker", pa.string()),
        ("scope", pa.string()),
        ("name", pa.string()),
        ("group_name", pa.string()),
        ("messages_per_s", pa.int64()),
        ("bytes_per_s", pa.int64()),
        ("subscribes_per_period", pa.int64()),
        ("period_s", pa.int64()),
        ("relative_to_publish_rate", pa.bool_()),
        ("starts_per_s", pa.int64()),
        ("timeout_ms", pa.int64()),
        ("max_pending_publish_requests", pa.int64()),
        ("max_publish_buffer_mib", pa.int64()),
        ("io_threads", pa.int64()),
        ("pause_if_unwritable", pa.bool_()),
        ("cooldown_ms", pa.int64()),
        ("cooldown_permits", pa.int64()),
        ("cooldown_period_ms", pa.int64()),
        ("source", pa.string()),
        ("written_at", TIMESTAMP),
    ]
)

MARKS = pa.schema(
    [
        ("at_ns", pa.int64()),
        ("event_time", TIMESTAMP),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("producer", pa.string()),
        ("connection", pa.string()),
        ("scope", pa.string()),
        ("limiter", pa.string()),
        ("type", pa.string()),
        ("action", pa.string()),
        ("seq", pa.int64()),
        ("messages_balance", pa.int64()),
        ("messages_per_s", pa.int64()),
        ("bytes_balance", pa.int64()),
        ("bytes_per_s", pa.int64()),
    ]
)

HELD_NS = {
    ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED: "pending_requests_ns",
    ThrottleType.IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED: "io_thread_bytes_ns",
    ThrottleType.TOPIC_PUBLISH_RATE: "topic_rate_ns",
    ThrottleType.RESOURCE_GROUP_PUBLISH_RATE: "group_rate_ns",
    ThrottleType.BROKER_PUBLISH_RATE: "broker_rate_ns",
    ThrottleType.CONNECTION_OUTBOUND_BUFFER_FULL: "outbound_buffer_ns",
    ThrottleType.CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT: "cooldown_ns",
}

CONNECTIONS = pa.schema(
    [
        ("at_ns", pa.int64()),
        ("event_time", TIMESTAMP),
        ("broker", pa.string()),
        ("connection", pa.string()),
        ("auto_read", pa.bool_()),
        ("cause", pa.string()),
        ("scope", pa.string()),
        ("limiter", pa.string()),
        ("paused", pa.int64()),
        ("resumed", pa.int64()),
        ("throttled_connections", pa.int64()),
        ("paused_ns", pa.int64()),
    ]
    + [(HELD_NS[type_], pa.int64()) for type_ in ThrottleType]
)

CONNECTION_TOPICS = pa.schema(
    [
        ("event_time", TIMESTAMP),
        ("broker", pa.string()),
        ("connection", pa.string()),
        ("topic", pa.string()),
        ("rate_limited", pa.int64()),
        ("rate_limited_by_quotas", pa.int64()),
        ("marked", pa.int64()),
    ]
)

USAGE_NAMES = {
    usage.PUBLISHES: "publishes",
    usage.MESSAGES: "messages",
    usage.BYTES: "bytes",
    usage.THROTTLED: "throttled_publishes",
    usage.BY_TOPIC: "throttled_by_topic",
    usage.BY_BROKER: "throttled_by_broker",
    usage.BY_GROUP: "throttled_by_group",
    usage.THROTTLED_NS: "throttled_ns",
    usage.ADMITTED: "admitted_publishes",
    usage.ADMITTED_MESSAGES: "admitted_messages",
    usage.ADMITTED_BYTES: "admitted_bytes",
    usage.DELAYED: "delayed_publishes",
    usage.DELAY_NS: "delay_ns",
    usage.MAX_DELAY_NS: "max_delay_ns",
    usage.FAILED: "failed_publishes",
    usage.FAILED_MESSAGES: "failed_messages",
    usage.FAILED_BYTES: "failed_bytes",
}
OFFERED_ONLY = range(usage.ADMITTED, usage.USAGE_COLUMNS)

TOPIC_USAGE = pa.schema(
    [("event_time", TIMESTAMP), ("broker", pa.string()), ("topic", pa.string())]
    + [(USAGE_NAMES[column], pa.int64()) for column in range(usage.USAGE_COLUMNS)]
)

DISPATCH_LEVELS = ("broker", "topic", "subscription", "group")
"""Levels of dispatches in the order in which they are examined; a replicator's own is a subscription's."""
DISPATCH_COUNTS = (
    *("reads", "messages", "bytes", "allowed_reads", "allowed_messages", "allowed_bytes"),
    *(f"held_by_{level}" for level in DISPATCH_LEVELS),
    *("delayed_reads", "delay_ns", "max_delay_ns"),
)
"""What is counted of a subscription and second."""

DISPATCH_DECISIONS = pa.schema(
    [("event_time", TIMESTAMP), ("broker", pa.string()), ("topic", pa.string()), ("subscription", pa.string())]
    + [(name, pa.int64()) for name in DISPATCH_COUNTS]
)

SUBSCRIBE_DECISIONS = pa.schema(
    [
        ("event_time", TIMESTAMP),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("client", pa.string()),
        ("consumer", pa.string()),
        ("consumer_id", pa.int64()),
        ("seq", pa.int64()),
        ("allowed", pa.bool_()),
        ("left", pa.int64()),
        ("subscribes_per_period", pa.int64()),
        ("period_s", pa.int64()),
    ]
)

UNLOAD_OUTCOMES = pa.schema(
    [
        ("event_time", TIMESTAMP),
        ("broker", pa.string()),
        ("bundle", pa.string()),
        ("seq", pa.int64()),
        ("start_time", TIMESTAMP),
        ("end_time", TIMESTAMP),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("waited_ns", pa.int64()),
        ("outcome", pa.string()),
        ("starts_per_s", pa.int64()),
        ("timeout_ms", pa.int64()),
    ]
)
"""The table `unloads`: what came of each unload of a bundle."""

PROGRESS = pa.schema(
    [
        ("key", pa.string()),
        ("broker", pa.string()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("event_time_us", pa.int64()),
        ("waiting", pa.int64()),
        ("producers", pa.int64()),
        ("subscriptions", pa.int64()),
        ("is_open", pa.bool_()),
    ]
)
"""How far one domain is: rows of this batch and those of them that came behind its clock, highest time, what waits,
whether time alone would bring output. A broker that has no domain has a row for its time alone.

waiting: marks of publishes that are not released yet, and subscriptions. producers: those that they are of, each once.
subscriptions: those that wait.
"""

BATCHES = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("written_at", TIMESTAMP),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("dead_letters", pa.int64()),
        ("marks", pa.int64()),
        ("usage_rows", pa.int64()),
        ("event_time", TIMESTAMP),
        ("waiting", pa.int64()),
        ("open_domains", pa.int64()),
    ]
)
"""One row a batch that brought something, written after all its other rows."""
