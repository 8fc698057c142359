"""Who was throttled, and by which limiter most: sums over the tables."""

import pyarrow as pa
import pytest

from headgate.report.blame import Throttled, throttled_by_tenant, throttled_by_topic
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
    rows = [dict(zip(columns, row, strict=True)) for row in usage]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    rows = [dict(zip(("topic", "scope", "limiter", "action"), mark, strict=True)) for mark in marks]
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)


def test_seconds_are_summed_by_topic_and_tenant_most_throttled_first(tables):
    fill(tables, [(A, 5, 1, 10), (B, 7, 4, 300), (A, 5, 2, 20), (C, 9, 6, 1)])

    assert [
        Throttled(C, 9, 6, 1, "none"),
        Throttled(B, 7, 4, 300, "none"),
        Throttled(A, 10, 3, 30, "none"),
    ] == throttled_by_topic(tables)
    assert [Throttled("acme", 17, 7, 330, "none"), Throttled("else", 9, 6, 1, "none")] == throttled_by_tenant(tables)


def test_offered_traffic_tells_what_was_delayed_and_given_up(tables):
    columns = ("topic", "publishes", "throttled_publishes", "throttled_ns", "delayed_publishes", "failed_publishes")
    rows = [(A, 5, 1, 10, 2, 3), (B, 7, 0, 0, 0, 0), (C, 1, 0, 0, None, None)]
    usage = [dict(zip(columns, row, strict=True)) for row in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)

    assert [("acme", 2, 3), ("else", None, None)] == [
        (row.name, row.delayed, row.failed) for row in throttled_by_tenant(tables)
    ]


def test_of_equally_throttled_topics_the_longer_held_come_first_and_then_names_decide(tables):
    fill(tables, [(B, 1, 2, 5), (C, 1, 2, 9), (A, 1, 2, 5)])

    assert [C, A, B] == [row.name for row in throttled_by_topic(tables)]


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

    assert [blame] == [row.blame for row in throttled_by_topic(tables)]


def test_a_tenant_blames_the_own_limits_of_its_topics_together(tables):
    marks = [(A, "topic", A, "mark"), (B, "topic", B, "mark"), (A, "group", "gold", "mark")]
    fill(tables, [(A, 5, 1, 10), (B, 5, 1, 10)], marks)

    assert ["its own limit (67% of marks)"] == [row.blame for row in throttled_by_tenant(tables)]


def test_empty_tables_have_nobody(tables):
    assert [] == throttled_by_topic(tables) == throttled_by_tenant(tables)


@pytest.mark.parametrize(("topic", "tenant"), [(A, "acme"), (C, "else"), ("no topic", "")])
def test_a_topic_begins_with_its_tenant(topic, tenant):
    assert tenant == tenant_of(topic)
