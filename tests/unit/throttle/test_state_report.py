"""The report of a checkpoint's state: one row a limiter, with what the state holds of it."""

import json

import pyarrow as pa
import pytest

from headgate.errors import StateError
from headgate.report.state_screen import json_lines, state_lines
from headgate.throttle.form import Rules
from headgate.throttle.state import VERSION, KeyState, encode_state
from headgate.throttle.state_report import REPORT, state_report
from unit.throttle.domains import (
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    events_block,
    level_limit,
    limit,
    step_through,
    subscribe_limit,
    subscribes_block,
)
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, dispatch, event, subscribe

START_NS = START_US * 1000
LIMITS = [
    limit("default", "", 10, 1000),
    limit("broker", "", 100, seq=1),
    limit("group", "gold", None, 500, seq=2),
    limit("topic", TOPICS[1], seq=3, messages=0),
    attach(TOPICS[0], "gold"),
]


@pytest.fixture(scope="module")
def report() -> pa.Table:
    """Topic 0 overdraws its messages by 15, two producers wait for it, one twice; topic 1 has no limit of its own."""
    rows = [
        event(0, TOPICS[0], messages=25, bytes_=100, producer="p1"),
        event(1, TOPICS[0], messages=0, bytes_=0, seq=1, producer="p2"),
        event(2, TOPICS[0], messages=0, bytes_=0, seq=2, producer="p1"),
        event(SECOND_US + SECOND_US // 2, TOPICS[1], messages=1, bytes_=1, seq=3),
    ]
    state = step_through([[changes_block(LIMITS), events_block(rows)]], Rules(whole_brokers=True)).state
    return state_report([(VERSION, encode_state(state)), (VERSION, encode_state(KeyState()))])


def row_of(report: pa.Table, limiter: str) -> dict:
    (row,) = [row for row in in_ns(report) if row["limiter"] == limiter]
    return row


def in_ns(report: pa.Table) -> list[dict]:
    """Rows with instants as ns after START_NS."""
    instants = [field.name for field in REPORT if pa.types.is_timestamp(field.type)]
    columns = {name: report[name].cast(pa.int64()) if name in instants else report[name] for name in REPORT.names}
    rows = pa.table(columns).to_pylist()
    return [row | {name: row[name] if row[name] is None else row[name] - START_NS for name in instants} for row in rows]


def test_rows_come_by_broker_scope_and_name(report) -> None:
    expected = [("broker", BROKER), ("group", "gold"), ("topic", TOPICS[0]), ("topic", TOPICS[1])]
    assert REPORT == report.schema
    assert expected == list(zip(report["scope"].to_pylist(), report["limiter"].to_pylist(), strict=True))


def test_a_topics_row_has_its_rates_balances_debt_and_queue(report) -> None:
    expected = {
        "broker": BROKER,
        "scope": "topic",
        "limiter": TOPICS[0],
        "messages_per_s": 10,
        "bytes_per_s": 1000,
        "messages_balance": -15,  # as of the last refill: what was earned since counts when somebody looks
        "bytes_balance": 900,
        "messages_debt": 15,
        "bytes_debt": 0,
        "messages_remainder_ns": 0,
        "bytes_remainder_ns": 0,
        "waiting": 3,
    }
    assert expected == {name: row_of(report, TOPICS[0])[name] for name in expected}


def test_a_limiter_without_a_rate_has_no_bucket(report) -> None:
    row = row_of(report, TOPICS[1])
    assert (0, 0) == (row["messages_per_s"], row["bytes_per_s"])
    assert {None} == {
        row[f"{kind}_{name}"] for kind in ("messages", "bytes") for name in ("balance", "debt", "last_refill")
    }


def test_debt_is_what_the_balance_is_below_zero() -> None:
    rows = [event(0, TOPICS[0], messages=25, producer="p1"), event(1, TOPICS[0], seq=1, messages=1, producer="p2")]
    state = step_through([[changes_block([limit("default", "", 10)]), events_block(rows)]], Rules()).state
    row = row_of(state_report([(VERSION, encode_state(state))]), TOPICS[0])
    expected = {"messages_balance": -16, "messages_debt": 16, "waiting": 2, "open_second": 0, "clock": 1000}
    assert expected == {name: row[name] for name in expected}
    assert (0, 1_600_000_000) == (row["messages_last_refill"], row["next_drain"])


def test_a_checkpoint_without_domains_gives_no_rows() -> None:
    empty = state_report([(VERSION, encode_state(KeyState()))])
    assert (REPORT, 0) == (empty.schema, len(empty))
    assert ["0 limiters"] == list(state_lines(empty))


def test_a_groups_dispatch_level_has_a_row_of_its_own_with_who_waits_and_when_it_is_retried() -> None:
    rows = [dispatch(0, TOPICS[0], messages=15), dispatch(5, TOPICS[0], seq=1, messages=1)]
    changes = [attach(TOPICS[0], "gold"), dispatch_limit("gold", 10)]
    state = step_through([[changes_block(changes), dispatches_block(rows)]], Rules(offered=True)).state
    (row,) = in_ns(state_report([(VERSION, encode_state(state))]))
    expected = {"scope": "group", "limiter": "gold", "class": "dispatch", "messages_per_s": 10, "messages_balance": -5}
    expected |= {"messages_debt": 5, "bytes_balance": None, "waiting": 1, "next_drain": 1_000_005_000, "clock": 5_000}
    assert expected == {name: row[name] for name in expected}
    _, line, _ = state_lines(state_report([(VERSION, encode_state(state))]))
    assert "group gold, dispatch" in line


def test_a_consumer_has_a_row_with_its_attempts() -> None:
    blocks = [changes_block([subscribe_limit("default", "", 3, 10)]), subscribes_block([subscribe(0, TOPICS[0])])]
    (row,) = in_ns(state_report([(VERSION, encode_state(step_through([blocks], Rules()).state))]))
    expected = {"scope": "consumer", "limiter": f"{TOPICS[0]} host c 1", "class": "subscribe", "period_s": 10}
    expected |= {"messages_per_s": 3, "messages_balance": 2, "bytes_balance": None, "waiting": 0}
    assert expected == {name: row[name] for name in expected}


REPLICATOR = "pulsar.repl.b/c"
LEVELS = [
    level_limit("dispatch_limit", "broker", "", 100),
    level_limit("dispatch_limit", "default", "", 10, 1000, seq=1),
    level_limit("subscription_dispatch_limit", "default", "", 20, period_s=3, seq=2),
    level_limit("replicator_dispatch_limit", "default", "", None, 500, seq=3),
]


def test_levels_of_brokers_topics_subscriptions_and_replicators_have_a_row_each() -> None:
    rows = [dispatch(at_us, TOPICS[0], seq=at_us, subscription=name) for at_us, name in enumerate(("s", REPLICATOR))]
    state = step_through([[changes_block(LEVELS), dispatches_block(rows)]], Rules(whole_brokers=True)).state
    columns = ("scope", "limiter", "class", "messages_per_s", "bytes_per_s", "period_s", "messages_balance")
    expected = [
        ("broker", BROKER, "dispatch", 100, 0, 1, 98),
        ("replicator", f"{TOPICS[0]} {REPLICATOR}", "dispatch", 0, 500, 1, None),
        ("subscription", f"{TOPICS[0]} s", "dispatch", 20, 0, 3, 19),
        ("topic", TOPICS[0], "dispatch", 10, 1000, 1, 8),
    ]
    report = state_report([(VERSION, encode_state(state))])

    assert expected == [tuple(row[name] for name in columns) for row in in_ns(report)]
    lines = list(state_lines(report))
    assert any(f"subscription {TOPICS[0]} s, dispatch" in line and "20 in 3 s" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "scope", "name"),
    [
        (LEVELS[:1], "broker", "s"),
        (LEVELS[1:2], "topic", "s"),
        (LEVELS[2:3], "subscription", "s"),
        (LEVELS[3:], "replicator", REPLICATOR),
    ],
)
def test_who_waits_is_told_of_the_level_that_held_it_last(changes: list, scope: str, name: str) -> None:
    rows = [dispatch(at_us, TOPICS[0], seq=at_us, messages=200, bytes_=2000, subscription=name) for at_us in (0, 5)]
    state = step_through([[changes_block(changes), dispatches_block(rows)]], Rules(offered=True)).state
    (row,) = in_ns(state_report([(VERSION, encode_state(state))]))

    assert (scope, 1, 1_000_005_000) == (row["scope"], row["waiting"], row["next_drain"])


def test_of_a_classic_level_what_is_taken_and_its_next_renewal_are_told() -> None:
    blocks = [changes_block(LEVELS[1:2]), dispatches_block([dispatch(0, TOPICS[0], messages=15)])]
    state = step_through([blocks], Rules(classic=True)).state
    (row,) = in_ns(state_report([(VERSION, encode_state(state))]))

    assert (10, 15, 1_000_000_000) == tuple(
        row[name] for name in ("messages_per_s", "messages_balance", "messages_last_refill")
    )


def test_another_version_is_refused() -> None:
    with pytest.raises(StateError, match=f"version {VERSION + 1}"):
        state_report([(VERSION + 1, b"")])


def test_people_get_a_line_a_limiter_whose_columns_stand_under_each_other(report) -> None:
    head, *lines, last = state_lines(report)
    assert ["4 limiters", 4] == [last, len(lines)]
    assert [f"broker {BROKER}", "group gold", TOPICS[0], TOPICS[1]] == [
        line[head.index("limiter") : head.index("messages/s")].strip() for line in lines
    ]
    assert ["100", "-", "10", "-"] == [line[head.index("messages/s") :].split()[0] for line in lines]


def test_kinds_that_nothing_limits_are_left_out_for_people() -> None:
    state = step_through([[changes_block([limit("default", "", 10)]), events_block([event(0)])]], Rules()).state
    head, *_ = state_lines(state_report([(VERSION, encode_state(state))]))
    assert "bytes" not in head


def test_programs_get_every_column_as_json(report) -> None:
    rows = [json.loads(line) for line in json_lines(report)]
    assert [REPORT.names] * 4 == [list(row) for row in rows]
    assert {"2025-10-09 08:53:21.500000000Z"} == {row["clock"] for row in rows}
