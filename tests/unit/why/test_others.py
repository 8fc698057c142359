"""Why a subscription, a connection or an entry of the cache: throttling, slow consumers, others on it, no room."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headgate.arrow.topic_names import named_rows
from headgate.cache.schemas import CACHE_METRICS, EVICTIONS
from headgate.cli import main
from headgate.core.reasons import HeldReason
from headgate.errors import TableError
from headgate.tables.delta import Tables
from headgate.throttle.schemas import CONNECTIONS, MARKS, TOPIC_USAGE
from headgate.throttle.tables import throttle_tables
from headgate.why.cached import why_cached
from headgate.why.connections import why_connection
from headgate.why.subscriptions import why_subscription
from headgate.why.tables import OutputTables

TOPIC, OTHER = "persistent://acme/shop/orders", "persistent://acme/shop/other"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())


def rows_of(rows, schema):
    """Rows with the missing columns null, or 0 where they count."""
    zeros = {field.name: 0 for field in schema if pa.types.is_integer(field.type)}
    return pa.Table.from_pylist([zeros | row for row in rows], schema)


@pytest.fixture
def output(tmp_path):
    """Tables with 1,000 messages published at noon."""
    tables = throttle_tables(tmp_path)
    usage = [{"event_time": NOON, "broker": "b1", "topic": TOPIC, "publishes": 10, "messages": 1000}]
    tables.append("topic_usage", rows_of([one | {"admitted_messages": None} for one in usage], TOPIC_USAGE), "x", 0)
    return tmp_path


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"reads": 100, "allowed_reads": 95, "messages": 1000, "held_by_topic": 5}, HeldReason.NOT_HELD),
        ({"reads": 100, "allowed_reads": 90, "messages": 1000, "held_by_topic": 10}, HeldReason.TOPIC_DISPATCH_RATE),
        (
            {"reads": 100, "allowed_reads": 80, "messages": 500, "held_by_topic": 8, "held_by_group": 12},
            HeldReason.GROUP_DISPATCH_QUOTA,
        ),
        ({"reads": 100, "allowed_reads": 100, "messages": 899}, HeldReason.SLOW_CONSUMER),
        ({"reads": 100, "allowed_reads": 100, "messages": 900}, HeldReason.NOT_HELD),
        ({"reads": 0}, HeldReason.SLOW_CONSUMER),
    ],
)
def test_a_backlog_is_due_to_a_limit_or_to_slow_consumers(output, columns, reason):
    tables = throttle_tables(output)
    schema = pa.schema(list(tables._given["dispatch_decisions"]))
    row = {"event_time": NOON, "broker": "b1", "topic": TOPIC, "subscription": "s"}
    tables.append("dispatch_decisions", rows_of([row | columns], schema), "x", 0)
    found = why_subscription(OutputTables(output), TOPIC, "s")

    assert (reason, 1000, columns["reads"]) == (found.reason, found.published, found.reads)


def test_a_subscription_that_is_not_there_has_nearest_names(output):
    tables = throttle_tables(output)
    row = {"event_time": NOON, "broker": "b1", "topic": TOPIC, "subscription": "billing"}
    tables.append("dispatch_decisions", rows_of([row], pa.schema(list(tables._given["dispatch_decisions"]))), "x", 0)

    with pytest.raises(TableError, match=r"no dispatch of subscription 'biling'.*nearest: billing"):
        why_subscription(OutputTables(output), TOPIC, "biling")


def mark(at_s, action, scope, limiter, type_, topic=None):
    producer = None if topic is None else "p"
    said = {"scope": scope, "limiter": limiter, "type": type_, "action": action, "topic": topic, "producer": producer}
    at = datetime.fromtimestamp(NOON_S + at_s, UTC)
    where = {"broker": "b1", "connection": "c1", "event_time": at, "at_ns": (NOON_S + at_s) * 10**9}
    return said | where | {"messages_balance": -1, "messages_per_s": 5}


def test_a_connection_is_held_by_conditions_and_limits_and_topics_on_it_are_victims_of_the_others(output, capsys):
    tables = throttle_tables(output)
    buffer = ("connection", "c1", "ConnectionOutboundBufferFull")
    usage = [{"event_time": datetime.fromtimestamp(NOON_S + 30, UTC), "broker": "b1", "topic": OTHER, "publishes": 1}]
    tables.append("topic_usage", rows_of(usage, TOPIC_USAGE), "x", 1)
    rows = [
        mark(0, "attach", None, None, None, OTHER),
        mark(1, "mark", *buffer),
        mark(3, "mark", "topic", TOPIC, "TopicPublishRate", TOPIC),
        mark(4, "unmark", *buffer),
        mark(13, "unmark", "topic", TOPIC, "TopicPublishRate", TOPIC),
    ]
    tables.append("marks", rows_of(rows, MARKS), "x", 0)
    found = why_connection(OutputTables(output), "b1/c1")

    assert (HeldReason.TOPIC_PUBLISH_RATE_MESSAGES, 12.0) == (found.reason, found.held_s)
    assert [("topic", 10.0), ("connection", 3.0)] == [(one.scope, one.held_s) for one in found.held_by]
    assert HeldReason.CONNECTION_OUTBOUND_BUFFER is found.held_by[1].reason
    assert [
        (TOPIC, 1, 10.0, HeldReason.TOPIC_PUBLISH_RATE_MESSAGES),
        (OTHER, 0, 0.0, HeldReason.SHARED_CONNECTION),
    ] == [(one.topic, one.marked, one.held_s, one.reason) for one in found.topics]
    assert (None, None) == (found.pauses, found.paused_s)
    read = {"event_time": NOON, "broker": "b1", "connection": "c1", "auto_read": True, "paused_ns": 5 * 10**9}
    Tables(output, {"connections": CONNECTIONS}).append(
        "connections",
        rows_of([read], CONNECTIONS),
        "y",
        0,
    )
    found = why_connection(OutputTables(output), "b1/c1")
    assert (0, 5.0) == (found.pauses, found.paused_s)
    assert 0 == main(["why", "b1/c1", str(output), "--connection"])
    screen = capsys.readouterr().out
    (line,) = (line for line in screen.splitlines() if line.startswith(OTHER))
    assert ["0", "0.0", "s", "SHARED_CONNECTION:"] == line.split()[1:5]
    with pytest.raises(TableError, match=r"no mark of connection 'b1/c2'.*nearest: b1/c1"):
        why_connection(OutputTables(output), "b1/c2")


@pytest.mark.parametrize(
    ("rows", "from_s", "reasons"),
    [
        ([mark(1, "mark", "connection", "c1", "ConnectionOutboundBufferFull")], 0, ["CONNECTION_OUTBOUND_BUFFER"]),
        ([], 0, ["NOT_HELD"]),
        ([mark(1, "mark", "topic", OTHER, "TopicPublishRate", OTHER)], 5, ["TOPIC_PUBLISH_RATE_MESSAGES"]),
    ],
    ids=["a condition", "nothing", "held since before the window"],
)
def test_a_topic_on_a_connection_has_the_reason_that_holds_it(output, rows, from_s, reasons):
    attached = mark(0, "attach", None, None, None, OTHER)
    last = mark(9, "attach", None, None, None, OTHER)
    throttle_tables(output).append("marks", rows_of([attached, *rows, last], MARKS), "x", 0)
    found = why_connection(OutputTables(output), "b1/c1", first_s=NOON_S + from_s, last_s=NOON_S + 9)

    assert reasons == [one.reason for one in found.topics]


def test_a_connection_is_known_after_the_last_publish(output):
    """The only publish comes at noon."""
    full = [mark(at_s, "mark", "connection", "c1", "ConnectionOutboundBufferFull") for at_s in (60, 65)]
    throttle_tables(output).append("marks", rows_of(full, MARKS), "x", 0)

    assert NOON_S + 65 == why_connection(OutputTables(output), "b1/c1").window.last.timestamp()


def counters(at_s, topic, hits, misses, used_bytes, batch_id=1):
    second = datetime.fromtimestamp(NOON_S + at_s, UTC)
    said = {"topic": topic, "broker": "b1", "second": second, "until": second, "batch_id": batch_id}
    return said | {
        "hits": hits,
        "misses": misses,
        "used_bytes": used_bytes,
        "misses_by_reason": [],
        "dead_letters": [],
    }


def cache_tables(folder):
    return Tables(folder, {"cache_metrics": CACHE_METRICS, "cache_evictions": EVICTIONS})


def test_all_counters_of_a_topic_that_was_forgotten_begin_at_0_again(tmp_path):
    """It is forgotten after the second row, and after the third, when the bytes alone get lower."""
    counted = ((0, 90, 100, 900), (60, 100, 102, 1000), (3600, 5, 107, 50), (7200, 6, 110, 20))
    rows = [counters(at_s, TOPIC, hits, misses, 0) | {"hit_bytes": size} for at_s, hits, misses, size in counted]
    cache_tables(tmp_path).append("cache_metrics", named_rows(rows_of(rows, CACHE_METRICS)), "x", 0)

    for first_s, came in ((1, (21, 219)), (61, (11, 217)), (3601, (6, 110))):
        found = why_cached(OutputTables(tmp_path), TOPIC, first_s=NOON_S + first_s)
        assert came == (found.hits, found.misses)


@pytest.mark.parametrize(
    ("first_hits", "first_misses", "first_s", "hits", "grown_bytes", "notes"),
    [
        (5, 0, 0, 13, 250, 0),
        (5, 0, 1, 13, 150, 0),
        (6, 0, 0, 3, 150, 1),
        (5, 1, 0, 3, 150, 1),
        (6, 0, 1, 3, 150, 1),
        (6, 0, 62, 3, 150, 0),
        (6, 0, 63, 1, 150, 0),
    ],
)
def test_the_first_row_of_a_topic_counts_unless_rows_before_are_gone(
    first_hits, first_misses, first_s, hits, grown_bytes, notes, tmp_path
):
    """The first row of the broker has 5 hits of its second; what it has more were in rows that retention deleted."""
    of_broker = counters(0, None, first_hits, first_misses, 0) | {"hits_rate": 5.0, "misses_rate": 0.0}
    of_topic = [
        counters(at_s, TOPIC, of_both, 0, 0) | {"broker": broker}
        for at_s, broker, of_both in ((60, "b1", 7), (61, "b2", 3), (62, "b1", 9), (63, "b2", 4))
    ]
    rows = [of_broker, counters(0, OTHER, 5, 0, 100), *of_topic, counters(63, OTHER, 5, 0, 250)]
    cache_tables(tmp_path).append("cache_metrics", named_rows(rows_of(rows, CACHE_METRICS)), "x", 0)
    found = why_cached(OutputTables(tmp_path), TOPIC, first_s=NOON_S + first_s)

    assert (hits, OTHER, grown_bytes) == (found.hits, found.room[0].topic, found.room[0].grown_bytes)
    assert notes == len([one for one in found.notes if "gone by retention" in one])


def test_entries_leave_for_size_and_the_topics_that_grew_most_took_the_room(tmp_path, capsys):
    tables = cache_tables(tmp_path)
    rows = [
        *(counters(0, TOPIC, 10, 0, 900), counters(0, OTHER, 0, 0, 100)),
        *(counters(60, TOPIC, 12, 8, 100), counters(60, OTHER, 5, 5, 500, batch_id=0), counters(60, OTHER, 5, 5, 900)),
    ]
    tables.append("cache_metrics", named_rows(rows_of(rows, CACHE_METRICS)), "x", 0)
    late = datetime.fromtimestamp(NOON_S + 59, UTC)
    gone = [("evicted", 3), ("expired", 1)]
    entries = [
        {
            "broker": "b1",
            "event_time": late,
            "topic": TOPIC,
            "cause": cause,
            "entry": place,
        }
        for cause, count in gone
        for place in range(count)
    ]
    tables.append("cache_evictions", named_rows(rows_of(entries, EVICTIONS)), "x", 0)
    found = why_cached(OutputTables(tmp_path), "acme/shop/orders", first_s=NOON_S + 1, last_s=NOON_S + 60)

    assert (HeldReason.CACHE_SIZE, 2, 8, (("evicted", 3), ("expired", 1))) == (
        found.reason,
        found.hits,
        found.misses,
        found.left,
    )
    assert [(OTHER, 900, 800), (TOPIC, 100, -800)] == [
        (one.topic, one.used_bytes, one.grown_bytes) for one in found.room
    ]
    assert 0 == main(["why", TOPIC, str(tmp_path), "--cache"])
    assert "entries that left: 3 evicted, 1 expired" in capsys.readouterr().out
    with pytest.raises(TableError, match="no cache events of acme/shop/ordrs, in 2 topics; nearest"):
        why_cached(OutputTables(tmp_path), "acme/shop/ordrs")


def test_a_subscription_is_answered_of_after_the_last_publish_and_without_any(output):
    """The only publish, of TOPIC, comes at noon."""
    tables = throttle_tables(output)
    schema = pa.schema(list(tables._given["dispatch_decisions"]))
    at_s = [60, 65]
    rows = [
        {"event_time": datetime.fromtimestamp(NOON_S + s, UTC), "broker": "b1", "topic": OTHER, "subscription": "s"}
        | {"reads": 10, "held_by_topic": 9}
        for s in at_s
    ]
    tables.append("dispatch_decisions", rows_of(rows, schema), "x", 0)
    found = why_subscription(OutputTables(output), OTHER, "s", first_s=NOON_S + 60)

    assert (HeldReason.TOPIC_DISPATCH_RATE, 20, 0) == (found.reason, found.reads, found.published)


def test_names_of_brokers_and_connections_can_have_slashes(output):
    row = mark(1, "mark", "connection", "c1", "ConnectionOutboundBufferFull") | {"broker": "b/1", "connection": "c/2"}
    throttle_tables(output).append("marks", rows_of([row], MARKS), "x", 0)
    found = why_connection(OutputTables(output), "b/1/c/2")

    assert ("b/1", "c/2", True) == (found.broker, found.connection, found.held_s >= 0)
