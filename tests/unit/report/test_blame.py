"""Who was throttled, when, by which limiter and by whose fault: sums over the tables."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headgate.report.blame import Throttled, throttling
from headgate.throttle.names import tenant_of
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from headgate.throttle.tables import Tables

A, B, C = "persistent://acme/n/a", "persistent://acme/n/b", "non-persistent://else/n/c"


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path)


def fill(tables, usage, marks=()):
    """usage: (topic, publishes, throttled, throttled_ns) by second. marks: (topic, scope, limiter, action)."""
    columns = ("topic", "publishes", "throttled_publishes", "throttled_ns")
    rows = [dict(zip(columns, row, strict=True)) | {"messages": row[1], "bytes": row[1]} for row in usage]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    rows = [dict(zip(("topic", "scope", "limiter", "action"), mark, strict=True)) for mark in marks]
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)


def by_topic(tables):
    return throttling(tables, {}.get).topics


def by_tenant(tables):
    return throttling(tables, {}.get).tenants


def test_seconds_are_summed_by_topic_and_tenant_most_throttled_first(tables):
    fill(tables, [(A, 5, 1, 10), (B, 7, 4, 300), (A, 5, 2, 20), (C, 9, 6, 1)])

    assert [
        Throttled(C, 9, 6, 1, "none"),
        Throttled(B, 7, 4, 300, "none"),
        Throttled(A, 10, 3, 30, "none"),
    ] == by_topic(tables)
    assert [Throttled("acme", 17, 7, 330, "none"), Throttled("else", 9, 6, 1, "none")] == by_tenant(tables)


def test_offered_traffic_tells_what_was_delayed_and_given_up(tables):
    columns = ("topic", "publishes", "throttled_publishes", "throttled_ns", "delayed_publishes", "failed_publishes")
    rows = [(A, 5, 1, 10, 2, 3), (B, 7, 0, 0, 0, 0), (C, 1, 0, 0, None, None)]
    usage = [dict(zip(columns, row, strict=True)) for row in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)

    assert [("acme", 2, 3), ("else", None, None)] == [(row.name, row.delayed, row.failed) for row in by_tenant(tables)]


def test_of_equally_throttled_topics_the_longer_held_come_first_and_then_names_decide(tables):
    fill(tables, [(B, 1, 2, 5), (C, 1, 2, 9), (A, 1, 2, 5)])

    assert [C, A, B] == [row.name for row in by_topic(tables)]


@pytest.mark.parametrize(
    ("marks", "blame"),
    [
        ([], "none"),
        ([(A, "topic", A, "mark")], "its own limit"),
        ([(A, "topic", A, "mark"), (None, "connection", "c", "mark")], "its own limit"),
        ([(A, "group", "gold", "mark")] * 2, "group gold"),
        ([(A, "broker", "b1", "mark")], "broker b1"),
        ([(A, "group", "gold", "mark")] * 2 + [(A, "topic", A, "mark")], "group gold (67% of marks)"),
        (
            [(A, "group", "gold", "mark")] + [(A, "group", "gold", "unmark"), (A, "topic", A, "unmark")] * 3,
            "group gold",
        ),
        ([(A, "broker", "b1", "mark"), (A, "broker", "b2", "mark")], "broker b2 (50% of marks)"),
        ([(B, "broker", "b1", "mark")], "none"),
    ],
)
def test_to_blame_is_the_limiter_with_most_marks(tables, marks, blame):
    fill(tables, [(A, 5, 1, 10)], marks)

    assert [blame] == [row.blame for row in by_topic(tables)]


def test_a_tenant_blames_the_own_limits_of_its_topics_together(tables):
    marks = [(A, "topic", A, "mark"), (B, "topic", B, "mark"), (A, "group", "gold", "mark")]
    fill(tables, [(A, 5, 1, 10), (B, 5, 1, 10)], marks)

    assert ["its own limit (67% of marks)"] == [row.blame for row in by_tenant(tables)]


def test_empty_tables_have_nobody(tables):
    assert [] == by_topic(tables) == by_tenant(tables)
    assert throttling(tables, {}.get).seconds == 0


@pytest.mark.parametrize(("topic", "tenant"), [(A, "acme"), (C, "else"), ("no topic", "")])
def test_a_topic_begins_with_its_tenant(topic, tenant):
    assert tenant == tenant_of(topic)


def second(n):
    return datetime(2026, 3, 1, 9, 0, n, tzinfo=UTC)


def test_it_says_when_that_began_and_ended_and_the_worst_second_of_a_tenant(tables):
    columns = ("event_time", "topic", "publishes", "throttled_publishes", "throttled_ns", "failed_publishes")
    rows = [
        (second(1), A, 9, 0, 0, 0),
        (second(2), A, 9, 3, 5, 0),
        (second(3), B, 9, 1, 5, 0),
        (second(3), A, 9, 3, 5, 0),
        (second(4), A, 9, 0, 5, 0),
        (second(5), A, 9, 0, 0, 1),
        (second(6), A, 9, 0, 0, 0),
    ]
    usage = [dict(zip(columns, row, strict=True)) for row in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    found = throttling(tables, {}.get)
    assert (found.first, found.last, found.seconds) == (second(1), second(6), 6)
    (acme,) = found.tenants
    assert (acme.topics, acme.first, acme.last, acme.worst) == (2, second(2), second(5), second(5))
    assert [(row.name, row.first, row.last, row.worst) for row in found.topics] == [
        (A, second(2), second(5), None),
        (B, second(3), second(3), None),
    ]


def test_without_failures_the_worst_second_is_that_with_most_throttled_publishes_of_all_topics(tables):
    columns = ("event_time", "topic", "publishes", "throttled_publishes")
    rows = [(second(1), A, 9, 3), (second(2), A, 9, 2), (second(2), B, 9, 2), (second(3), B, 9, 4)]
    usage = [dict(zip(columns, row, strict=True)) for row in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    assert [second(2)] == [row.worst for row in by_tenant(tables)]


def test_a_topic_that_nothing_held_is_left_out(tables):
    fill(tables, [(A, 5, 0, 0), (B, 5, 0, 7)])
    assert [B] == [row.name for row in by_topic(tables)]


D = "persistent://third/n/d"


MOST = f"most of it by {A}"


@pytest.mark.parametrize(
    ("limiter", "sent", "faults"),
    [
        (
            ("group", "gold"),
            {A: (60, 1), B: (20, 1), C: (20, 2)},
            {
                "acme": f"its own fault: 80% of the traffic, {MOST} (60%)",
                "else": "its own fault, too: 50% of the traffic",
            },
        ),
        (
            ("group", "gold"),
            {A: (80, 90), C: (20, 10), D: (900, 900)},
            {"else": f"fault of acme: 90% of the traffic, {MOST} (90%); else is a victim with 20%"},
        ),
        (
            ("broker", "b1"),
            {A: (60, 90), C: (20, 5), D: (20, 5)},
            {"third": f"fault of acme: 90% of the traffic, {MOST} (90%); third is a victim with 20%"},
        ),
        (("topic", A), {A: (80, 90), C: (20, 10)}, {"acme": ""}),
        (("group", "unknown"), {A: (1, 1)}, {"acme": ""}),
        (("group", "gold"), {A: (0, 0), C: (1, 1)}, {"acme": ""}),
    ],
)
def test_whose_fault_it_is(tables, limiter, sent, faults):
    usage = [
        {"topic": topic, "broker": "b1", "messages": messages, "bytes": count, "throttled_publishes": 1}
        for topic, (messages, count) in sent.items()
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    scope, name = limiter
    marks = [
        {"topic": topic, "scope": scope, "limiter": topic if scope == "topic" else name, "action": "mark"}
        for topic in sent
    ]
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    found = throttling(tables, {A: "gold", B: "gold", C: "gold"}.get)
    told = {row.name: row.fault for row in found.tenants}
    assert faults == {name: told[name] for name in faults}
