"""The rows of the table of producer states, one by one (throttle-protocol 7.4)."""

import pytest

from headgate.core.protocol.broker.inputs import Close, CloseProducer, Mark, Open, Publish, Receipt, Trip
from unit.core.protocol.broker import (
    FREE,
    WAIT,
    clear,
    holding,
    mark,
    metrics,
    opened,
    paused,
    perform,
    play,
    producer,
    quote,
    rejected,
    resumed,
    set_,
    told,
    trip,
    unmark,
)

COMMANDS = "headgate.broker.throttle.command.count"


def told_at_100(**keys):
    """W: told at 100 to stop until 300; id 1 is open until 200."""
    return play(opened(**keys), [(mark(100, 200), [told(100, 1, 200)])])


def trusted_at_110(**keys):
    """C: as above, answered at 110."""
    return play(told_at_100(**keys), [(Receipt(110, 1), [])])


def held_at_200(**keys):
    """P: as above, without an answer."""
    return play(told_at_100(**keys), [(200, [paused(200, "no_receipt")])])


@pytest.mark.parametrize(("supports", "keys"), [(False, {}), (True, {WAIT: 0}), (True, {WAIT: -1})])
def test_row_1_without_cooperation_a_mark_turns_reads_off(supports, keys):
    connection = opened(supports=supports, hard_floor_pause_ms=1, **keys)

    play(connection, [(mark(100, 200), [paused(100, "no_support")])])

    assert producer(connection) == holding(0)


def test_row_1_names_the_reason_of_the_longest_pause():
    connection = opened(supports=False)

    play(connection, [(Mark(100, 1, [trip(20), trip(30, reason=1)]), [paused(100, "no_support", reason=1)])])


def test_row_2_a_pause_above_the_floor_is_not_negotiated_in_any_state():
    free = opened(hard_floor_pause_ms=199)
    play(free, [(mark(100, 200), [paused(100, "hard_floor")])])
    waiting = told_at_100(hard_floor_pause_ms=200)
    play(waiting, [(mark(150, 201, n=1, reason=1), [paused(150, "hard_floor", reason=1)]), (Receipt(160, 1), [])])
    trusted = trusted_at_110(hard_floor_pause_ms=200)
    play(trusted, [(mark(120, 201, n=2), [paused(120, "hard_floor")])])

    assert [producer(one)[0] for one in (free, waiting, trusted)] == ["P", "P", "P"]


def test_row_2_a_floor_of_0_is_none():
    play(opened(hard_floor_pause_ms=0), [(mark(100, 10**9), [told(100, 1, 10**9)])])


def test_row_3_a_mark_asks_a_free_producer_to_stop():
    assert producer(told_at_100()) == ("W", 300, [0], [1])


@pytest.mark.parametrize(
    ("step_ms", "pause_ms", "extends"), [(1, 150, False), (1, 151, True), (50, 199, False), (50, 200, True)]
)
def test_row_4_a_mark_extends_if_the_end_gains_a_step(step_ms, pause_ms, extends):
    connection = trusted_at_110(extension_step_ms=step_ms)

    emitted = perform(connection, mark(150, pause_ms, n=2))

    assert emitted == ([told(150, 2, pause_ms, "extend")] if extends else [])
    assert producer(connection) == (("W", 150 + pause_ms, [0], [2]) if extends else ("C", 300, [0], []))


@pytest.mark.parametrize(("step_ms", "pause_ms", "extends"), [(1, 299, False), (1, 300, True), (151, 300, False)])
def test_row_4_with_doubling_extensions_a_mark_extends_if_the_end_gains_what_is_left_too(step_ms, pause_ms, extends):
    connection = trusted_at_110(extension_step_ms=step_ms, doubling_extensions=True)

    emitted = perform(connection, mark(150, pause_ms, n=2))

    assert emitted == ([told(150, 2, pause_ms, "extend")] if extends else [])


def test_with_doubling_extensions_a_burst_sends_few_commands_and_the_end_of_the_window_tells_the_rest():
    connection = opened(doubling_extensions=True)
    burst = [perform(connection, mark(100, 10 * n, n=n)) for n in range(1, 101)]
    assert [index + 1 for index, emitted in enumerate(burst) if emitted] == [1, 2, 4, 8, 16, 32, 64]

    play(connection, [(Receipt(110, number), []) for number in range(1, 8)])

    play(connection, [(740, [told(740, 8, 360, "extend")]), (unmark(741, n=100), [])])

    assert producer(connection) == FREE


def test_row_4_an_extension_names_the_reason_of_its_own_mark():
    connection = told_at_100()

    play(connection, [(mark(150, 400, reason=1), [told(150, 2, 400, "extend", reason=1)])])

    assert producer(connection) == ("W", 550, [0, 1], [1, 2])


def test_row_5_a_mark_that_gains_nothing_still_holds():
    connection = play(trusted_at_110(), [(mark(150, 1, n=7), []), (unmark(160, n=6), [])])

    assert producer(connection) == ("C", 300, [0], [])


def test_row_6_a_mark_of_a_producer_that_holds_is_kept_and_counted():
    connection = play(held_at_200(), [(mark(210, 900, reason=1), []), (mark(220, 900, n=2), [])])

    assert producer(connection) == holding(0, 1)
    assert [count for key, count in metrics(connection).values().items() if "rate_limiter=resource_group" in key] == [1]
    play(connection, [(unmark(230, n=1), []), (unmark(240, reason=1), []), (unmark(250, n=2), [resumed(250, 50)])])


def test_row_7_a_quote_of_a_held_reason_decides_on_the_extension():
    connection = play(trusted_at_110(), [(quote(250, 80), []), (quote(250, 900, reason=1), [])])

    play(connection, [(300, [told(300, 2, 30, "extend")])])


def test_row_7_a_quote_before_the_mark_or_after_the_release_is_nothing():
    connection = play(opened(), [(quote(50, 900), []), (mark(100, 200), [told(100, 1, 200)]), (Receipt(110, 1), [])])
    play(connection, [(unmark(120), []), (quote(130, 900), []), (500, [])])

    assert producer(connection) == FREE


def test_rows_8_and_9_a_client_is_trusted_once_it_answered_every_command():
    connection = play(told_at_100(), [(mark(150, 400, n=2), [told(150, 2, 400, "extend")]), (Receipt(160, 2), [])])
    assert producer(connection) == ("W", 550, [0], [1])

    play(connection, [(Receipt(170, 1), [])])
    assert producer(connection) == ("C", 550, [0], [])


def test_row_11_an_unanswered_command_turns_reads_off_for_the_announced_reason():
    connection = play(told_at_100(), [(mark(150, 400, reason=1), [told(150, 2, 400, "extend", reason=1)])])

    play(connection, [(Receipt(160, 2), []), (199, []), (200, [paused(200, "no_receipt", reason=1)])])

    assert producer(connection) == holding(0, 1)


def test_row_12_an_extension_above_the_floor_turns_reads_off():
    connection = play(trusted_at_110(hard_floor_pause_ms=200), [(quote(290, 212), [])])

    play(connection, [(300, [paused(300, "hard_floor")])])


def test_row_12_an_extension_as_long_as_the_floor_is_negotiated():
    connection = play(trusted_at_110(hard_floor_pause_ms=200), [(quote(290, 210), [])])

    play(connection, [(300, [told(300, 2, 200, "extend")])])


def test_row_12_an_idle_extension_is_held_against_the_floor_as_well():
    connection = trusted_at_110(hard_floor_pause_ms=200, idle_extension_ms=201)

    play(connection, [(300, [paused(300, "hard_floor")])])


def test_row_13_a_limiter_that_still_holds_at_the_end_extends_idly_when_refilled():
    connection = trusted_at_110(idle_extension_ms=70)

    play(connection, [(300, [told(300, 2, 70, "extend")])])

    assert producer(connection) == ("W", 370, [0], [2])


def test_row_13_an_extension_covers_all_reasons_held_and_names_the_longest():
    connection = play(trusted_at_110(), [(mark(150, 100, reason=1), []), (quote(250, 120, reason=1), [])])

    play(connection, [(300, [told(300, 2, 70, "extend", reason=1)])])


def test_row_13_an_extension_forgets_reasons_that_were_released():
    connection = play(trusted_at_110(), [(mark(150, 150, reason=1), []), (quote(250, 80), []), (unmark(260), [])])

    play(connection, [(300, [told(300, 2, 100, "extend", reason=1)])])


def test_row_13_at_the_second_boundary_needs_no_buckets():
    connection = opened(pause_mode="second_boundary", phase_ms=400)
    without = [Trip(1, 1, None), Trip(0, 1, None)]

    play(connection, [(Mark(350, 1, without), [told(350, 1, 50)]), (Receipt(360, 1), []), (unmark(370), [])])
    play(connection, [(400, [told(400, 2, 1000, "extend", reason=1)])])


@pytest.mark.parametrize(("at", "falls_back"), [(110, True), (289, True), (290, False), (299, False)])
def test_row_14_a_message_inside_the_promised_window_turns_reads_off_but_for_the_slack(at, falls_back):
    connection = trusted_at_110()

    assert perform(connection, Publish(at, 1)) == ([paused(at, "violation")] if falls_back else [])


def test_row_15_messages_of_free_waiting_and_holding_producers_are_nothing():
    play(opened(), [(Publish(5, 1), [])])
    play(told_at_100(), [(Publish(150, 1), [])])
    play(held_at_200(), [(Publish(250, 1), [])])
    play(trusted_at_110(violation_policy="off"), [(Publish(150, 1), [])])


def test_row_16_a_released_producer_is_free_at_once_and_owes_no_receipt():
    connection = play(told_at_100(), [(unmark(150), []), (200, []), (500, [])])

    assert producer(connection) == FREE
    play(connection, [(mark(600, 20, n=2), [told(600, 2, 20)])])


def test_row_17_a_released_producer_lets_go_of_the_connection():
    connection = play(held_at_200(), [(unmark(350), [resumed(350, 150)])])

    assert producer(connection) == FREE


def test_row_18_another_unmark_does_not_shorten_what_was_announced():
    connection = play(trusted_at_110(), [(mark(120, 10, reason=1), []), (unmark(130), [])])

    assert producer(connection) == ("C", 300, [1], [])


def test_row_18_an_unmark_without_a_mark_releases_the_mark_that_it_overtook():
    connection = play(
        opened(), [(unmark(90, n=2), []), (mark(100, 200, n=2), []), (mark(110, 50, n=3), [told(110, 1, 50)])]
    )

    assert producer(connection) == ("W", 160, [0], [1])


@pytest.mark.parametrize("state", [told_at_100, trusted_at_110])
def test_row_19_a_closed_producer_is_forgotten_with_its_timers(state):
    connection = play(state(), [(CloseProducer(120, 1), []), (900, [])])

    assert connection.view()["producers"] == {}
    play(connection, [(Publish(901, 1), [rejected(901, "unknown_producer")])])


def test_a_closed_producer_that_opens_again_is_new():
    connection = play(told_at_100(), [(CloseProducer(120, 1), []), (Open(120, 1, "t1"), []), (Receipt(130, 1), [])])
    assert producer(connection) == FREE

    play(connection, [(mark(140, 50), [told(140, 2, 50)])])


def test_row_19_a_closed_producer_lets_go_of_the_connection():
    play(held_at_200(), [(CloseProducer(230, 1), [resumed(230, 30)])])


def test_row_20_a_closed_connection_says_nothing():
    connection = play(held_at_200(), [(set_(210, 5), []), (Close(260), [])])

    assert not connection.is_open
    assert metrics(connection).values()["headgate.broker.reads.off.duration{}"] == 60


def test_row_20_timers_before_the_close_fire_still():
    play(told_at_100(), [(Close(201), [paused(200, "no_receipt")])])


def test_a_mark_decides_by_its_live_trips_alone():
    connection = play(opened(), [(mark(100, 20, n=3), [told(100, 1, 20)]), (Receipt(101, 1), []), (unmark(105, 3), [])])

    play(connection, [(Mark(110, 1, [trip(500, n=2), trip(40, reason=1)]), [told(110, 2, 40, reason=1)])])
    play(connection, [(Mark(111, 1, [trip(500, n=2), trip(500, reason=1)]), [])])


def test_a_tie_of_two_limiters_goes_to_the_lower_code_and_rounding_does_not_make_one():
    tie = opened()
    play(tie, [(Mark(5, 1, [trip(50, reason=1), trip(50)]), [told(5, 1, 50)])])
    nearly = opened()
    shorter = Trip(0, 1, [[10**4 - 49_001, 10**6]])
    play(nearly, [(Mark(5, 1, [shorter, trip(50, reason=1)]), [told(5, 1, 50, reason=1)])])


def test_a_copied_mark_is_obeyed_and_not_counted():
    connection = play(opened(), [(mark(5, 50, trigger=False), [told(5, 1, 50)])])

    assert metrics(connection).values() == {f"{COMMANDS}{{kind=start,reason=TopicProduceQuotaExceeded}}": 1}


def test_an_episode_counts_once_and_a_copy_that_began_it_leaves_it_uncounted():
    connection = play(opened(), [(mark(5, 50), [told(5, 1, 50)]), (mark(6, 10, n=2), []), (unmark(7, n=2), [])])
    play(connection, [(mark(8, 9, n=3, trigger=False), [told(8, 2, 9)]), (mark(8, 1, n=4), []), (unmark(9, n=4), [])])
    play(connection, [(mark(10, 9, n=5), [told(10, 3, 9)])])

    counted = {key: count for key, count in metrics(connection).values().items() if "publish.rate.limit" in key}
    assert list(counted.values()) == [2]


def test_an_opened_producer_may_be_opened_again_with_its_topic():
    connection = play(trusted_at_110(), [(Open(120, 1, "t1"), [])])

    assert producer(connection) == ("C", 300, [0], [])


def test_a_command_may_be_sent_while_another_cause_has_reads_off():
    connection = play(
        opened(), [(set_(50, 5), [paused(50, "condition", 5, None)]), (mark(100, 200), [told(100, 1, 200)])]
    )

    play(connection, [(300, [told(300, 2, 100, "extend")]), (clear(350, 5), [resumed(350, 300)])])
