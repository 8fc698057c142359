"""Which comes first, and when: late inputs, ties and the order of timers (throttle-protocol 1)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.protocol.broker.inputs import Probe, Publish, Receipt
from headgate.core.protocol.broker.timers import SPARE
from headgate.errors import InvalidArgument
from unit.core.protocol.broker import (
    WAIT,
    clear,
    mark,
    opened,
    paused,
    play,
    producer,
    rejected,
    resumed,
    set_,
    told,
    unmark,
)


def test_an_operation_comes_before_the_timers_of_its_millisecond():
    connection = play(opened(), [(mark(100, 200), [told(100, 1, 200)]), (Receipt(200, 1), []), (200, [])])

    play(connection, [(unmark(300), []), (300, [])])


def test_timers_due_before_an_operation_fire_first_and_at_their_own_time():
    connection = play(opened(), [(mark(100, 50), [told(100, 1, 50)]), (Receipt(101, 1), [])])

    extended = [told(at, request_id, 100, "extend") for at, request_id in ((150, 2),)]
    play(
        connection,
        [
            (
                Probe(
                    251,
                ),
                [*extended, paused(250, "no_receipt")],
            )
        ],
    )


def test_a_rejected_operation_moves_the_clock_and_fires_timers():
    connection = play(opened(), [(mark(100, 500), [told(100, 1, 500)])])

    play(connection, [(Publish(201, 9), [paused(200, "no_receipt"), rejected(201, "unknown_producer")])])
    assert connection.now_ms == 201


@pytest.mark.parametrize("at", [-1, None, 250.0, True, "250", MAX + 1])
def test_a_bad_time_moves_nothing_and_fires_nothing(at):
    connection = play(opened(), [(mark(100, 500), [told(100, 1, 500)])])

    play(connection, [(Publish(at, 1), [rejected(at, "bad_time")])])

    assert (connection.now_ms, producer(connection)[0]) == (100, "W")


def test_a_late_operation_acts_at_the_clock():
    connection = play(
        opened(),
        [(250, []), (mark(100, 200), [told(250, 1, 200)]), (Publish(90, 9), [rejected(250, "unknown_producer")])],
    )

    play(connection, [(200, []), (Receipt(10, 1), []), (449, []), (450, [told(450, 2, 100, "extend")])])


def test_a_late_advance_fires_what_is_due_at_the_clock():
    play(opened(), [(mark(100, 500), [told(100, 1, 500)]), (Probe(200), []), (150, [paused(200, "no_receipt")])])


def test_an_advance_needs_a_time():
    with pytest.raises(InvalidArgument, match="at_ms"):
        opened().advance(-1)


def test_deadlines_of_a_millisecond_come_by_producer_and_before_its_window_ends():
    connection = opened(producers=(1, 2, 3, 4), freeze_deadlines=False)
    play(
        connection,
        [
            (mark(100, 100, producer=3), [told(100, 1, 100, producer=3)]),
            (Receipt(100, 1), []),
            (mark(100, 100, producer=2), [told(100, 2, 100, producer=2)]),
            (Receipt(100, 2), []),
            (mark(100, 900, producer=4), [told(100, 3, 900, producer=4)]),
            (mark(100, 900, producer=1), [told(100, 4, 900, producer=1)]),
        ],
    )

    play(
        connection,
        [
            (
                Probe(201),
                [
                    paused(200, "no_receipt", producer=1),
                    told(200, 5, 100, "extend", producer=2),
                    told(200, 6, 100, "extend", producer=3),
                ],
            )
        ],
    )
    assert connection.view()["holds"] == ["producer:1", "producer:4"]


def test_a_window_that_ends_at_its_deadline_is_not_extended():
    connection = play(opened(), [(mark(100, 100), [told(100, 1, 100)]), (200, [paused(200, "no_receipt")])])

    assert producer(connection)[0] == "P"


def test_an_end_at_the_millisecond_in_which_reads_go_off_extends_still():
    connection = opened(producers=(1, 2))
    play(connection, [(mark(100, 100, producer=2), [told(100, 1, 100, producer=2)]), (Receipt(110, 1), [])])
    play(connection, [(mark(100, 500), [told(110, 2, 500)])])

    play(
        connection,
        [(set_(200, 6), [paused(200, "condition", 6, None)]), (210, [told(200, 3, 100, "extend", producer=2)])],
    )


def test_the_next_due_time_is_that_of_the_earliest_timer():
    connection = opened()
    assert connection.next_due_ms() is None
    play(connection, [(mark(100, 50), [told(100, 1, 50)])])
    assert connection.next_due_ms() == 150
    play(connection, [(mark(110, 500, n=2), [told(110, 2, 500, "extend")])])
    assert connection.next_due_ms() == 200
    play(connection, [(Receipt(120, 1), []), (Receipt(130, 2), [])])
    assert connection.next_due_ms() == 610
    play(connection, [(unmark(140, n=2), [])])
    assert connection.next_due_ms() is None


def test_frozen_deadlines_are_not_due():
    connection = play(
        opened(), [(mark(100, 900), [told(100, 1, 900)]), (set_(150, 5), [paused(150, "condition", 5, None)])]
    )
    assert connection.next_due_ms() == 1000

    play(connection, [(clear(400, 5), [resumed(400, 250)])])
    assert connection.next_due_ms() == 450


def test_what_is_past_the_end_of_time_never_comes():
    connection = opened(at=MAX - 5, idle_extension_ms=MAX, **{WAIT: MAX})
    play(connection, [(mark(MAX - 5, 3), [told(MAX - 5, 1, 3)]), (MAX, [told(MAX - 2, 2, MAX, "extend")]), (MAX, [])])

    assert connection.next_due_ms() is None
    assert producer(connection) == ("W", 2 * MAX - 2, [0], [1, 2])


def test_many_short_episodes_leave_no_timers_behind():
    connection = opened(producers=(1, 2, 3))
    play(connection, [(set_(0, 5), [paused(0, "condition", 5, None)])])
    play(connection, [(mark(0, 10**6), [told(0, 1, 10**6)])])
    for n in range(1, 500):
        for id_ in (2, 3):
            connection.feed(mark(n, 10**9 + n, n=n, producer=id_))
            connection.feed(unmark(n, n=n, producer=id_))
    announced = connection._throttling.told

    assert len(announced._deadlines._heap) <= SPARE + 2
    assert len(announced._ends._heap) <= SPARE + 2
    assert (list(announced.open_ids), list(announced._windows)) == ([1], [1])
