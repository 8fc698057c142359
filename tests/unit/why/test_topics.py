"""`why`: the answer about a topic, on traces whose culprits are known."""

import json

import pytest

from headgate.cli import main
from headgate.core.reasons import HeldReason
from headgate.errors import TableError
from headgate.why.topics import why
from unit.local_runs import SECOND_US, START_US
from unit.why.conftest import FLOOD, FREE, GROUPS, OWN, POLICIES, SMALL, every

START_S = START_US // SECOND_US


def test_who_shares_a_quota_with_a_flood_is_its_victim_and_a_quota_of_its_own_for_the_flood_helps(output):
    found = why(output, SMALL)

    assert (HeldReason.GROUP_QUOTA_MESSAGES, "victim") == (found.reason, found.verdict.kind)
    assert [("flood", 1.0)] == list(found.verdict.excess)
    assert ["flood", "small"] == [one.name for one in found.filled.tenants]
    split = next(one for one in found.remedies if one.kind == "split")
    assert ("flood", 5, 35) == (split.name, split.rate, split.other_rate)


def test_who_floods_is_the_cause_and_the_smallest_quota_is_what_all_send(output):
    found = why(output, FLOOD.removeprefix("persistent://"))

    assert ("cause", [("flood", 1.0)]) == (found.verdict.kind, list(found.verdict.excess))
    (quota,) = found.remedies
    assert ("quota", "gold", "messages") == (quota.kind, quota.name, quota.unit)
    assert 60 < quota.rate <= 65  # 15 s of 65/s, of which a second is saved up
    assert 65 < quota.other_rate <= 2 * 65 * 1.02 + 2


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

    assert not why(run(rows, policies=limits(limit.other_rate)), OWN).is_held
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
    assert "has no rows" in capsys.readouterr().err
    assert 2 == main(["why", SMALL, output, "--at", "0", "--to", "9"])
    assert "leave one of them out" in capsys.readouterr().err
