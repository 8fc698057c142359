"""What many producers, or many commands of one, cost: nothing once they are gone, and time in line with their count."""

import random

import pytest

from unit.protocol.runs import BOTH, RULES, TOPIC, batch, given, mark_row, told
from unit.protocol.test_forms import assert_equal

MS = 1_000_000
OPENED = [given("connect", 0, supports_throttle=True)]


def opened(at_ms, id_, name=None):
    return given("open", at_ms, producer_id=id_, topic=TOPIC, producer=name)


def test_a_producer_that_closed_leaves_nothing():
    rows = [opened(at_ms, at_ms, f"p{at_ms}") for at_ms in range(1, 6)]
    marks = [mark_row(10 * MS, producer=f"p{at_ms}") for at_ms in range(1, 6)]
    gone = [given("close_producer", 20, producer_id=id_) for id_ in range(1, 6)]
    for batches in (
        [batch([*OPENED, *rows, *gone], marks, finish_ms=50)],
        [batch(OPENED + rows, marks), batch(gone, finish_ms=50)],
    ):
        state = assert_equal(batches, BOTH).state
        assert {"producers": 0, "named": 0, "limiters": 0} == {
            table: len(next(iter(state.machines[table].values()))) for table in ("producers", "named", "limiters")
        }
        assert [] == state.names.to_pylist()


@pytest.mark.parametrize("cut", [True, False])
def test_marks_of_a_producer_that_closed_are_dead_letters_and_another_is_numbered_from_1(cut):
    first = [*OPENED, opened(1, 1, "p"), given("close_producer", 20, producer_id=1)]
    second = [opened(30, 2, "p")]
    marks = [mark_row(10 * MS), mark_row(11 * MS), mark_row(25 * MS), mark_row(40 * MS), mark_row(41 * MS, "unmark")]
    early, late = marks[:3], marks[3:]
    batches = [batch(first, early), batch(second, late)] if cut else [batch(first + second, marks)]
    outcome = assert_equal([*batches, batch(finish_ms=900)], BOTH)

    assert [(10, 1), (11, 1), (40, 2)] == told(outcome, "at_ms", "producer_id")[:3]
    assert len(outcome.decisions) <= 3
    assert ["unknown_producer"] == [letter["reason"] for letter in outcome.dead_letters]


@pytest.mark.parametrize("cut", [True, False])
def test_notices_go_in_the_order_of_ids_whatever_the_order_of_the_opens(cut):
    ids = random.Random(1).sample(range(100), 37)
    opens = [opened(at_ms, id_) for at_ms, id_ in enumerate(ids, 1)]
    gone = [given("close_producer", 50, producer_id=id_) for id_ in ids[::5]]
    set_ = [given("condition_set", 60, reason=2, ordinal=1)]
    batches = [batch(OPENED + opens), batch(gone), batch(set_)] if cut else [batch(OPENED + opens + gone + set_)]
    outcome = assert_equal([*batches, batch(finish_ms=70)], RULES)

    left = sorted(set(ids) - set(ids[::5]))
    assert [("command", id_) for id_ in left] == told(outcome, "kind", "producer_id")[:-1]
