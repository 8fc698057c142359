"""Whose fault it is that a limiter held a tenant, in words."""

import pyarrow as pa
import pytest

from headgate.conf.resource_groups import ResourceGroup, ResourceGroups
from headgate.report.throttling.blame import throttling
from headgate.report.throttling.fault import Fault
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from unit.report.throttling.filled import (
    BYTES,
    GOLD,
    MESSAGES,
    NINE,
    A,
    B,
    C,
    D,
    E,
    fill,
    held_by,
    minute_of,
    second,
)


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


def test_holds_are_told_apart_within_a_minute(tables):
    sent = {1: {A: 900, C: 5}, 20: {A: 1, C: 99}}
    usage = [
        {"event_time": second(at), "topic": topic, "broker": "b1", "messages": count, "bytes": count}
        | {"throttled_publishes": 1}
        for at, by_topic in sent.items()
        for topic, count in by_topic.items()
    ]
    usage.append(usage[0] | {"event_time": second(10), "throttled_publishes": 0, "throttled_ns": 0})
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    (acme,) = (row for row in throttling(tables, GOLD).tenants if row.name == "acme")

    assert acme.fault.words == (
        "by time: 09:00:01 its own fault (99% of the excess messages); 09:00:20 victim of else 99% of the excess "
        "messages"
    )


@pytest.mark.parametrize(("sent", "named"), [((900, 880), A), ((900, 100), f"{A}-partition-0"), ((900, 500), A)])
def test_a_partition_is_named_if_most_of_the_topic_was_sent_to_it(tables, sent, named):
    """Which of them waits longer is the limiter's choice."""
    usage = [
        {"event_time": NINE, "topic": f"{A}-partition-{number}", "broker": "b1", "messages": count, "bytes": 1}
        | {"publishes": count, "admitted_publishes": count, "failed_publishes": 0, "throttled_publishes": 1}
        | {"delayed_publishes": 9, "delay_ns": 10**9 if number else 10**10}
        for number, count in enumerate(sent)
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    (acme,) = throttling(tables, GOLD).tenants

    assert acme.fault.words == f"its own fault: 100% of the excess messages, most held: {named}"


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
        | {"admitted_publishes": let_in, "delayed_publishes": late, "failed_publishes": 0, "delay_ns": late * 10**9}
        | {"throttled_publishes": late or 1}
        for name, (publishes, let_in, late) in offered.items()
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0), MARKS), "query", 0)
    (acme,) = throttling(tables, GOLD).tenants

    held = "sent" if not any(late for _, _, late in offered.values()) else "held"
    assert acme.fault.words == f"its own fault: 100% of the excess messages, most {held}: {topic}"


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
        (30, 200, "nobody's fault: it fits into the quota, but not into the shares of brokers, which follow the load"),
        (30, 40, "its own fault: 100% of the excess messages, most held"),
        (
            200,
            200,
            "nobody's fault: somewhat more than the rate came, and fits into what a second saves up of the rate",
        ),
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
        {"event_time": second(at), "topic": topic, "broker": "b1", "messages": count, "bytes": 1}
        | {"throttled_publishes": 1}
        for at, by_topic in sent.items()
        for topic, count in by_topic.items()
    ]
    usage.append(usage[0] | {"event_time": second(10), "throttled_publishes": 0, "throttled_ns": 0, "messages": 1})
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=50), MARKS), "query", 0)
    pool = {"gold": ResourceGroup(publish_messages_per_s=200)}
    groups = ResourceGroups(pool, tenants=dict.fromkeys(("acme", "else"), "gold"))
    (acme,) = (row for row in throttling(tables, groups).tenants if row.name == "acme")

    assert acme.fault.words == (
        "by time: 09:00:01 its own fault (100% of the excess messages); 09:00:20 nobody's fault (it fits into "
        "the quota, but not into the shares of brokers, which follow the load)"
    )


def test_what_a_broker_held_and_lets_go_at_once_is_no_fault_of_the_group_that_holds_it_then(tables):
    """Each limiter is told of what it held, and of the topic of which it held most."""
    by_broker, by_group = {"throttled_by_broker": 5}, {"throttled_by_group": 5}
    sent = [
        (1, A, 900, by_broker),
        (1, B, 9, by_broker),
        (2, B, 9, by_broker),
        (3, B, 9, by_group),
        (4, B, 9, by_group),
    ]
    usage = [
        {"event_time": second(at), "topic": topic, "broker": "b1", "messages": count, "bytes": 1, "publishes": 9}
        | {"throttled_publishes": 5, "throttled_ns": 9}
        | by
        for at, topic, count, by in sent
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    marks = held_by(0, messages_per_s=50) + held_by(0, limiter=("broker", "b1"), messages_per_s=60)
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=50)}, topics={B: "gold"})
    (acme,) = throttling(tables, groups).tenants

    assert acme.fault.words == f"its own fault: 100% of the excess messages, most held: {A}"
    assert [words.rpartition("; ")[2] for words in acme.also] == [
        "nobody's fault: it fits into the rate, but a backlog came at once that another limiter had held"
    ]


def test_units_for_which_somebody_waits_are_told_of_and_no_other_that_has_run_out_as_well(tables):
    usage = [
        {"event_time": NINE, "topic": topic, "broker": "b1", "messages": messages, "bytes": count}
        | {"throttled_publishes": 1}
        for topic, messages, count in ((A, 60, 1), (C, 40, 99))
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    rates = {"messages_per_s": 10, "bytes_per_s": 10}
    balances = ((A, -50, -1), (C, -50, -1), (C, -50, -400))
    marks = [
        mark | {"topic": topic, "messages_balance": m, "bytes_balance": b, "event_time": NINE.replace(microsecond=at)}
        for at, (topic, m, b) in zip((0, 0, 500_000), balances, strict=True)
        for mark in held_by(0, **rates)
    ]
    tables.append("marks", pa.Table.from_pylist(marks[:2], MARKS), "query", 0)
    by_messages = {row.name: row.fault.words for row in throttling(tables, GOLD).tenants}
    tables.append("marks", pa.Table.from_pylist(marks[2:], MARKS), "query", 1)
    rows = throttling(tables, GOLD).tenants
    by_both = {row.name: row.fault.words for row in rows}

    assert all(row.fault.has_parts for row in rows)
    shared = "shared fault of acme 62% and else 38% of the excess messages"
    assert by_messages == {"acme": shared, "else": shared}
    assert by_both == {
        "acme": f"{shared}, and victim of else 100% of the excess bytes",
        "else": f"its own fault (100% of the excess bytes), and {shared}",
    }


def test_a_job_of_one_broker_names_nobody_for_a_share_as_others_use_the_rest(tables):
    usage = [{"event_time": NINE, "topic": A, "broker": "b1", "messages": 100, "bytes": 1, "throttled_publishes": 9}]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=30), MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=200)}, tenants={"acme": "gold"})
    (acme,) = throttling(tables, groups, has_all_brokers=False).tenants

    assert acme.fault == Fault("by whose fault depends on other brokers, too: headgate usage, below, knows all of them")


SHARES_BRIEFLY = "nobody's fault (it fits into the quota, but not into the shares of brokers, which follow the load)"
THEN_OWN = "09:00:08 to 09:00:14 its own fault (100% of the excess messages)"


@pytest.mark.parametrize(
    ("flood_s", "words"),
    [
        (8, f"by time: 09:00:01 to 09:00:07 {SHARES_BRIEFLY}; {THEN_OWN}"),
        (2, "its own fault: 100% of the excess messages, most held: "),
    ],
)
def test_who_comes_to_exceed_a_share_in_a_hold_is_at_fault_from_then_on(tables, flood_s, words):
    usage = [
        {"event_time": second(at), "topic": A, "broker": "b1", "messages": 900 if at == flood_s else 60, "bytes": 1}
        | {"throttled_publishes": 1}
        for at in range(1, 15)
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=50), MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=100)}, tenants={"acme": "gold"})
    (acme,) = throttling(tables, groups).tenants

    assert acme.fault.words.startswith(words)


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


@pytest.mark.parametrize(("first_s", "names"), [(5, ("group gold",)), (2, ())])
def test_limiters_that_are_overloaded_from_the_start_are_named(tables, first_s, names):
    usage = [
        {"event_time": second(at), "topic": topic, "broker": "b1", "messages": count, "bytes": 1}
        | {"throttled_publishes": int(at >= 5), "throttled_by_group": int(at >= 5), "throttled_ns": int(at >= 5)}
        for at in range(first_s, 9)
        for topic, count in ((A, 900 if at >= 5 else 9), (C, 5))
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=200), MARKS), "query", 0)
    quota = {"gold": ResourceGroup(publish_messages_per_s=200)}
    groups = ResourceGroups(quota, tenants=dict.fromkeys(("acme", "else"), "gold"))

    assert throttling(tables, groups).without_usual == names


def test_an_overload_from_the_start_is_one_though_what_was_saved_up_is_used_first(tables):
    usage = [
        {"event_time": second(at), "topic": topic, "broker": "b1", "messages": count, "bytes": 1}
        | {"throttled_publishes": 1, "throttled_by_group": 1, "throttled_ns": 1}
        for at in range(1, 20)
        for topic, count in ((A, 240), (C, 5))
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(0, messages_per_s=200), MARKS), "query", 0)
    quota = {"gold": ResourceGroup(publish_messages_per_s=200)}
    found = throttling(tables, ResourceGroups(quota, tenants=dict.fromkeys(("acme", "else"), "gold")))

    assert found.without_usual == ("group gold",)
    assert found.tenants[0].fault.words.startswith("by time: 09:00:01 to 09:00:04 nobody's fault")


@pytest.mark.parametrize(
    ("second_minute", "words"),
    [
        ((500, 500), "shared fault of acme 55% and else 45% of the excess messages"),
        ((300, 700), "by time: 09:01:00 shared fault of acme 60% and else 40% of the excess messages; 09:02:00 shared"),
    ],
)
def test_parts_that_move_are_told_apart(tables, second_minute, words):
    usage = [
        {"event_time": minute_of(minute), "topic": topic, "broker": "b1", "messages": count, "bytes": 1}
        | {"throttled_publishes": 1}
        for minute, counts in ((1, (600, 400)), (2, second_minute))
        for topic, count in zip((A, C), counts, strict=True)
    ]
    free = [usage[0] | {"event_time": minute_of(1).replace(second=9), "messages": 1, "throttled_publishes": 0}]
    tables.append("topic_usage", pa.Table.from_pylist(usage + free, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(1, 2), MARKS), "query", 0)
    (acme,) = (row for row in throttling(tables, GOLD).tenants if row.name == "acme")

    assert acme.fault.words.startswith(words)


@pytest.mark.parametrize(
    ("within_s", "words"),
    [
        (5, "by time: 09:01:56 to 09:01:58 its own fault (100% of the excess messages); 09:02:00 to 09:02:05 nobody's"),
        (2, "its own fault: 100% of the excess messages"),
    ],
)
def test_what_is_nobodys_fault_for_longer_than_a_moment_is_told_within_a_hold_too(tables, within_s, words):
    first = minute_of(1).replace(second=56)
    usage = [
        {"event_time": at, "topic": A, "broker": "b1", "messages": count, "bytes": 1, "throttled_publishes": held}
        for at, count, held in [
            *((first.replace(second=second), 900, 1) for second in (56, 57, 58)),
            (first.replace(second=59), 100, 0),
            *((minute_of(2).replace(second=second), 60, 1) for second in range(within_s + 1)),
        ]
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(held_by(1, 2, messages_per_s=50), MARKS), "query", 0)
    groups = ResourceGroups({"gold": ResourceGroup(publish_messages_per_s=200)}, tenants={"acme": "gold"})
    (acme,) = throttling(tables, groups).tenants

    assert acme.fault.words.startswith(words)
