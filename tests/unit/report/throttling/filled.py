"""Tables of a throttle job of which tests of blame and fault fill in what they need."""

from datetime import UTC, datetime

import pyarrow as pa

from headgate.conf.resource_groups import ResourceGroups
from headgate.throttle.schemas import MARKS, TOPIC_USAGE

A, B, C = "persistent://acme/n/a", "persistent://acme/n/b", "non-persistent://else/n/c"
D, E = "persistent://third/n/d", "persistent://last/n/e"
NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)
GOLD = ResourceGroups(tenants=dict.fromkeys(("acme", "else"), "gold"))
MESSAGES, BYTES = (0, 5), (5, 0)
"""What a limiter has left of messages and of bytes."""


def fill(tables, usage, marks=()):
    """usage: (topic, publishes, throttled, throttled_ns) by second. marks: (topic, scope, limiter, action)."""
    columns = ("topic", "publishes", "throttled_publishes", "throttled_ns")
    rows = [
        dict(zip(columns, row, strict=True)) | {"messages": row[1], "bytes": row[1], "event_time": NINE}
        for row in usage
    ]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    names = ("topic", "scope", "limiter", "action")
    rows = [dict(zip(names, mark, strict=True)) | {"event_time": NINE} for mark in marks]
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)


def second(n):
    return NINE.replace(second=n)


def minute_of(number):
    return NINE.replace(minute=number)


def held_by(*minutes, limiter=("group", "gold"), **more):
    scope, name = limiter
    mark = {"topic": A, "scope": scope, "limiter": name, "action": "mark", "broker": "b1"} | more
    return [mark | {"event_time": minute_of(minute)} for minute in minutes]
