"""`why`: the answer about a topic, on traces whose culprits are known."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate.cli import main
from headgate.core.numbers import SECOND_NS
from headgate.core.quota.settings import QuotaSettings
from headgate.core.reasons import HeldReason
from headgate.errors import TableError
from headgate.store_errors import is_away
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from headgate.throttle.tables import throttle_tables
from headgate.why.tables import OutputTables
from headgate.why.topics import why as why_of
from unit.local_runs import SECOND_US, SHARED, START_US
from unit.why.conftest import FLOOD, FREE, GROUPS, OWN, POLICIES, SMALL, every

START_S = START_US // SECOND_US


def why(output, name, **when):
    return why_of(OutputTables(output), name, **when)


def test_who_shares_a_quota_with_a_flood_is_its_victim_and_a_quota_of_its_own_for_the_flood_helps(output):
    found = why(output, SMALL)

    assert (HeldReason.GROUP_QUOTA_MESSAGES, "victim") == (found.reason, found.verdict.kind)
    assert [("flood", 1.0)] == list(found.verdict.excess)
    assert ["flood", "small"] == [one.name for one in found.filled.tenants]
    split = next(one for one in found.remedies if one.kind == "split")
    assert ("flood", 5, 35) == (split.name, split.rate, split.rest)


def test_who_floods_is_the_cause_and_the_smallest_quota_is_what_all_send(output):
    found = why(output, FLOOD.removeprefix("persistent://"))

    assert ("cause", [("flood", 1.0)]) == (found.verdict.kind, list(found.verdict.excess))
    (quota,) = found.remedies
    assert ("quota", "gold", "messages") == (quota.kind, quota.name, quota.unit)
    assert 60 < quota.rate <= 65  # 15 s of 65/s, of which a second is saved up
    assert 65 < quota.sure_rate <= 2 * 65 * 1.02 + 2


def test_a_limit_of_its_own_is_nobody_elses_and_the_chain_says_where_it_was_set(output):
    found = why(output, OWN)

    assert (HeldReason.TOPIC_PUBLISH_RATE_MESSAGES, "own_limit") == (found.reason, found.verdict.kind)
    binding = [one for one in found.chain if one.is_binding]
    assert [("namespace", "own/ns", 10, None, "policies.json")] == [
        (one.level, one.name, one.messages_per_s, one.bytes_per_s, one.set_in) for one in binding
    ]
    assert [True] == [one.is_in_force for one in binding]
    (limit,) = found.remedies
    assert 14 <= limit.rate <= 15  # 20 s of 15/s, of which a second is saved up


def test_what_is_found_ends_the_hold_when_it_is_tried(run):
    """The rules agree: under the sure rate nothing is held, and below the rate that is found something is."""
    rows = [*every(30, OWN, end_s=4), *every(3, OWN, first_s=4, end_s=5, messages=17)]

    def limits(rate):
        (of_own,) = POLICIES["namespaces"].values()
        return {"namespaces": {"own/ns": {"publishRate": of_own["publishRate"] | {"publishThrottlingRateInMsg": rate}}}}

    (limit,) = why(run(rows, policies=limits(10)), OWN).remedies

    assert not why(run(rows, policies=limits(limit.sure_rate)), OWN).is_held
    assert why(run(rows, policies=limits(limit.rate * 3 // 4)), OWN).is_held


def test_a_topic_that_no_limit_held_says_so_and_still_has_its_chain(output):
    found = why(output, FREE)

    assert (HeldReason.NOT_HELD, 0, (), None, ()) == (
        *(found.reason, found.held_s, found.held_by, found.verdict, found.remedies),
    )
    assert found.traffic.publishes == 60


def test_a_move_to_a_broker_with_room_is_proposed_where_a_brokers_limit_holds(run):
    big, small, far = (f"persistent://{name}/ns/t" for name in ("big", "small", "far"))
    rows = [*every(60, big), *every(10, small), *every(20, far, broker="b2")]
    output = run(
        rows, groups={}, policies={}, brokerPublisherThrottlingMaxMessageRate=50, brokerPublisherThrottlingMaxByteRate=0
    )
    too_full = why(output, small)

    assert (HeldReason.BROKER_PUBLISH_RATE_MESSAGES, "victim") == (too_full.reason, too_full.verdict.kind)
    assert "move" not in {one.kind for one in too_full.remedies}
    rows = [*every(45, big), *every(15, small), *every(1, far, broker="b2")]
    output = run(
        rows, groups={}, policies={}, brokerPublisherThrottlingMaxMessageRate=50, brokerPublisherThrottlingMaxByteRate=0
    )
    move = next(one for one in why(output, small).remedies if one.kind == "move")
    assert (big, "b2") == (move.name, move.target)


def test_a_blocked_group_is_nobodys_fault(run):
    found = why(
        run(every(5, SMALL, end_s=3), groups=GROUPS | {"resourcegroups": {"gold": {"publishRateInMsgs": 0}}}), SMALL
    )

    assert (HeldReason.GROUP_BLOCKED, "nobody") == (found.reason, found.verdict.kind)


@pytest.mark.parametrize(("at_s", "is_held"), [(2, False), (15, True)])
def test_at_an_instant_it_is_held_or_not(output, at_s, is_held):
    found = why(output, FLOOD, at_s=START_S + at_s)

    assert (is_held, is_held) == (found.is_held_at, found.is_held)


def test_only_the_time_asked_about_counts(output):
    before = why(output, FLOOD, first_s=START_S, last_s=START_S + 4)
    after = why(output, FLOOD, first_s=START_S + 5)

    assert (HeldReason.NOT_HELD, 100) == (before.reason, before.traffic.messages)
    assert 900 == after.traffic.messages
    assert after.held_s == pytest.approx(why(output, FLOOD).held_s)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("x", {}, "allowed: a topic's name"),
        ("flod/ns/t", {}, f"has no publish of persistent://flod/ns/t, in 4 topics; nearest: {FLOOD}"),
        (FLOOD, {"at_s": START_S - 100}, "nothing is known of 2026-01-05T08:58:20Z"),
        (FLOOD, {"first_s": START_S + 9999}, "nothing is known yet of 2026-01-05T11:46:39Z"),
        (FLOOD, {"first_s": START_S + 5, "last_s": START_S}, "an end that is not before the start"),
    ],
)
def test_what_cannot_be_answered_is_said(output, name, options, words):
    with pytest.raises(TableError) as raised:
        why(output, name, **options)

    assert words in str(raised.value)


def test_a_time_that_begins_before_the_rows_is_noted(output):
    assert "gone by retention" in why(output, FLOOD, first_s=START_S - 60).notes[0]


def test_the_screen_and_json_say_the_same(output, capsys):
    assert 0 == main(["why", SMALL, output])
    screen = capsys.readouterr().out
    assert 0 == main(["why", SMALL, output, "--json"])
    found = json.loads(capsys.readouterr().out)

    assert found["reason"] in screen
    assert f"HELD for {found['heldS']:,.1f} s of 20 seconds" in screen
    assert "VERDICT: VICTIM of flood 100%" in screen
    assert all(one["words"] in screen for one in found["remedies"])
    assert {"publishes": 100, "messages": 100}.items() <= found["traffic"].items()


def test_without_tables_an_instant_beside_a_span_or_rows_the_message_says_what_to_do(tmp_path, output, capsys):
    assert 2 == main(["why", SMALL, str(tmp_path)])
    assert "has no table topic_usage" in capsys.readouterr().err
    assert 2 == main(["why", SMALL, output, "--at", "0", "--to", "9"])
    assert "leave one of them out" in capsys.readouterr().err


def test_partitions_are_one_topic_and_names_that_only_look_so_are_not(run):
    names = [f"{OWN}{suffix}" for suffix in ("-partition-0", "-partition-1", "-partition-x")]
    found = why(run([*every(15, names[0]), *every(3, names[1]), *every(7, names[2])]), OWN)

    assert (18 * 20, HeldReason.TOPIC_PUBLISH_RATE_MESSAGES) == (found.traffic.publishes, found.reason)


def test_a_hold_that_began_long_before_is_found(tmp_path):
    """A blocked group: one mark, and no row of the topic until something happens to it."""
    tables = throttle_tables(tmp_path)
    at_ns = START_S * SECOND_NS
    mark = {"at_ns": at_ns, "event_time": at_ns // 1000, "action": "mark", "topic": SMALL, "broker": "b1"}
    mark |= {"scope": "group", "limiter": "gold", "messages_per_s": 0, "messages_balance": 0, "producer": "p"}
    tables.append("marks", pa.Table.from_pylist([mark | {"type": "", "connection": "c"}], MARKS), "x", 0)
    usage = [
        {"event_time": (START_S + s) * SECOND_US, "broker": "b1", "topic": topic}
        for s, topic in ((0, SMALL), (9000, FREE))
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "x", 0)

    assert [(HeldReason.GROUP_BLOCKED, True)] * 2 == [
        (found.reason, found.is_held_at) for found in (why(str(tmp_path), SMALL, at_s=START_S + s) for s in (500, 8000))
    ]


def test_of_a_day_the_hour_is_looked_at_in_which_it_was_held_longest(tmp_path):
    """A row tells of the time since the one before it: 50 minutes of the first hour, 10 of the second."""
    tables = throttle_tables(tmp_path)
    hour_s = START_S // 3600 * 3600
    rows = [(0, 0), (4200, 3600), (7200, 900), (80_000, 0)]
    usage = [
        {"event_time": (hour_s + at_s) * SECOND_US, "broker": "b1", "topic": SMALL, "throttled_ns": held_s * SECOND_NS}
        for at_s, held_s in rows
    ]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "x", 0)
    found = why(str(tmp_path), SMALL)

    assert (hour_s, hour_s + 3599) == (found.looked_at.first.timestamp(), found.looked_at.last.timestamp())
    assert found.traffic.throttled_s == 4500
    assert (HeldReason.NOT_HELD, ()) == (found.reason, found.held_by)


def test_what_held_it_is_told_by_scope_where_marks_are_gone(tmp_path):
    tables = throttle_tables(tmp_path)
    row = {"event_time": START_US, "broker": "b1", "topic": SMALL, "publishes": 9, "throttled_by_group": 3}
    tables.append("topic_usage", pa.Table.from_pylist([row], TOPIC_USAGE), "x", 0)
    found = why(str(tmp_path), SMALL)

    assert (HeldReason.GROUP_QUOTA, True) == (found.reason, found.is_held)
    assert "gone by retention" in found.notes[0]


def test_limits_are_those_of_the_time_in_which_it_was_held(run):
    """A policy that was set after the hold is none of the chain."""
    output = run([*every(15, OWN, end_s=5), *every(1, OWN, first_s=5, end_s=60)])
    row = {"effective_time": datetime.fromtimestamp(START_S + 55, UTC), "seq": 0, "kind": "limit", "scope": "topic"}
    throttle_tables(output).append_control([row | {"name": OWN, "messages_per_s": 1000, "source": "by hand"}])

    assert [("namespace", 10)] == [(one.level, one.messages_per_s) for one in why(output, OWN).chain if one.is_binding]


def test_both_units_are_named_where_both_would_hold(run):
    policy = {
        "namespaces": {
            "own/ns": {"publishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": 110}}
        }
    }
    (limit,) = why(run(every(15, OWN), policies=policy), OWN).remedies

    assert {"messages", "bytes"} == {limit.unit, limit.also[0]}
    wide = {"publishThrottlingRateInMsg": limit.sure_rate, "publishThrottlingRateInByte": limit.also[2]}
    if limit.unit == "bytes":
        wide = dict(zip(wide, reversed(wide.values()), strict=True))
    assert not why(run(every(15, OWN), policies={"namespaces": {"own/ns": {"publishRate": wide}}}), OWN).is_held


def test_of_a_group_on_two_brokers_no_sure_rate_is_told(run):
    output = run([*every(60, FLOOD), *every(20, SMALL, broker="b2")])

    assert {None} == {one.sure_rate for one in why(output, FLOOD).remedies}


def test_in_admitted_traffic_rates_are_lower_bounds(run, capsys):
    output = run(every(15, OWN), traffic="admitted")

    assert "lower bounds" in why(output, OWN).notes[0]


def test_what_is_needed_besides_is_named_where_the_own_limit_would_hold_it_then(run):
    rate = {"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": -1}
    policies = {"namespaces": {"flood/ns": {"publishRate": rate}}}
    output = run([*every(20, FLOOD, end_s=5), *every(60, FLOOD, first_s=5)], policies=policies)

    assert [("quota", "gold"), ("limit", FLOOD)] == [(one.kind, one.name) for one in why(output, FLOOD).remedies]


def test_a_limit_that_is_raised_is_none_of_those_that_held(run):
    """A raise lets all go at once: the hold ends with it."""
    output = run(every(15, OWN, end_s=60))
    end = why(output, OWN).held_by[0].spans[-1].last
    row = {
        "effective_time": end,
        "seq": 0,
        "kind": "limit",
        "scope": "namespace",
        "name": "own/ns",
        "source": "by hand",
    }
    throttle_tables(output).append_control([row | {"messages_per_s": 1000}])

    assert [("namespace", 10)] == [(one.level, one.messages_per_s) for one in why(output, OWN).chain if one.is_binding]


def test_no_limit_is_proposed_below_that_which_held(run):
    """A publish of 15 every other second: 10/s would do if it were spread, and holds it as it is."""
    rows = [row for row in every(1, OWN, messages=15) if row["seq"] % 2]
    (limit,) = why(run(rows), OWN).remedies

    assert limit.rate == limit.sure_rate > 15


def test_limits_are_told_where_the_topic_had_no_traffic(run):
    output = run([*every(15, OWN, end_s=2), *every(3, FREE)])
    found = why(output, OWN, first_s=START_S + 18, last_s=START_S + 18)

    assert [("namespace", 10, None), ("default", None, None)] == [
        (one.level, one.messages_per_s, one.broker) for one in found.chain
    ]


@pytest.mark.parametrize("actions", [["unmark", "mark"], ["mark", "unmark", "mark"]])
def test_a_limiter_unmarks_before_it_marks_at_one_instant(tmp_path, actions):
    tables = throttle_tables(tmp_path)
    at_ns = START_S * SECOND_NS
    mark = {"at_ns": at_ns, "event_time": at_ns // 1000, "topic": OWN, "broker": "b1", "scope": "topic", "limiter": OWN}
    mark |= {"messages_per_s": 10, "messages_balance": 0, "producer": "p", "connection": "c", "type": ""}
    tables.append("marks", pa.Table.from_pylist([mark | {"action": one} for one in actions], MARKS), "x", 0)
    usage = [{"event_time": (START_S + at_s) * SECOND_US, "broker": "b1", "topic": OWN} for at_s in (0, 300)]
    tables.append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "x", 0)

    found = why(str(tmp_path), OWN, at_s=START_S + 200)
    assert (True, 60) == (found.is_held_at, found.held_s)


def test_a_backlog_that_is_held_for_longer_than_is_looked_back_is_held(run, capsys):
    few_batches = f"[trigger]\ninterval_ms = 20000\n{SHARED}"
    output = run([*every(1, OWN, end_s=1200, messages=200), *every(1, FREE, end_s=1200)], text=few_batches)
    at_s = START_S + 1190  # released and marked anew at one instant all the time
    found = why(output, OWN, at_s=at_s)
    assert (True, 60) == (found.is_held_at, found.held_s)
    assert 0 == main(["why", OWN, output, "--at", str(1000 * at_s)])
    assert "HELD for 60.0 s of 60 seconds" in capsys.readouterr().out


@pytest.mark.parametrize("traffic", ["offered", "admitted"])
def test_a_topic_of_one_producer_is_held_as_long_as_its_rows_of_usage_say(run, traffic):
    """Of a group on two brokers, whose shares change at instants at which publishes come; but for the last second."""
    parts = (("small", "b1", 20, 1), ("flood", "b1", 5, 30), ("small", "b2", 20, 3), ("flood", "b2", 10, 2))
    rows = [
        row | {"topic": f"persistent://{tenant}/ns/{broker}", "broker": broker, "connection": f"{tenant} {broker}"}
        for tenant, broker, per_s, messages in parts
        for row in every(per_s, SMALL, messages=messages)
    ]
    output = run(rows, traffic=traffic)
    usage = throttle_tables(output).read("topic_usage", ["event_time", "topic", "throttled_ns"])
    in_time = usage.filter(pc.field("event_time") < datetime.fromtimestamp(START_S + 19, UTC))
    for row in in_time.group_by("topic").aggregate([("throttled_ns", "sum")]).to_pylist():
        found = why(output, row["topic"], first_s=START_S, last_s=START_S + 18)
        assert row["throttled_ns_sum"] / SECOND_NS == pytest.approx(found.held_s, abs=1e-6)


@pytest.mark.usefixtures("no_store")
def test_groups_on_a_store_that_is_away_are_told_as_other_tables_are(output):
    settings = replace(QuotaSettings(), group_table="s3a://b/o/rg_groups")
    with pytest.raises(TableError, match=r"^the table s3a://b/o/rg_groups cannot be read: ") as told:
        why_of(OutputTables(output), SMALL, settings)
    assert is_away(told.value)
