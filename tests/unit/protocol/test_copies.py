"""Rows that come again when what they say is long over, in both forms (throttle-protocol 7.1, 9)."""

from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from unit.protocol.runs import OBEDIENT, RULES, TOPIC, batch, given, mark_row, told, trip
from unit.protocol.test_forms import assert_equal

MS = 1_000_000
B = "broker-1/b"
FAN_OUT, FAN_OUT_OBEDIENT = replace(RULES, fan_out=True), replace(OBEDIENT, fan_out=True)
LIFE = [
    given("connect", 0, supports_throttle=True),
    given("open", 1, producer_id=1, topic=TOPIC, producer="p"),
    given("mark", 5, producer_id=1, trips=[trip(0, 1, (-50, 10))]),
    given("receipt", 20, request_id=1),
]
CLOSED = [*LIFE, given("close", 50)]


def again(rows, later_ms):
    return [row | {"at_ms": row["at_ms"] + later_ms} for row in rows]


both_fan_outs = pytest.mark.parametrize("rules", [RULES, FAN_OUT], ids=["tripping", "topic"])


@both_fan_outs
@settings(max_examples=examples(20))
@drawn(copies=st.lists(st.sampled_from(CLOSED), min_size=1, max_size=8))
def test_copies_of_a_life_that_is_over_open_nothing(rules, copies):
    outcome = assert_equal([batch(CLOSED, finish_ms=100), batch(copies), batch(finish_ms=5_000)], rules)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert {"unknown_connection"} >= {letter["reason"] for letter in outcome.dead_letters}


@both_fan_outs
def test_a_name_that_connects_after_its_close_lives_again(rules):
    batches = [batch(CLOSED, finish_ms=100), batch(again(LIFE, 51)), batch(LIFE, finish_ms=110)]
    outcome = assert_equal(batches, rules)

    assert [(1, 5, 1), (2, 56, 1)] == told(outcome, "seq", "at_ms", "request_id")
    assert [True] == [bool(one) for one in outcome.state.machines["connections"]["is_open"]]


def test_a_copy_of_a_close_does_not_end_the_life_after_it():
    batches = [batch(CLOSED), batch(again(LIFE, 100)), batch([CLOSED[-1]], finish_ms=130)]
    outcome = assert_equal(batches, RULES)

    assert [("command", 5), ("command", 105)] == told(outcome, "kind", "at_ms")
    assert [] == outcome.dead_letters


BESIDE = [
    given("connect", 0, B, supports_throttle=True),
    given("open", 1, B, producer_id=2, topic=TOPIC, producer="q"),
]
CLOSED_PRODUCER = [
    *LIFE,
    given("unmark", 40, producer_id=1, reason=0, ordinal=1),
    given("close_producer", 50, producer_id=1),
]


@settings(max_examples=examples(20))
@drawn(st.lists(st.sampled_from(CLOSED), min_size=1, max_size=8))
def test_copies_of_a_connection_that_closed_hold_nobody_beside_it(copies):
    receipt = given("receipt", 20, B, request_id=1)
    batches = [batch([*CLOSED, *BESIDE, receipt], finish_ms=100), batch(copies), batch(finish_ms=5_000)]
    outcome = assert_equal(batches, FAN_OUT)

    assert [("command", 5)] == [row[1:] for row in told(outcome, "connection", "kind", "at_ms") if row[0] == B]


def test_a_late_mark_of_an_obedient_connection_that_closed_holds_nobody_beside_it():
    beside = mark_row(1 * MS, "unmark", producer="q") | {"connection": "b"}
    close = mark_row(50 * MS, "close", None, topic=None, producer=None)
    batches = [
        batch((), [beside, mark_row(5 * MS), close], finish_ms=60),
        batch((), [mark_row(6 * MS)], finish_ms=9000),
    ]
    outcome = assert_equal(batches, FAN_OUT_OBEDIENT)

    assert [(B, 5), ("broker-1/a", 5)] == sorted(told(outcome, "connection", "at_ms"), reverse=True)
    assert ["unknown_connection"] == [letter["reason"] for letter in outcome.dead_letters]


@both_fan_outs
@settings(max_examples=examples(20))
@drawn(copies=st.lists(st.sampled_from(CLOSED_PRODUCER), min_size=1, max_size=8))
def test_copies_of_a_producer_that_closed_bring_it_not_back(rules, copies):
    outcome = assert_equal([batch(CLOSED_PRODUCER, finish_ms=100), batch(copies), batch(finish_ms=5_000)], rules)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert {"unknown_producer"} >= {letter["reason"] for letter in outcome.dead_letters}


def test_a_late_open_of_a_producer_that_never_closed_acts():
    late = given("open", 1, producer_id=2, topic=TOPIC, producer="q")
    marked = given("mark", 200, producer_id=2, trips=[trip(0, 1, (-50, 10))])
    outcome = assert_equal([batch(CLOSED_PRODUCER, finish_ms=100), batch([late, marked], finish_ms=200)], RULES)

    assert [(5, 1), (200, 2)] == told(outcome, "at_ms", "producer_id")


def test_an_open_of_the_life_before_opens_nothing_in_the_next():
    batches = [batch(CLOSED, finish_ms=100), batch([given("connect", 101, supports_throttle=True)], finish_ms=110)]
    outcome = assert_equal([*batches, batch(LIFE, finish_ms=5_000)], RULES)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert {"unknown_producer"} == {letter["reason"] for letter in outcome.dead_letters}


@both_fan_outs
def test_producers_that_closed_leave_one_span_of_ids(rules):
    opened = [
        given(kind, 2 * id_ + later, producer_id=id_, **more)
        for id_ in range(300)
        for later, kind, more in ((0, "open", {"topic": TOPIC, "producer": f"p{id_}"}), (1, "close_producer", {}))
    ]
    outcome = assert_equal([batch([LIFE[0]]), batch(opened[:101]), batch(opened[101:], finish_ms=700)], rules)

    assert [{"connection": "broker-1/a", "first": 0, "last": 299}] == outcome.state.closed.to_pylist()
    assert len(outcome.state.fan_out) < 200
    closed = assert_equal([[*batch([LIFE[0], *opened, given("close", 900)], finish_ms=1000)]], rules)
    assert 0 == len(closed.state.closed)


def test_a_copy_of_a_publish_breaks_no_promise_and_is_counted_as_late():
    """Read again at the machine's clock, in the window that the publish brought about."""
    publish = given("publish", 5, producer_id=1)
    outcome = assert_equal([batch([*LIFE, publish], finish_ms=100), batch([publish]), batch(finish_ms=200)], RULES)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert [0, 1, 0] == [row["late"] for row in outcome.progress]


def test_a_late_publish_at_a_time_that_is_none_is_a_dead_letter():
    outcome = assert_equal([batch(LIFE, finish_ms=100), batch([given("publish", -1, producer_id=1)])], RULES)

    assert ["bad_time"] == [letter["reason"] for letter in outcome.dead_letters]


def test_late_marks_of_an_obedient_connection_that_closed_are_dead_letters():
    close = mark_row(50 * MS, "close", None, topic=None, producer=None)
    batches = [batch((), [mark_row(5 * MS), close], finish_ms=60), batch((), [mark_row(6 * MS)], finish_ms=9000)]
    outcome = assert_equal(batches, OBEDIENT)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert ["unknown_connection"] == [letter["reason"] for letter in outcome.dead_letters]
