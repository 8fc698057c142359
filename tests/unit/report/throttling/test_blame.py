"""Who was throttled, when, by which limiter and by whose fault: sums over the tables."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headgate.arrow.topic_names import named_rows, tenant_of
from headgate.conf.resource_groups import ResourceGroup, ResourceGroups
from headgate.report.throttling.blame import Throttled, throttling
from headgate.report.throttling.limiters import MARKS as SUMS
from headgate.report.throttling.spans import minute_of as minute_name
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from unit.report.empty_tables import empty_tables

A, B, C = "persistent://acme/n/a", "persistent://acme/n/b", "non-persistent://else/n/c"
NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def tables(tmp_path):
    return empty_tables(tmp_path)


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
        ([(A, "group", "gold", "mark")] * 2 + [(A, "topic", A, "mark")], "group gold (messages; 67% of the time held)"),
        (
            [(A, "group", "gold", "mark")] * 300 + [(A, "topic", A, "mark")],
            "group gold (messages; over 99% of the time held)",
        ),
        (
            [(A, "group", "gold", "mark")] + [(A, "group", "gold", "unmark"), (A, "topic", A, "unmark")] * 3,
            "group gold (messages)",
        ),
        ([(A, "broker", "b1", "mark"), (A, "broker", "b2", "mark")], "broker b1 (messages; 50% of the time held)"),
        ([(B, "broker", "b1", "mark")], "none"),
    ],
)
def test_to_blame_is_the_limiter_with_most_marks(tables, marks, blame):
    fill(tables, [(A, 5, 1, 10)], marks)

    assert [blame] == [row.blame for row in by_topic(tables)]


def test_a_tenant_blames_the_own_limits_of_its_topics_together(tables):
    marks = [(A, "topic", A, "mark"), (B, "topic", B, "mark"), (A, "group", "gold", "mark")]
    fill(tables, [(A, 5, 1, 10), (B, 5, 1, 10)], marks)

    assert ["topic limit (messages; 67% of the time held)"] == [row.blame for row in by_tenant(tables)]


def test_empty_tables_have_nobody(tables):
    assert [] == by_topic(tables) == by_tenant(tables)
    assert throttling(tables, ResourceGroups()).seconds == 0


@pytest.mark.parametrize(("topic", "tenant"), [(A, "acme"), (C, "else"), ("no topic", "")])
def test_a_topic_begins_with_its_tenant(topic, tenant):
    assert tenant == tenant_of(topic)


def second(n):
    return NINE.replace(second=n)


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


D, E = "persistent://third/n/d", "persistent://last/n/e"
GOLD = ResourceGroups(tenants=dict.fromkeys(("acme", "else"), "gold"))
MESSAGES, BYTES, BOTH = (0, 5), (5, 0), (0, 0)
"""What a limiter has left of messages and of bytes."""


@pytest.mark.parametrize(
    ("limiter", "left", "sent", "faults"),
    [
        (
            ("group", "gold"),
            MESSAGES,
            {A: (60, 1), B: (20, 1), C: (2, 2)},
            {
                "acme": f"its own fault: 98% of the excess messages, most held: {A}",
                "else": f"fault of acme: 98% of the excess messages, most held: {A}; else is a victim",
            },
        ),
        (
            ("group", "gold"),
            BYTES,
            {A: (60, 1), B: (20, 1), C: (20, 2)},
            {
                "acme": "shared fault of acme 50% and else 50% of the excess bytes",
                "else": "shared fault of acme 50% and else 50% of the excess bytes",
            },
        ),
        (
            ("group", "gold"),
            BOTH,
            {A: (60, 1), C: (40, 99)},
            {
                "acme": "shared fault of acme 60% and else 40% of the excess messages, and victim of else 99% of the "
                "excess bytes",
                "else": "its own fault (99% of the excess bytes), and shared fault of acme 60% and else 40% of the "
                "excess messages",
            },
        ),
        (
            ("group", "gold"),
            BYTES,
            {A: (10, 90), C: (90, 5), D: (900, 900)},
            {"else": f"fault of acme: 95% of the excess bytes, most held: {A}; else is a victim"},
        ),
        (
            ("broker", "b1"),
            BYTES,
            {A: (60, 90), C: (20, 5), D: (20, 5)},
            {"third": f"fault of acme: 90% of the excess bytes, most held: {A}; third is a victim"},
        ),
        (
            ("broker", "b1"),
            BYTES,
            {A: (1, 24), C: (1, 25), D: (1, 26), E: (1, 25)},
            {
                "acme": "shared fault of third 26%, else 25%, last 25% and 1 more of the excess bytes; acme 24%",
                "third": "shared fault of third 26%, else 25%, last 25% and 1 more of the excess bytes; third 26%",
            },
        ),
        (
            ("broker", "b1"),
            BYTES,
            {A: (1, 49), C: (1, 47), D: (1, 4)},
            {"third": "fault of acme 49% and else 47% of the excess bytes; third is a victim"},
        ),
        (("topic", A), MESSAGES, {A: (80, 90), C: (20, 10)}, {"acme": ""}),
        (("group", "unknown"), MESSAGES, {A: (1, 1)}, {"acme": ""}),
        (("group", "gold"), MESSAGES, {A: (0, 0), C: (0, 1)}, {"acme": ""}),
    ],
)
def test_whose_fault_it_is_goes_by_the_unit_that_ran_out(tables, limiter, left, sent, faults):
    usage = [
        {
            "event_time": NINE,
            "topic": topic,
            "broker": "b1",
            "messages": messages,
            "bytes": count,
            "throttled_publishes": 1,
        }
        for topic, (messages, count) in sent.items()
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    scope, name = limiter
    balances = dict(zip(("messages_balance", "bytes_balance"), left, strict=True))
    marks = [
        {"topic": topic, "scope": scope, "limiter": topic if scope == "topic" else name, "action": "mark"}
        | {"event_time": NINE}
        | balances
        for topic in sent
    ]
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    told = {row.name: row.fault for row in throttling(tables, GOLD).tenants}
    assert faults == {name: told[name].words for name in faults}
    assert {name: words.endswith("is a victim") for name, words in faults.items()} == {
        name: told[name].is_victim for name in faults
    }


def test_details_name_the_rates_and_the_brokers_of_each_limiter_with_its_minutes(tables):
    fill(tables, [(A, 5, 1, 10)])
    mark = {"event_time": NINE, "topic": A, "action": "mark"}
    gold = mark | {"scope": "group", "limiter": "gold", "bytes_balance": -1}
    rows = [gold | {"broker": f"b{i}", "bytes_per_s": 1000 * i} for i in (4, 1, 2, 3)]
    rows += [mark | {"scope": "topic", "limiter": A, "broker": "b9", "messages_per_s": 7}]
    tables.append("marks", pa.Table.from_pylist(rows, MARKS), "query", 0)
    (acme,) = by_tenant(tables)

    assert acme.details == (
        "group gold (bytes, 1,000 to 4,000/s; 80% of the time held) on b1, b2, b3 and 1 more brokers in 09:00"
    )
    assert acme.also == ("by topic limit (messages, 7/s; 20% of the time held) on b9 in 09:00",)


def test_the_limiter_that_held_somebody_longest_comes_first_whatever_the_number_of_marks(tables):
    fill(tables, [(A, 5, 1, 10)])
    gold = {"topic": A, "scope": "group", "limiter": "gold"}
    own = {"topic": A, "scope": "topic", "limiter": A}
    ended = [gold | {"action": action, "event_time": second(at)} for at, action in ((1, "mark"), (2, "unmark"))] * 9
    long = [own | {"action": action, "event_time": second(at)} for at, action in ((3, "mark"), (44, "unmark"))]
    open_ = [{"topic": C, "scope": "group", "limiter": "gold", "action": "mark", "event_time": NINE}]
    tables.append("marks", pa.Table.from_pylist([*ended, *long, *open_], MARKS), "query", 0)
    (acme,) = by_tenant(tables)

    assert acme.blame == "topic limit (messages; 82% of the time held)"
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
        for found in (tables.totals(SUMS), SUMS.of(named_rows(marks)))
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


def minute_of(number):
    return NINE.replace(minute=number)


def test_each_phase_is_told_where_the_fault_changes_hands(tables):
    sent = {1: {A: 95, D: 5}, 2: {A: 46, C: 48, D: 1}, 3: {A: 45, C: 50, D: 1}, 5: {A: 5, C: 95, D: 4}}
    sent[8] = {C: 1, E: 99}  # a minute in which nothing of acme is held
    usage = [
        {"event_time": minute_of(minute), "topic": topic, "broker": "b1", "messages": count}
        | {"bytes": count, "throttled_publishes": 1}
        for minute, by_topic in sent.items()
        for topic, count in by_topic.items()
    ]
    free = [
        {"event_time": NINE.replace(minute=minute, second=30), "topic": A, "broker": "b1", "messages": 1, "bytes": 1}
        | {"throttled_publishes": 0, "throttled_ns": 0}
        for minute in sent
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage + free, TOPIC_USAGE), "query", 0)
    marks = [
        {"topic": t, "scope": "group", "limiter": "gold", "action": "mark", "event_time": minute_of(1)}
        for t in (A, C, D)
    ]
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    groups = ResourceGroups(tenants=dict.fromkeys(("acme", "else", "third", "last"), "gold"))
    told = {row.name: row.fault for row in throttling(tables, groups).tenants}

    assert told["acme"].words == (
        "by time: 09:01:00 its own fault (95% of the excess messages); 09:02:00 to 09:03:00 shared fault of else 51% "
        "and acme 48% of the excess messages; 09:05:00 victim of else 91% of the excess messages"
    )
    assert told["third"].words.startswith("by time: 09:01:00 victim of acme 95% of the excess messages; 09:02:00 to")
    assert told["third"].words.endswith("09:05:00 victim of else 91% of the excess messages")
    assert {"third": True, "acme": False} == {name: told[name].is_victim for name in ("third", "acme")}


def second_of(number):
    return NINE + timedelta(seconds=number)


def test_holds_are_told_apart_within_a_minute(tables):
    sent = {1: {A: 900, C: 5}, 20: {A: 1, C: 99}}
    usage = [
        {"event_time": second_of(second), "topic": topic, "broker": "b1", "messages": count, "bytes": count}
        | {"throttled_publishes": 1}
        for second, by_topic in sent.items()
        for topic, count in by_topic.items()
    ]
    usage.append(usage[0] | {"event_time": second_of(10), "throttled_publishes": 0, "throttled_ns": 0})
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    (acme,) = (row for row in throttling(tables, GOLD).tenants if row.name == "acme")

    assert acme.fault.words == (
        "by time: 09:00:01 its own fault (99% of the excess messages); 09:00:20 victim of else 99% of the excess "
        "messages"
    )


@pytest.mark.parametrize(
    ("offered", "topic"),
    [
        ({A: (900, 900, 0), B: (300, 40, 60)}, B),  # most of it was let in late or waits
        ({A: (900, 300, 0), B: (300, 40, 60)}, A),
        ({A: (900, 900, 0), B: (300, 300, 0)}, A),
        ({A: (900, None, 10), B: (300, None, 60)}, B),
    ],
)
def test_of_the_topics_of_who_is_at_fault_that_is_named_of_which_most_was_held(tables, offered, topic):
    """publishes, of these let in, and of these late; in admitted traffic those that were throttled."""
    usage = [
        {"event_time": NINE, "topic": name, "broker": "b1", "messages": publishes, "bytes": 1, "publishes": publishes}
        | {"admitted_publishes": let_in, "delayed_publishes": late, "failed_publishes": 0}
        | {"throttled_publishes": late or 1}
        for name, (publishes, let_in, late) in offered.items()
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    (acme,) = throttling(tables, GOLD).tenants

    assert acme.fault.words == f"its own fault: 100% of the excess messages, most held: {topic}"


def held_by(*minutes, limiter=("group", "gold"), **more):
    scope, name = limiter
    mark = {"topic": A, "scope": scope, "limiter": name, "action": "mark", "broker": "b1"} | more
    return [mark | {"event_time": minute_of(minute)} for minute in minutes]


@pytest.mark.parametrize(
    ("marks", "faults"),
    [
        (held_by(1, 2, 3), ["its own fault", "victim of else", "shared fault"]),
        (held_by(1), ["its own fault", "victim of else", "shared fault"]),  # held on, without more marks
        (held_by(4), []),  # not before the first mark
        (held_by(1, 1) + held_by(2, 3, limiter=("topic", A)), ["its own fault"]),  # what else held it is another matter
    ],
)
def test_a_minute_counts_in_which_that_limiter_held_the_tenant(tables, marks, faults):
    sent = {1: (99, 1), 2: (1, 99), 3: (50, 50)}
    usage = [
        {"event_time": minute_of(minute), "topic": topic, "broker": "b1", "messages": count, "bytes": count}
        | {"throttled_publishes": 1}
        for minute, counts in sent.items()
        for topic, count in zip((A, C), counts, strict=True)
    ]
    free = [
        {"event_time": NINE.replace(minute=minute, second=30), "topic": A, "broker": "b1", "messages": 0, "bytes": 0}
        | {"throttled_publishes": 0, "throttled_ns": 0}
        for minute in sent
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage + free, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    (acme,) = (row for row in throttling(tables, GOLD).tenants if row.name == "acme")
    found = [one for one in ("its own fault", "victim of else", "shared fault") if one in acme.fault.words]
    assert found == faults


@pytest.mark.parametrize(
    ("per_s", "quota", "words"),
    [
        (30, 200, "nobody's fault: it fits into the quota, but the shares of brokers had not followed the load yet"),
        (30, 50, "its own fault: 100% of the excess messages, most held"),
        (200, 200, "its own fault: 100% of the excess messages, most held"),
    ],
)
def test_a_share_that_follows_late_is_nobodys_fault(tables, per_s, quota, words):
    """It fits into the quota, and the limit that held it is less than that."""
    usage = [{"event_time": NINE, "topic": A, "broker": "b1", "messages": 100, "bytes": 1, "throttled_publishes": 9}]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=per_s), MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=quota)}, tenants={"acme": "gold"})
    (acme,) = throttling(tables, groups).tenants

    assert acme.fault.words.startswith(words)
    assert not acme.fault.is_victim


def test_a_hold_that_is_nobodys_fault_is_told_beside_one_that_is_somebodys(tables):
    sent = {1: {A: 900, C: 5}, 20: {A: 60, C: 40}}
    usage = [
        {"event_time": second_of(second), "topic": topic, "broker": "b1", "messages": count, "bytes": 1}
        | {"throttled_publishes": 1}
        for second, by_topic in sent.items()
        for topic, count in by_topic.items()
    ]
    usage.append(usage[0] | {"event_time": second_of(10), "throttled_publishes": 0, "throttled_ns": 0, "messages": 1})
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=50), MARKS), "query", 0)
    pool = {"gold": ResourceGroup(publish_messages_per_s=200)}
    groups = ResourceGroups(pool, tenants=dict.fromkeys(("acme", "else"), "gold"))
    (acme,) = (row for row in throttling(tables, groups).tenants if row.name == "acme")

    assert acme.fault.words == (
        "by time: 09:00:01 its own fault (100% of the excess messages); 09:00:20 nobody's fault (shares had not "
        "followed the load)"
    )


def test_a_job_of_one_broker_names_nobody_for_a_share_as_others_use_the_rest(tables):
    usage = [{"event_time": NINE, "topic": A, "broker": "b1", "messages": 100, "bytes": 1, "throttled_publishes": 9}]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=30), MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=200)}, tenants={"acme": "gold"})
    (acme,) = throttling(tables, groups, has_all_brokers=False).tenants

    assert acme.fault.words == "by whose fault depends on other brokers, too: headgate usage, below, knows all of them"
    assert not acme.fault.is_victim


def test_topics_that_are_attached_apart_are_charged_apart(tables):
    usage = [
        {"event_time": NINE, "topic": topic, "broker": "b1", "messages": count, "bytes": 1, "throttled_publishes": 9}
        for topic, count in ((A, 10), (B, 900), (C, 90))
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    groups = ResourceGroups(tenants=dict.fromkeys(("acme", "else"), "gold"), topics={B: "other"})
    (acme,) = (row for row in throttling(tables, groups).tenants if row.name == "acme")

    assert acme.fault.words.startswith("shared fault of else 90% and acme 10%")


def test_who_exceeds_a_fair_share_of_a_group_counts_though_no_limit_held_him(tables):
    """A broker with a small share holds its tenant while another tenant has the rest of the quota elsewhere."""
    usage = [(A, 950, 0, 0), (C, 20, 5, 10)]
    fill(tables, usage, [(C, "group", "gold", "mark")] * 2)
    (held,) = (row for row in throttling(tables, GOLD).tenants if row.is_held)

    assert held.fault.is_victim
    assert held.fault.words.startswith("fault of acme: 98% of the excess messages")


def test_the_minute_of_a_mark_is_the_same_in_sql_and_arrow(tables):
    times = [NINE.replace(minute=minute, second=s, microsecond=s) for minute in (0, 1, 59) for s in (0, 59)]
    rows = [{"event_time": at, "topic": A, "broker": "b", "action": "mark"} for at in times]
    marks = pa.Table.from_pylist(rows, MARKS)
    tables.append("marks", marks, "query", 0)
    of_sql, of_arrow = (
        sorted((row["minute"], row["rows"]) for row in found.to_pylist())
        for found in (tables.totals(SUMS), SUMS.of(named_rows(marks)))
    )

    assert of_sql == of_arrow == [("2026-03-01T09:00", 2), ("2026-03-01T09:01", 2), ("2026-03-01T09:59", 2)]
    assert {minute_name(at) for at in times} == {minute for minute, _ in of_sql}


def test_most_marks_of_a_limiter_count_whatever_ran_out_of_it(tables):
    left = {"messages_balance": 0, "bytes_balance": 1}, {"messages_balance": 1, "bytes_balance": 0}
    marks = [
        *(held_by(0, **left[0]) * 3),
        *(held_by(0, **left[1]) * 3),
        *(held_by(0, limiter=("topic", A), **left[1]) * 5),
    ]
    fill(tables, [(A, 5, 1, 10)])
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)

    assert ["group gold (bytes 50%, messages 50%; 55% of the time held)"] == [row.blame for row in by_tenant(tables)]
