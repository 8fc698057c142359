"""Old rows go by the rule of their table: what a restart, a reader or a question about now needs stays."""

import logging
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate.cache.schemas import OF_CACHE
from headgate.cluster.collect import _NEWEST as NEWEST
from headgate.cluster.schemas import OF_COLLECTOR, OF_ENFORCER
from headgate.core.clusters.counters import NOTHING, Counters, Increase, Reading
from headgate.protocol.schemas import OF_PROTOCOL
from headgate.quota.tables.schemas import RG_ATTACHMENTS, RG_GROUPS, RG_LIMITS, RG_MEMBERS, RG_USAGE
from headgate.tables import delta, upkeep
from headgate.tables.delta import Tables
from headgate.tables.retention import RULES, Deleted, Kept, delete_old
from headgate.throttle.tables import OF_CONNECTIONS, SCHEMAS

PAGE = Path(__file__).parents[3] / "docs" / "tables.md"
NOW = datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 10
ALL = {**SCHEMAS, **OF_CONNECTIONS, **OF_PROTOCOL, **OF_CACHE, **OF_COLLECTOR, **OF_ENFORCER}


def at(hours_ago):
    return NOW - timedelta(hours=hours_ago)


def us(hours_ago):
    return int(at(hours_ago).timestamp() * 1_000_000)


def left(folder, name, rows):
    """The rows of a table of which one has just been written, after old ones are deleted; and what went."""
    tables = Tables(folder, {name: ALL[name]})
    for row in rows:
        tables.extend(name, pa.Table.from_pylist([row], ALL[name]))
    table = DeltaTable(folder / name)
    deleted = delete_old(table, Kept(RULES[name], HOURS))
    return tables.read(name).to_pylist(), deleted


def counted(hours_ago, topic, total, from_hours_ago=None, broker="b"):
    from_us = us(hours_ago if from_hours_ago is None else from_hours_ago)
    return {
        "at_us": us(hours_ago),
        "from_us": from_us,
        "broker": broker,
        "topic": topic,
        "direction": "in",
        "messages_total": total,
        "bytes_total": total,
    }


def test_of_counters_the_newest_row_of_each_topic_stays_but_of_those_that_left(tmp_path):
    rows = [
        *(counted(30, "idle", 1), counted(20, "idle", 2, 30), counted(20, "idle", 7, 30, broker="b2")),
        *(counted(30, "gone", 1), counted(20, "gone", 0)),
        *(counted(20, "busy", 1), counted(5, "busy", 2, 20), counted(0, "busy", 3, 5)),
    ]
    found, deleted = left(tmp_path, "counters", rows)

    assert [("busy", 2), ("busy", 3), ("idle", 2), ("idle", 7)] == sorted(
        (row["topic"], row["messages_total"]) for row in found
    )
    assert 4 == deleted.rows


def test_of_looks_the_last_of_each_broker_stays_and_the_last_that_it_answered(tmp_path):
    looks = [(40, "b", None), (30, "b", None), (25, "b", "away"), (20, "b", "away"), (20, "c", None), (0, "c", None)]
    rows = [{"at_us": us(ago), "cluster": "k", "broker": broker, "error": error} for ago, broker, error in looks]
    found, _ = left(tmp_path, "broker_looks", rows)

    assert [(0, "c", None), (20, "b", "away"), (30, "b", None)] == sorted(
        ((us(0) - row["at_us"]) // 3_600_000_000, row["broker"], row["error"]) for row in found
    )


def test_of_the_ledger_what_is_set_and_not_put_back_stays_and_who_holds_the_lease(tmp_path):
    lines = [
        *((50, "", "lease"), (40, "", "alive"), (35, "kept", "push"), (34, "kept", "push")),
        *((33, "back", "push"), (32, "back", "released"), (31, "back", "push"), (30, "", "alive"), (0, "kept", "push")),
    ]
    found, _ = left(
        tmp_path, "enforced", [{"at_us": us(ago), "path": path, "action": action} for ago, path, action in lines]
    )

    expected = [("", "alive"), ("back", "push"), ("back", "released"), *[("kept", "push")] * 3]
    assert expected == sorted((row["path"], row["action"]) for row in found)


def test_of_the_ledger_a_push_of_a_later_holder_stays_though_its_clock_is_behind(tmp_path):
    lines = [(100, 1, "push"), (90, 1, "released"), (95, 2, "push"), (0, 2, "alive")]
    rows = [
        {"at_us": us(ago), "path": "p" * (what != "alive"), "epoch": epoch, "action": what}
        for ago, epoch, what in lines
    ]
    found, _ = left(tmp_path, "enforced", rows)

    assert [(1, "released"), (2, "alive"), (2, "push")] == sorted((row["epoch"], row["action"]) for row in found)


@pytest.mark.parametrize("seed", range(4))
def test_a_collector_that_starts_after_a_deletion_counts_as_if_there_had_been_none(tmp_path, seed):
    draw = random.Random(seed)
    brokers, totals = {"b", "c"}, {(broker, topic): 0 for broker in "bc" for topic in "xyz"}

    def readings(broker):
        there = {topic: totals[broker, topic] for topic in "xyz" if draw.random() < 0.7}
        return {(topic, "in"): Reading(total, total) for topic, total in there.items()}

    counting, rows = Counters(), []
    for ago in range(30, 0, -1):
        for place, total in totals.items():
            totals[place] = draw.choice([total, total + draw.randrange(9), 0])
        for broker in brokers:
            for one in counting.look(us(ago), broker, readings(broker)):
                amounts = {f"{name}_total": getattr(one.total, name) for name in ("messages", "bytes")}
                places = {name: getattr(one, name) for name in ("at_us", "from_us", "broker", "topic", "direction")}
                rows.append(places | amounts)
    tables = Tables(tmp_path, {"counters": ALL["counters"]})
    tables.extend("counters", pa.Table.from_pylist(rows, ALL["counters"]))

    def gone_on():
        told = [
            Increase(*(row[name] for name in Increase._fields[:5]), NOTHING, Reading(*2 * [row["messages_total"]]))
            for row in tables.select("counters", NEWEST).to_pylist()
        ]
        return Counters(told, dict.fromkeys(brokers, us(1)))

    before = gone_on()
    assert delete_old(DeltaTable(tmp_path / "counters"), Kept(RULES["counters"], HOURS)).rows
    after = gone_on()
    for broker in brokers:
        now = readings(broker)
        assert sorted(before.look(us(0), broker, now)) == sorted(after.look(us(0), broker, now))


def test_each_table_has_a_rule_and_the_page_has_each_table():
    page = PAGE.read_text().partition("## What is deleted")[2].partition("## Input")[0]
    listed = {
        name
        for line in page.splitlines()
        if line.startswith("* ")
        for name in line.removeprefix("* ").partition(":")[0].split(", ")
    }

    assert RULES.keys() == ALL.keys()
    assert RULES.keys() - listed == set()
    assert {spec.name for spec in (RG_GROUPS, RG_ATTACHMENTS, RG_MEMBERS, RG_USAGE, RG_LIMITS)} <= listed


def change(effective, written, kind="limit", name="t", source="conf"):
    return {
        "effective_time": at(effective),
        "written_at": at(written),
        "kind": kind,
        "scope": "topic",
        "name": name,
        "source": source,
    }


def test_of_control_the_changes_in_force_at_the_horizon_stay_and_no_reader_hears_of_it(tmp_path):
    rows = [
        *(change(50, 50), change(40, 40), change(30, 30, source="me"), change(45, 29, source="me")),
        *(change(60, 60, name="other"), change(5, 5), change(20, 20, "tick"), change(19, 19, "finish")),
        *(change(70, 70, "layout"), change(0, 0, "tick")),
    ]
    found, deleted = left(tmp_path, "control", rows)

    expected = [
        *((70, "layout", "conf"), (60, "limit", "conf"), (45, "limit", "me"), (40, "limit", "conf")),
        *((30, "limit", "me"), (5, "limit", "conf"), (0, "tick", "conf")),
    ]
    assert expected == [
        ((NOW - row["effective_time"]) // timedelta(hours=1), row["kind"], row["source"]) for row in found
    ]
    assert Deleted(3, 10) == deleted
    table = DeltaTable(tmp_path / "control")
    assert "true" == table.metadata().configuration["delta.appendOnly"]
    assert Deleted() == delete_old(table, Kept(RULES["control"], HOURS))


def test_rows_without_a_time_go_with_files_that_are_old(tmp_path):
    letters = [{"reason": str(number)} for number in range(3)]
    found, deleted = left(tmp_path, "dead_letters", letters)
    assert (3, Deleted()) == (len(found), deleted)

    assert Deleted(3, 3) == delete_old(DeltaTable(tmp_path / "dead_letters"), Kept(RULES["dead_letters"], -1))
    assert [] == Tables(tmp_path, {"dead_letters": ALL["dead_letters"]}).read("dead_letters").to_pylist()


@pytest.mark.parametrize(
    ("name", "column", "time"),
    [("throttle_decisions", "at_ms", lambda ago: us(ago) // 1000), ("connections", "event_time", at)],
)
def test_times_are_in_the_unit_of_their_column(tmp_path, name, column, time):
    found, deleted = left(tmp_path, name, [{column: time(ago)} for ago in (30, 11, 9, 0)])

    assert (2, 2) == (len(found), deleted.rows)


def test_what_went_is_counted_and_said_once_an_hour(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(upkeep, "COMPACTED_EVERY", 2)
    monkeypatch.setattr(upkeep, "DELETED", upkeep.Totals())
    tables = Tables(tmp_path, {"marks": ALL["marks"]}, HOURS)
    with caplog.at_level(logging.WARNING):
        for ago in (40, 39, 20, 19, 0, 0):
            tables.extend("marks", pa.Table.from_pylist([{"event_time": at(ago)}], ALL["marks"]))

    assert {"marks": Deleted(4, 2)} == {
        name: Deleted(deleted.rows, 2) for name, deleted in upkeep.DELETED.taken().items()
    }
    assert ["the table marks: 2 old rows deleted"] == [message.partition(",")[0] for message in caplog.messages]


def test_an_append_while_others_delete_old_rows_is_done_once(tmp_path, monkeypatch):
    tables = Tables(tmp_path, {"marks": ALL["marks"]})
    rows = [pa.Table.from_pylist([{"event_time": at(ago)}], ALL["marks"]) for ago in (30, 0, 1)]
    for some in rows[:2]:
        tables.extend("marks", some)
    deletions = []

    def written(*arguments, **named):
        if not deletions:
            deletions.append(delete_old(DeltaTable(tmp_path / "marks"), Kept(RULES["marks"], HOURS)))
        write_deltalake(*arguments, **named)

    monkeypatch.setattr(delta, "write_deltalake", written)
    assert tables.append("marks", rows[2], "query", 1)

    assert 1 == deletions[0].rows
    assert [at(1), at(0)] == sorted(tables.read("marks")["event_time"].to_pylist())
