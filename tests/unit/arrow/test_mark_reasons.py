"""The reason of a mark: which limiter or condition it is, and of a limiter the unit that ran out."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.arrow.mark_reasons import reasons_of, unit_of
from headgate.core.reasons import HeldReason
from headgate.quota.usage.topic_query import RAN_OUT
from headgate.throttle.schemas import MARKS

TYPES = {"topic": "TopicPublishRate", "broker": "BrokerPublishRate", "group": "ResourceGroupPublishRate"}


def marks(*rows):
    return pa.Table.from_pylist([{"action": "mark"} | row for row in rows], MARKS)


def limited(scope, messages=None, bytes_=None):
    """A mark of a limiter. messages, bytes_: balance and rate."""
    names = ("balance", "per_s")
    balances = {
        f"{unit}_{name}": value
        for unit, pair in (("messages", messages), ("bytes", bytes_))
        for name, value in zip(names, pair or (None, None), strict=True)
    }
    return {"scope": scope, "type": TYPES[scope]} | balances


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (limited("topic", messages=(0, 10)), "TOPIC_PUBLISH_RATE_MESSAGES"),
        (limited("topic", messages=(3, 10), bytes_=(-1, 10)), "TOPIC_PUBLISH_RATE_BYTES"),
        (limited("broker", bytes_=(0, 10)), "BROKER_PUBLISH_RATE_BYTES"),
        (limited("broker", messages=(-1, 10), bytes_=(5, 10)), "BROKER_PUBLISH_RATE_MESSAGES"),
        (limited("group", messages=(-10, 10), bytes_=(-30, 10)), "GROUP_QUOTA_BYTES"),
        (limited("group", messages=(-30, 10), bytes_=(-10, 10)), "GROUP_QUOTA_MESSAGES"),
        (limited("group", messages=(0, 0)), "GROUP_BLOCKED"),
        (limited("group", messages=(9, 10), bytes_=(0, 0)), "GROUP_BLOCKED"),
        ({"type": "ConnectionMaxPendingPublishRequestsExceeded"}, "CONNECTION_PENDING_REQUESTS"),
        ({"scope": "connection", "type": "ConnectionOutboundBufferFull"}, "CONNECTION_OUTBOUND_BUFFER"),
        ({"scope": "io_thread", "type": "IOThreadMaxPendingPublishBytesExceeded"}, "IO_THREAD_PENDING_BYTES"),
        ({"scope": "connection", "type": "ConnectionPauseReceivingCooldownRateLimit"}, "CONNECTION_COOLDOWN"),
    ],
)
def test_a_mark_has_the_reason_of_its_limiter_and_unit_or_of_its_condition(row, expected):
    assert [HeldReason(expected)] == reasons_of(marks(row)).to_pylist()


def test_rows_that_hold_nothing_have_no_reason():
    assert [None] == reasons_of(marks({"action": "open", "connection": "c"})).to_pylist()


def test_no_marks_have_no_reasons():
    assert [] == reasons_of(marks()).to_pylist()


PAIRS = st.none() | st.tuples(st.integers(-(2**53), 2**53), st.integers(0, 2**31))


@given(st.lists(st.tuples(PAIRS, PAIRS), min_size=1, max_size=20))
def test_the_unit_is_that_of_the_sql(pairs):
    rows = marks(*(limited("topic", *pair) for pair in pairs))
    with duckdb.connect() as connection:
        connection.register("t", rows.select([name for name in rows.column_names if name.endswith(("nce", "per_s"))]))
        in_sql = [unit for (unit,) in connection.execute(f"SELECT {RAN_OUT} FROM t").fetchall()]
    assert in_sql == unit_of(rows).to_pylist()
