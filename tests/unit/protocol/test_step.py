"""One key of the protocol's operator: order, watermark, marks and bad rows (throttle-protocol 6, 7.1, 15)."""

import json
from dataclasses import replace

import pytest

from headgate.core.protocol.settings import BrokerSettings
from headgate.errors import StateError
from headgate.protocol.state import VERSION, SlotState, decode_state, encode_state
from unit.protocol.runs import BOTH, OBEDIENT, RULES, TOPIC, A, batch, given, mark_row, run, time_block, told, trip

MS = 1_000_000
OPENED = [given("connect", 0, supports_throttle=True), given("open", 0, producer_id=7, topic=TOPIC, producer="p")]
MARKED = given("mark", 5, producer_id=7, trips=[trip(0, 1, (-4, 10))])
ASKED = ("command", 5, 1, 7, TOPIC, 0, 500, 505, "start", None, None)
COLUMNS = (
    *("kind", "at_ms", "request_id", "producer_id", "topic", "reason", "pause_for_millis", "until_ms"),
    *("command_kind", "cause", "off_ms"),
)


def test_a_mark_is_answered_with_a_command_once_its_millisecond_is_over():
    first, later = batch([*OPENED, MARKED]), batch([given("publish", 6, producer_id=7)])

    assert [] == run([first]).decisions
    assert [ASKED] == told(run([first, later]), *COLUMNS)
    assert [ASKED] == told(run([first, batch(finish_ms=5)]), *COLUMNS)


def test_without_a_receipt_reads_go_off_at_the_deadline_and_on_with_the_release():
    rows = [*OPENED, MARKED, given("unmark", 300, producer_id=7, reason=0, ordinal=1)]
    off = ("pause", 105, None, 7, TOPIC, 0, None, None, None, "no_receipt", None)
    on = ("resume", 300, *(None,) * 8, 195)

    assert [ASKED, off, on] == told(run([batch(rows, finish_ms=300)]), *COLUMNS)


def test_time_alone_fires_what_is_due():
    outcome = run([batch([*OPENED, MARKED]), [time_block(105)], [time_block(106)]])

    assert ["command", "pause"] == [row["kind"] for row in outcome.decisions]
    assert [(1, None), (0, 105), (0, None)] == [(row["kept"], row["due_ms"]) for row in outcome.progress]


def test_inputs_of_one_millisecond_act_by_rank_producer_number_and_event_id():
    first = given("mark", 0, producer_id=7, trips=[trip(0, 1, (-1, 10))], event_id="b")
    second = given("mark", 0, producer_id=7, trips=[trip(0, 2, (-9, 10))], event_id="a")
    outcome = run([batch([second, first, *reversed(OPENED)], finish_ms=0)])

    assert [("start", 1000)] == told(outcome, "command_kind", "pause_for_millis")


def test_rows_that_come_late_act_at_the_clock_and_are_counted():
    outcome = run([batch([*OPENED, given("publish", 900, producer_id=7)]), batch([MARKED]), batch(finish_ms=900)])

    assert [(899, 1)] == told(outcome, "at_ms", "request_id")
    assert [0, 1, 0] == [row["late"] for row in outcome.progress]


def test_rows_within_the_delay_are_put_in_their_place():
    rules = replace(RULES, delay_ms=1000)
    outcome = run([batch([*OPENED, given("publish", 900, producer_id=7)]), batch([MARKED], finish_ms=900)], rules)

    assert ("command", 5) == told(outcome, "kind", "at_ms")[0]
    assert [0, 0] == [row["late"] for row in outcome.progress]


def test_each_source_holds_the_other_back_until_it_has_come_as_far():
    marks = [mark_row(5 * MS), mark_row(900 * MS, "unmark")]
    batches = [batch((), marks), batch(OPENED), batch([given("publish", 6, producer_id=7)])]
    outcomes = [run(batches[:n], BOTH) for n in (1, 2, 3)]

    assert [[], [], ["command"]] == [[row["kind"] for row in outcome.decisions] for outcome in outcomes]
    assert [0, 0, 0] == [row["late"] for row in outcomes[-1].progress]


def test_settings_of_a_connection_are_those_in_force_as_it_opened():
    later = replace(RULES, settings=BrokerSettings(receipt_wait_ms=0))
    marked = batch([MARKED], finish_ms=5)
    kept = run([batch(OPENED, finish_ms=0)]).state

    assert [("command",)] == told(run([marked], later, kept), "kind")
    assert [("pause",)] == told(run([batch(OPENED, finish_ms=0), marked], later), "kind")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (given("mark", 5, producer_id=8, trips=[trip()]), "unknown_producer"),
        (given("mark", 5, producer_id=7, trips=[]), "bad_reason"),
        (given("mark", 5, producer_id=7, trips=[trip(0, 0)]), "bad_ordinal"),
        (given("mark", 5, producer_id=7, trips=[None]), "bad_reason"),
        (given("mark", 5, producer_id=7, trips=[trip(0, 1, (0, 0))]), "bad_bucket"),
        (given("quote", 5, producer_id=7, reason=0, buckets=[]), "bad_bucket"),
        (given("receipt", 5), "bad_request_id"),
        (given("condition_set", 5, reason=0, ordinal=1), "bad_reason"),
        (given("open", 5, topic=TOPIC), "bad_producer"),
        (given("close", 5, "elsewhere"), "unknown_connection"),
        (given("close", 5, None), "unknown_connection"),
        (given("publish", None, producer_id=7), "bad_time"),
        (given("publish", -1, producer_id=7), "bad_time"),
        (given("sneeze", 5), "unknown_kind: got 'sneeze', allowed are connect, open"),
        (given(None, 5), "unknown_kind: got None"),
    ],
)
def test_a_bad_row_is_a_dead_letter_and_changes_nothing(row, reason):
    outcome = run([batch([*OPENED, row], finish_ms=9)])
    (letter,) = outcome.dead_letters

    assert letter["reason"].startswith(reason)
    assert letter["source"] == "inputs"
    assert json.loads(letter["raw"]).get("kind") == row["kind"]
    assert outcome.decisions == []


def test_decisions_of_a_name_that_connects_again_are_numbered_on():
    again = [row | {"at_ms": 10} for row in OPENED]
    rows = [*OPENED, MARKED, given("close", 9), *again, MARKED | {"at_ms": 11}]

    assert [(1, 1), (2, 1)] == told(run([batch(rows, finish_ms=11)]), "seq", "request_id")


def test_marks_get_the_ids_of_the_producers_that_inputs_name_and_are_numbered():
    marks = [mark_row(5 * MS), mark_row(6 * MS, seq=1), mark_row(300 * MS, "unmark"), mark_row(301 * MS, "unmark")]
    receipts = [given("receipt", 20, request_id=1), given("receipt", 20, request_id=2)]
    outcome = run([batch([*OPENED, *receipts], marks, finish_ms=400)], BOTH)

    assert [("start", 5, 7, 600), ("extend", 6, 7, 600)] == told(
        outcome, "command_kind", "at_ms", "producer_id", "pause_for_millis"
    )
    assert [] == outcome.dead_letters


def test_marks_of_one_publish_are_one_input_with_the_longest_pause():
    marks = [
        mark_row(5 * MS, type_="ResourceGroupPublishRate", balance=-50, per_s=100),
        mark_row(5 * MS, balance=-20),
    ]
    outcome = run([batch(OPENED, marks, finish_ms=5)], BOTH)

    assert [(0, 2100, 1)] == told(outcome, "reason", "pause_for_millis", "request_id")


def test_conditions_of_marks_stop_reads_without_asking():
    marks = [
        mark_row(5 * MS, type_="ConnectionOutboundBufferFull", topic=None, producer=None),
        mark_row(9 * MS, "unmark", "ConnectionOutboundBufferFull", topic=None, producer=None),
        mark_row(20 * MS, type_="BrokerPublishRate"),
        mark_row(20 * MS, type_="BrokerPublishRate", seq=1),
        mark_row(30 * MS, "unmark", "BrokerPublishRate"),
        mark_row(31 * MS, "unmark", "BrokerPublishRate"),
    ]
    outcome = run([batch(OPENED, marks, finish_ms=40)], BOTH)

    assert [
        ("pause", 5, 5, None),
        ("resume", 9, None, None),
        ("command", 20, 4, "notice"),
        ("pause", 20, 4, None),
        ("resume", 30, None, None),
    ] == told(outcome, "kind", "at_ms", "reason", "command_kind")
    assert [] == outcome.dead_letters


def test_a_mark_of_a_producer_that_nobody_named_is_a_dead_letter():
    (letter,) = run([batch(OPENED, [mark_row(5 * MS, producer="q")], finish_ms=5)], BOTH).dead_letters

    assert ("unknown_producer", "marks") == (letter["reason"], letter["source"])


def test_obedient_clients_answer_at_once_and_need_no_inputs():
    marks = [mark_row(5 * MS), mark_row(900 * MS, "unmark")]
    outcome = run([batch((), marks, finish_ms=1000)], OBEDIENT)

    assert [(5, "start", 600), (605, "extend", 100), (705, "extend", 100), (805, "extend", 100)] == told(
        outcome, "at_ms", "command_kind", "pause_for_millis"
    )
    assert {"in_time": 4} == {
        labels[0][1]: count for (_, name, labels), count in outcome.counts.items() if name.endswith("receipt.count")
    }


def test_an_obedient_client_answers_what_time_alone_brought_before_a_producer_came():
    marks = [mark_row(5 * MS), mark_row(1500 * MS, producer="q"), mark_row(1900 * MS, "unmark")]
    outcome = run([batch((), marks, finish_ms=1900)], OBEDIENT)

    assert {"command"} == {row["kind"] for row in outcome.decisions}


def test_a_group_that_lets_nothing_pass_is_asked_for_a_second_and_then_extended():
    marks = [mark_row(5 * MS, type_="ResourceGroupPublishRate", balance=0, per_s=0)]
    outcome = run([batch((), marks, finish_ms=1205)], OBEDIENT)

    assert [("start", 1000), ("extend", 100), ("extend", 100), ("extend", 100)] == told(
        outcome, "command_kind", "pause_for_millis"
    )


def test_the_state_is_as_it_was_stored_and_another_version_is_refused():
    state = run([batch([*OPENED, MARKED])]).state
    again = decode_state(VERSION, encode_state(state))

    assert encode_state(state) == encode_state(again)
    assert (1, A) == (len(state.kept), again.connection[0].as_py())
    with pytest.raises(StateError, match=f"has version {VERSION + 1}, this headgate reads version {VERSION}"):
        decode_state(VERSION + 1, encode_state(SlotState()))
    assert RULES.delay_ms == 1
