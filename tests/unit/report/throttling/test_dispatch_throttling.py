"""Which subscriptions were held back: sums over the table."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headgate.report.throttling.dispatch_throttling import HeldBack, held_back
from headgate.throttle.schemas import DISPATCH_DECISIONS
from unit.report.empty_tables import empty_tables

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
NAMES = ("broker", "topic", "subscription", "reads", "allowed_reads")
HELD = ("held_by_broker", "held_by_topic", "held_by_subscription", "held_by_group")


def fill(tables, *rows):
    made = [
        dict(zip((*NAMES, *HELD), row, strict=True)) | {"event_time": AT + timedelta(seconds=second)}
        for second, row in enumerate(rows)
    ]
    tables.append("dispatch_decisions", pa.Table.from_pylist(made, DISPATCH_DECISIONS), "query", 0)


def test_reads_are_summed_by_broker_topic_and_subscription_most_held_first(tmp_path):
    tables = empty_tables(tmp_path)
    fill(
        tables,
        ("b1", "t", "s", 5, 3, 0, 2, 0, 0),
        ("b1", "t", "s", 5, 5, 0, 0, 0, 0),
        ("b1", "t", "s", 1, 0, 1, 0, 0, 0),
        ("b1", "t", "r", 9, 5, 0, 0, 0, 4),
        ("b2", "t", "s", 3, 0, 3, 0, 0, 0),
        ("b2", "u", "s", 99, 99, 0, 0, 0, 0),
    )
    expected = [
        HeldBack("b1", "t", "r", 9, 5, 4, "group", *[AT + timedelta(seconds=3)] * 2),
        HeldBack("b1", "t", "s", 11, 8, 3, "topic (66%)", AT, AT + timedelta(seconds=2)),
        HeldBack("b2", "t", "s", 3, 0, 3, "broker", *[AT + timedelta(seconds=4)] * 2),
    ]

    assert expected == held_back(tables)


def test_the_level_is_the_one_that_held_most_with_its_share(tmp_path):
    tables = empty_tables(tmp_path)
    own, of_topic = ("b1", "t", "s", 999, 0, 0, 0, 998, 0), ("b1", "t", "r", 9, 0, 0, 3, 0, 1)
    fill(tables, own, ("b1", "t", "s", 999, 0, 1, 0, 0, 0), of_topic)

    assert ["subscription (99%)", "topic (75%)"] == [row.level for row in held_back(tables)]


def test_a_replicators_own_level_is_called_so(tmp_path):
    tables = empty_tables(tmp_path)
    fill(tables, ("b1", "t", "pulsar.repl.west", 9, 0, 0, 0, 3, 0), ("b1", "t", "pulsar.repl.east", 9, 0, 2, 0, 0, 0))

    assert ["replicator", "broker"] == [row.level for row in held_back(tables)]


def test_where_nothing_was_held_back_there_is_nobody(tmp_path):
    tables = empty_tables(tmp_path)
    assert [] == held_back(tables)
    fill(tables, ("b1", "t", "s", 9, 9, 0, 0, 0, 0))

    assert [] == held_back(tables)
