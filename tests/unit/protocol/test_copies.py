"""Rows that come again when what they say is long over, in both forms (throttle-protocol 7.1, 9)."""

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from unit.protocol.runs import OBEDIENT, RULES, TOPIC, batch, given, mark_row, told, trip
from unit.protocol.test_engines import assert_equal

MS = 1_000_000
LIFE = [
    given("connect", 0, supports_throttle=True),
    given("open", 1, producer_id=1, topic=TOPIC, producer="p"),
    given("mark", 5, producer_id=1, trips=[trip(0, 1, (-50, 10))]),
    given("receipt", 20, request_id=1),
]
CLOSED = [*LIFE, given("close", 50)]


def again(rows, later_ms):
    return [row | {"at_ms": row["at_ms"] + later_ms} for row in rows]


@settings(max_examples=20, deadline=None)
@drawn(st.lists(st.sampled_from(CLOSED), min_size=1, max_size=8))
def test_copies_of_a_life_that_is_over_open_nothing(copies):
    outcome = assert_equal([batch(CLOSED, finish_ms=100), batch(copies), batch(finish_ms=5_000)], RULES)

    assert [("command", 5)] == told(outcome, "kind", "at_ms")
    assert {"unknown_connection"} >= {letter["reason"] for letter in outcome.dead_letters}


def test_a_name_that_connects_after_its_close_lives_again():
    batches = [batch(CLOSED, finish_ms=100), batch(again(LIFE, 51)), batch(LIFE, finish_ms=110)]
    outcome = assert_equal(batches, RULES)

    assert [(1, 5, 1), (2, 56, 1)] == told(outcome, "seq", "at_ms", "request_id")
    assert [True] == [bool(one) for one in outcome.state.machines["connections"]["is_open"]]


def test_a_copy_of_a_close_does_not_end_the_life_after_it():
    batches = [batch(CLOSED), batch(again(LIFE, 100)), batch([CLOSED[-1]], finish_ms=130)]
    outcome = assert_equal(batches, RULES)

    assert [("command", 5), ("command", 105)] == told(outcome, "kind", "at_ms")
    assert [] == outcome.dead_letters


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
