"""Rows of what came for a limiter, of which tests fill in what they need."""

import pyarrow as pa

from headgate.quota.usage.excess import TRAFFIC, Traffic

POOL = ("group", "pool")
UNIT_RATES = {"messages": 100, "bytes": 1000}
FREE = {"by_group": 0, "held": 0}
WAITS = {"by_group": 0}
BOTH = {"by_broker": 1, "by_group": 1}
BY_BROKER = {"by_broker": 1, "by_group": 0}
BY_TOPIC = {"by_topic": 1, "by_group": 0}


def traffic(*rows):
    """rows: (second, name, messages), and what differs from a second in which the group's limiter throttled it."""
    values = [
        {"second_s": second, "broker": "b", "group": "pool", "name": name, "messages": messages, "bytes": messages}
        | {"by_topic": 0, "by_broker": 0, "by_group": 1, "held": 1}
        | (more[0] if more else {})
        for second, name, messages, *more in rows
    ]
    return Traffic(pa.Table.from_pylist(values, TRAFFIC))


def offered(second, name, came, let_in, failed=0, **more):
    return second, name, came, {"let_in_messages": let_in, "failed_messages": failed} | more


def sized(messages, size):
    return {"messages": messages, "bytes": size}


def on_broker_c(second, name, came):
    return second, name, came, {"broker": "c", "bytes": 1}
