"""Who was throttled, when, by which limiter and by whose fault: sums over the tables."""

import pyarrow as pa
import pytest

from headgate.arrow.topic_names import named_rows
from headgate.conf.resource_groups import ResourceGroups
from headgate.core.numbers import SECOND_NS
from headgate.core.topic_names import tenant_of
from headgate.report.throttling.blame import Throttled, throttling
from headgate.report.throttling.held_times import HELD_BY, OUT_UNTIL
from headgate.report.throttling.limiters import MARK_COUNTS
from headgate.report.throttling.spans import minute_of as minute_name
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from unit.report.throttling.filled import NINE, A, B, C, fill, second


def by_topic(tables):
    return throttling(tables, ResourceGroups()).topics


def by_tenant(tables):
    return throttling(tables, ResourceGroups()).tenants


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
    usage = [dict(zip(columns, row, strict=True)) | {"event_time": NINE} for row in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)

    assert [("acme", 2, 3), ("else", None, None)] == [(row.name, row.delayed, row.failed) for row in by_tenant(tables)]


def test_of_equally_throttled_topics_the_longer_held_come_first_and_then_names_decide(tables):
    fill(tables, [(B, 1, 2, 5), (C, 1, 2, 9), (A, 1, 2, 5)])

    assert [C, A, B] == [row.name for row in by_topic(tables)]


@pytest.mark.parametrize(
    ("marks", "blame"),
    [
        ([], "none"),
        ([(A, "topic", A, "mark")], "topic limit (messages)"),
        ([(A, "topic", A, "mark"), (None, "connection", "c", "mark")], "topic limit (messages)"),
        ([(A, "group", "gold", "mark")] * 2, "group gold (messages)"),
        ([(A, "broker", "b1", "mark")], "broker b1 (messages)"),
        (
            [(A, "group", "gold", "mark")] * 2 + [(A, "topic", A, "mark")],
            "group gold (messages; 67% of the producers' waits)",
        ),
        (
            [(A, "group", "gold", "mark")] * 300 + [(A, "topic", A, "mark")],
            "group gold (messages; over 99% of the producers' waits)",
        ),
        (
            [(A, "group", "gold", "mark")] + [(A, "group", "gold", "unmark"), (A, "topic", A, "unmark")] * 3,
            "group gold (messages)",
        ),
        (
            [(A, "broker", "b1", "mark"), (A, "broker", "b2", "mark")],
            "broker b1 (messages; 50% of the producers' waits)",
        ),
        ([(B, "broker", "b1", "mark")], "none"),
    ],
)
def test_to_blame_is_the_limiter_with_most_marks(tables, marks, blame):
    fill(tables, [(A, 5, 1, 10)], marks)

    assert [blame] == [row.blame for row in by_topic(tables)]


def test_a_tenant_blames_the_own_limits_of_its_topics_together(tables):
    marks = [(A, "topic", A, "mark"), (B, "topic", B, "mark"), (A, "group", "gold", "mark")]
    fill(tables, [(A, 5, 1, 10), (B, 5, 1, 10)], marks)

    assert ["topic limit (messages; 67% of the producers' waits)"] == [row.blame for row in by_tenant(tables)]


def test_empty_tables_have_nobody(tables):
    assert [] == by_topic(tables) == by_tenant(tables)
    assert throttling(tables, ResourceGroups()).seconds == 0


@pytest.mark.parametrize(("topic", "tenant"), [(A, "acme"), (C, "else"), ("no topic", "")])
def test_a_topic_begins_with_its_tenant(topic, tenant):
    assert tenant == tenant_of(topic)


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
    found = throttling(tables, ResourceGroups())
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


def test_details_name_the_rates_and_the_brokers_of_each_limiter_with_its_minutes(tables):
    fill(tables, [(A, 5, 1, 10)])
    mark = {"event_time": NINE, "topic": A, "action": "mark"}
    gold = mark | {"scope": "group", "limiter": "gold", "bytes_balance": -1}
    rows = [gold | {"broker": f"b{i}", "bytes_per_s": 1000 * i} for i in (4, 1, 2, 3)]
    rows += [mark | {"scope": "topic", "limiter": A, "broker": "b9", "messages_per_s": 7}]
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)
    (acme,) = by_tenant(tables)

    assert acme.details == (
        "group gold (bytes, 1,000 to 4,000/s; 80% of the producers' waits) on b1, b2, b3 and 1 more brokers, in the "
        "minute 09:00"
    )
    assert acme.also == ("by topic limit (messages, 7/s; 20% of the producers' waits) on b9, in the minute 09:00",)


def test_the_limiter_that_held_somebody_longest_comes_first_whatever_the_number_of_marks(tables):
    fill(tables, [(A, 5, 1, 10)])
    gold = {"topic": A, "scope": "group", "limiter": "gold"}
    own = {"topic": A, "scope": "topic", "limiter": A}
    ended = [gold | {"action": action, "event_time": second(at)} for at, action in ((1, "mark"), (2, "unmark"))] * 9
    long = [own | {"action": action, "event_time": second(at)} for at, action in ((3, "mark"), (44, "unmark"))]
    open_ = [{"topic": C, "scope": "group", "limiter": "gold", "action": "mark", "event_time": NINE}]
    tables.append("marks", pa.Table.from_pylist([*ended, *long, *open_], MARKS), "query", 0)
    (acme,) = by_tenant(tables)

    assert acme.blame == "topic limit (messages; 82% of the producers' waits)"
    assert not acme.is_victim


def test_the_worst_second_of_offered_traffic_is_that_with_most_that_waits_or_fails(tables):
    rows = [  # messages, let in, failed, publishes that failed, throttled
        (1, 50, 10, 0, 0, 1),
        (2, 50, 10, 0, 0, 1),
        (3, 0, 60, 0, 0, 9),
        (4, 0, 20, 0, 0, 9),
    ]
    columns = ("messages", "admitted_messages", "failed_messages", "failed_publishes", "throttled_publishes")
    usage = [{"event_time": second(at), "topic": A} | dict(zip(columns, counts, strict=True)) for at, *counts in rows]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    assert [second(2)] == [row.worst for row in by_tenant(tables)]
    failed = {"event_time": second(9), "topic": A} | dict(zip(columns, (0, 0, 5, 1, 1), strict=True))
    tables.append("topic_usage", pa.Table.from_pylist([failed], TOPIC_USAGE), "query", 1)
    assert [second(9)] == [row.worst for row in by_tenant(tables)]


def test_the_unit_that_ran_out_is_the_same_in_sql_and_arrow(tables):
    balances = [-1, 0, 1, None]
    rows = [
        {
            "topic": A,
            "scope": "group",
            "limiter": f"{m} {b} {per_s}",
            "action": "mark",
            "messages_balance": m,
            "messages_per_s": None if per_s is None else 10,
            "bytes_balance": b,
            "bytes_per_s": per_s,
        }
        for m in balances
        for b in balances
        for per_s in (None, 9, 10, 11)
    ]
    marks = pa.Table.from_pylist(rows, MARKS)
    tables.append("marks", marks, "query", 0)
    of_sql, of_arrow = (
        {row["limiter"]: (row["unit"], row["too"]) for row in found.to_pylist()}
        for found in (tables.totals(MARK_COUNTS), MARK_COUNTS.of(named_rows(marks)))
    )

    assert of_sql == of_arrow
    alone = {f"{left} {per_s}" for left in ("1 -1", "1 0", "None -1", "None 0") for per_s in (None, 9, 10, 11)}
    takes_longer = {"-1 -1 9", "0 -1 9", "0 -1 10", "0 -1 11"}
    assert {name for name, (unit, _) in of_sql.items() if unit == "bytes"} == alone | takes_longer
    assert {name[: -len(" 10")] for name, (_, too) in of_sql.items() if too and name.endswith("10")} == {
        *("-1 -1", "-1 0", "0 -1", "0 0")
    }


@pytest.mark.parametrize(
    ("held", "spans"),
    [
        ([(1, 5), (2, 5)], [(1, 2)]),
        ([(1, 5), (12, 5)], [(1, 12)]),
        ([(1, 5), (13, 5)], [(1, 1), (13, 13)]),
        ([(1, 5), (30, 19_000_000_000)], [(1, 30)]),
        ([(1, 5), (30, 18_000_000_000)], [(1, 1), (13, 30)]),
        ([(20, 5), (21, 21_000_000_000)], [(1, 21)]),
    ],
)
def test_times_that_are_ten_silent_seconds_apart_are_several(tables, held, spans):
    columns = ("event_time", "topic", "publishes", "throttled_ns")
    usage = [dict(zip(columns, (second(n), A, 9, ns), strict=True)) for n, ns in held]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)

    assert [[(second(first), second(last)) for first, last in spans]] == [list(row.spans) for row in by_tenant(tables)]


def test_the_minute_of_a_mark_is_the_same_in_sql_and_arrow(tables):
    times = [NINE.replace(minute=minute, second=s, microsecond=s) for minute in (0, 1, 59) for s in (0, 59)]
    rows = [{"event_time": at, "topic": A, "broker": "b", "action": "mark"} for at in times]
    marks = pa.Table.from_pylist(rows, MARKS)
    tables.append("marks", marks, "query", 0)
    of_sql, of_arrow = (
        sorted((row["minute"], row["rows"]) for row in found.to_pylist())
        for found in (tables.totals(MARK_COUNTS), MARK_COUNTS.of(named_rows(marks)))
    )

    assert of_sql == of_arrow == [("2026-03-01T09:00", 2), ("2026-03-01T09:01", 2), ("2026-03-01T09:59", 2)]
    assert {minute_name(at) for at in times} == {minute for minute, _ in of_sql}


def test_units_have_parts_of_the_time_for_which_they_held_whatever_the_number_of_marks(tables):
    """A large publish holds for 9 s in which nothing else is marked; many small ones after it for a tenth each."""
    gold = {"topic": A, "scope": "group", "limiter": "gold", "broker": "b1"}
    large = gold | {"messages_balance": 5, "messages_per_s": 10, "bytes_balance": -900, "bytes_per_s": 100}
    small = large | {"messages_balance": -1, "bytes_balance": 5}
    tenths = [second(10 + tenth // 10).replace(microsecond=tenth % 10 * 100_000) for tenth in range(31)]
    rows = [large | {"action": "mark", "event_time": second(1)}, gold | {"action": "unmark", "event_time": second(10)}]
    rows += [small | {"action": "mark", "event_time": at} for at in tenths[:-1]]
    rows += [gold | {"action": "unmark", "event_time": at} for at in tenths[1:]]
    fill(tables, [(A, 5, 1, 10)])
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)

    assert ["group gold (bytes 75%, messages 25%)"] == [row.blame for row in by_tenant(tables)]
    assert ["group gold (bytes 75%, messages 25%)"] == [row.blame for row in by_topic(tables)]


def test_what_others_send_while_it_is_held_on_a_broker_decides_for_which_unit_somebody_waits(tables):
    gold = {"topic": A, "scope": "group", "limiter": "gold", "broker": "b1"}
    by_messages, by_bytes = (
        {"action": "mark", "messages_balance": m, "messages_per_s": 10, "bytes_balance": b, "bytes_per_s": 100}
        for m, b in ((-1, 5), (5, -900))
    )
    rows = [gold | by_messages | {"event_time": second(1)}, gold | {"action": "unmark", "event_time": second(10)}]
    rows += [gold | by_bytes | {"event_time": second(10)}, gold | {"action": "unmark", "event_time": second(11)}]
    rows.append(gold | by_bytes | {"topic": C, "event_time": second(1).replace(microsecond=9)})
    rows.append(gold | by_messages | {"topic": C, "broker": "b2", "messages_balance": -999, "event_time": second(1)})
    fill(tables, [(A, 5, 2, 10), (C, 5, 1, 10)])
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)
    of_a, of_c = by_topic(tables)

    assert of_a.blame == "group gold (bytes)"
    assert of_c.details == "group gold (bytes 50%, 100/s on b1; messages 50%, 10/s on b2)"


def test_a_tenants_limiter_is_that_in_whose_time_its_publishes_waited_however_long_another_one_held(tables):
    waits = {"admitted_publishes": 5, "delayed_publishes": 5, "delay_ns": 40 * SECOND_NS, "failed_publishes": 0}
    none = {"admitted_publishes": 5, "delayed_publishes": 0, "delay_ns": 0, "failed_publishes": 0}
    usage = [
        {"event_time": second(at), "topic": A, "broker": "b1", "publishes": 5, "throttled_publishes": 5, "messages": 5}
        | {"bytes": 5}
        | (waits if at < 10 else none)
        for at in (5, 25, 45)
    ]
    held = [(("topic", A), 4, 6), (("group", "gold"), 22, 48)]
    marks = [
        {"topic": A, "broker": "b1", "scope": scope, "limiter": name, "action": action, "event_time": second(at)}
        | {"messages_balance": -5, "messages_per_s": 1}
        for (scope, name), *times in held
        for action, at in zip(("mark", "unmark"), times, strict=True)
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)

    assert ["topic limit (messages; 100% of the publishes' waits)"] == [row.blame for row in by_tenant(tables)]
    assert ["topic limit (messages; 100% of the publishes' waits)"] == [row.blame for row in by_topic(tables)]


def test_what_a_unit_that_ran_out_takes_to_come_back_is_the_same_in_sql_and_arrow(tables):
    values = [-1000, 0, 7, None]
    rows = [
        {"topic": A, "scope": "group", "limiter": f"{m} {b} {per_s}", "action": "mark", "event_time": second(9)}
        | {"messages_balance": m, "messages_per_s": 10, "bytes_balance": b, "bytes_per_s": per_s}
        for m in values
        for b in values
        for per_s in (None, 0, 1, 1000)
    ]
    marks = pa.Table.from_pylist(rows, MARKS)
    tables.append("marks", marks, "query", 0)
    of_sql, of_arrow = (
        {row["limiter"]: (row["span"], row["due_ms"]) for row in found.to_pylist()}
        for found in (tables.totals(HELD_BY), HELD_BY.of(named_rows(marks)))
    )

    assert of_sql == of_arrow
    of_sql_too, of_arrow_too = (
        {row["limiter"]: row for row in found.to_pylist()}
        for found in (tables.totals(OUT_UNTIL), OUT_UNTIL.of(named_rows(marks)))
    )
    assert of_sql_too == of_arrow_too
    assert of_sql_too["-1000 7 1"]["messages_until_ms"] - of_sql_too["0 7 1"]["messages_until_ms"] == 100_000
    assert [of_sql[f"{name}"][1] for name in ("-1000 7 1", "7 -1000 1000", "7 -1000 0", "None 0 1")] == [
        *(100_016, 1_016, 16, 16),
    ]
