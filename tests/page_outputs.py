"""Outputs for tests of the page: small tables of every kind, written as jobs write them, and one of many topics."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from headgate.arrow.topic_names import named_rows
from headgate.cache.schemas import CACHE_METRICS
from headgate.cluster.schemas import BROKER_LOOKS, COUNTERS, ENFORCED
from headgate.replay.schemas import REPLAY_GROUPS
from headgate.sizing.sweep import CACHE_SWEEP
from headgate.throttle.schemas import CONNECTIONS, CONTROL, DISPATCH_DECISIONS, MARKS, TOPIC_USAGE

SECOND_US = 1_000_000
START_US = 1_767_603_600 * SECOND_US
"""2026-01-05T09:00:00Z."""
ORDERS, CLICKS = "persistent://acme/shop/orders", "persistent://globex/ads/clicks"
HOSTILE = "persistent://acme/shop/<script>document.title='taken'</script>&\"'`${1}"
LONG = f"persistent://acme/shop/{'long-' * 55}end"
"""298 characters."""


def write(folder: Path, name: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """Append rows; columns that they leave out are null."""
    table = pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema)
    write_deltalake(f"{folder}/{name}", named_rows(table), mode="append")


def usage(second: int, topic: str, messages: int, admitted: int | None, **more: Any) -> dict[str, Any]:
    """A row of topic_usage. admitted: None in admitted traffic."""
    counts = dict.fromkeys(TOPIC_USAGE.names[3:10], 0)
    row = counts | {"event_time": START_US + second * SECOND_US, "broker": "b1", "topic": topic, "publishes": messages}
    row |= {"messages": messages, "bytes": 100 * messages}
    if admitted is not None:
        late = dict.fromkeys(TOPIC_USAGE.names[10:], 0)
        row |= late | {"admitted_publishes": admitted, "admitted_messages": admitted, "admitted_bytes": 100 * admitted}
    return row | more


def mark(second: int, topic: str | None, scope: str, limiter: str, **more: Any) -> dict[str, Any]:
    at_us = START_US + second * SECOND_US
    row = {
        "at_ns": at_us * 1000,
        "event_time": at_us,
        "broker": "b1",
        "topic": topic,
        "producer": "p",
        "connection": "c",
    }
    rates = {"messages_balance": -1, "messages_per_s": 40}
    return row | {"scope": scope, "limiter": limiter, "action": "mark", "type": "TopicPublishRate"} | rates | more


def throttled(folder: Path, seconds: int = 20) -> Path:
    """Orders get 40 of 60 messages a second, held by a group; names that do harm elsewhere; clicks without a limit."""
    rows, marks = [], []
    for second in range(seconds):
        held = {"throttled_publishes": 20, "throttled_by_group": 20, "throttled_ns": 500_000_000}
        rows += [usage(second, ORDERS, 60, 40, **held), usage(second, CLICKS, 10, 10)]
        rows += [usage(second, HOSTILE, 2, 1, throttled_publishes=1, throttled_by_topic=1, throttled_ns=1_000_000)]
        rows += [usage(second, LONG, 1, 1)]
        marks += [mark(second, ORDERS, "group", "gold", type="ResourceGroupPublishRate")]
        marks += [mark(second, HOSTILE, "topic", HOSTILE, bytes_balance=-5, bytes_per_s=50, messages_balance=None)]
    write(folder, "topic_usage", TOPIC_USAGE, rows)
    write(folder, "marks", MARKS, marks)
    limit = {"kind": "limit", "source": "conf", "seq": 0}
    control = [
        limit | {"effective_time": 0, "scope": "default", "name": "", "messages_per_s": 70},
        limit | {"effective_time": START_US + 5 * SECOND_US, "scope": "topic", "name": ORDERS, "messages_per_s": 50},
        limit | {"effective_time": START_US + 7 * SECOND_US, "scope": "group", "name": "gold", "broker": "b1"}
        | {"messages_per_s": 40, "source": "quota"},
    ]  # fmt: skip
    write(folder, "control", CONTROL, control)
    reads = dict.fromkeys(DISPATCH_DECISIONS.names[4:], 0)
    row = {"event_time": START_US + (seconds - 1) * SECOND_US, "broker": "b1", "topic": ORDERS, "subscription": "<b>s"}
    write(folder, "dispatch_decisions", DISPATCH_DECISIONS, [reads | row | {"reads": 9, "held_by_subscription": 4}])
    return folder


def conditions(folder: Path) -> Path:
    """Two connections, one of which is paused still."""
    full = {"type": "ConnectionOutboundBufferFull"}
    marks = [
        mark(30, None, "connection", "c1", **full | {"connection": "c1"}),
        mark(31, None, "connection", "c1", **full | {"connection": "c1", "action": "unmark"}),
        mark(31, None, "connection", "c2", **full | {"connection": "c2"}),
    ]
    write(folder, "marks", MARKS, marks)
    at_ns = (START_US + 31 * SECOND_US) * 1000
    row = {"at_ns": at_ns, "event_time": at_ns // 1000, "broker": "b1"}
    ended = {"auto_read": True, "paused_ns": 10**9, "outbound_buffer_ns": 10**9}
    rows = [row | {"connection": "c1", "at_ns": at_ns - 10**9, "auto_read": False}, row | {"connection": "c1"} | ended]
    write(folder, "connections", CONNECTIONS, [*rows, row | {"connection": "c2", "auto_read": False}])
    return folder


def cached(folder: Path, topic: str = ORDERS) -> Path:
    """A broker's cache of 90 hits and 9 misses, in two seconds of which the second is written twice; the topic begins
    anew in it. The last rows come first in the file.
    """
    numbers = dict.fromkeys((field.name for field in CACHE_METRICS if pa.types.is_integer(field.type)), 0)
    rows = []
    for batch, second, hits, of_topic in ((0, 0, 10, 10), (1, 1, 60, 6), (2, 1, 100, 46)):
        at_us = START_US + second * SECOND_US
        row = numbers | {"batch_id": batch, "broker": "b1", "second": at_us, "until": at_us + SECOND_US, "hits": hits}
        row |= {"misses": hits // 10, "used_bytes": hits * 50_000, "hits_rate": 50.0, "misses_rate": 5.0}
        rows += [row, row | {"topic": topic, "hits": of_topic}]
    write(folder, "cache_metrics", CACHE_METRICS, rows[::-1])
    return folder


def collected(folder: Path) -> Path:
    """Two looks at two brokers, of which one fails; a limit that was pushed, and a topic that ignores it."""
    looks, counters = [], []
    for number in range(2):
        at_us = START_US + number * 5 * SECOND_US
        look = {"at_us": at_us, "cluster": "c", "seq": number, "took_ms": 12}
        looks += [look | {"broker": "b1", "topics": 3}, look | {"broker": "b2", "error": "no answer <i>"}]
        row = {"event_time": at_us, "at_us": at_us, "from_us": at_us - 5 * SECOND_US, "broker": "b1", "topic": ORDERS}
        counters += [row | {"direction": "in", "messages": 100, "bytes": 1000, "kind": "usage"}]
    write(folder, "broker_looks", BROKER_LOOKS, looks)
    write(folder, "counters", COUNTERS, counters)
    done = {"at_us": START_US, "resource": "acme", "by": "host"}
    write(
        folder,
        "enforced",
        ENFORCED,
        [
            done | {"path": "namespaces/acme/shop", "action": "push", "after": '{"publishThrottlingRateInMsg": 30}'},
            done | {"path": ORDERS, "action": "not_enforceable", "reason": "exceeds its cap by 40 %"},
            done | {"action": "lease"},
        ],
    )
    return folder


def replayed(folder: Path) -> Path:
    """A replay of two conf folders below the output, with a report, one at a deeper place without, and a sweep."""
    row = {"group": "gold", "offered_msgs": 200, "admitted_msgs": 150, "failed_msgs": 50, "delayed_msgs": 20}
    for place in ("tried", "deep/er"):
        write(folder / place, "replay_groups", REPLAY_GROUPS, [row | {"conf": "today"}, row | {"conf": "<wider>"}])
    entry = {"policy": "pip430", "max_bytes": 1 << 20, "hits": 30, "misses": 10}
    sweep = [entry | {"is_present": True}, entry | {"is_present": False, "policy": "sieve", "hits": 36, "misses": 4}]
    write(folder / "swept", "cache_sweep", CACHE_SWEEP, [*sweep, entry | {"broker": "b1", "is_present": True}])
    (folder / "tried" / "report.html").write_text("<!doctype html><title>r</title><style>p{color:red}</style><p>Report")
    return folder


def many_topics(folder: Path, topics: int, seconds: int) -> Path:
    """Every topic publishes every second; one in ten is held."""
    names = pa.array([f"persistent://t{n % 50}/ns/topic-{n:05}" for n in range(topics)])
    held = pa.array([20 if n % 10 == 0 else 0 for n in range(topics)], pa.int64())
    for second in range(seconds):
        columns = {name: pa.array([0] * topics, pa.int64()) for name in TOPIC_USAGE.names[3:]}
        columns |= {"publishes": pa.array([100] * topics, pa.int64()), "messages": pa.array([100] * topics, pa.int64())}
        columns |= {"bytes": pa.array([10_000] * topics, pa.int64()), "throttled_publishes": held}
        columns |= {"throttled_by_topic": held, "throttled_ns": pc.multiply(held, 1_000_000)}
        columns |= {"admitted_messages": pc.subtract(columns["messages"], held), "admitted_bytes": columns["bytes"]}
        columns |= {"admitted_publishes": columns["admitted_messages"]}
        at = pa.array([START_US + second * SECOND_US] * topics, TOPIC_USAGE.field("event_time").type)
        rows = pa.table({"event_time": at, "broker": pa.array(["b1"] * topics), "topic": names} | columns, TOPIC_USAGE)
        write_deltalake(f"{folder}/topic_usage", named_rows(rows), mode="append")
    return folder
