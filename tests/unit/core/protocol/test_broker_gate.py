"""Reads off and on, deadlines that freeze, receipts that wait or close nothing (throttle-protocol 7.3, 7.5, 7.6)."""

from headgate.core.protocol.broker.inputs import Close, CloseProducer, Probe, Receipt
from unit.core.protocol.broker import (
    FREE,
    clear,
    holding,
    mark,
    metrics,
    opened,
    paused,
    play,
    producer,
    resumed,
    set_,
    told,
    unmark,
)

OFF, READ, LIMIT = 5, "headgate.broker.reads.off.duration{}", "pulsar.broker.connection.rate_limit.count"


def receipts(connection):
    """Receipts by outcome."""
    prefix = "headgate.broker.throttle.receipt.count{outcome="
    counted = metrics(connection).values().items()
    return {key.removeprefix(prefix)[:-1]: count for key, count in counted if key.startswith(prefix)}


def off(at):
    return (set_(at, OFF, n=at), [paused(at, "condition", OFF, None)])


def on(at, off_ms):
    return (clear(at, OFF, n=at), [resumed(at, off_ms)])


def told_two(**keys):
    """Ids 1 and 2 of producers 1 and 2, open until 200 and 240, windows far away."""
    connection = opened(producers=(1, 2), **keys)
    return play(
        connection,
        [(mark(100, 5000), [told(100, 1, 5000)]), (mark(140, 5000, producer=2), [told(140, 2, 5000, producer=2)])],
    )


def test_only_the_first_hold_pauses_and_only_the_last_resumes():
    connection = opened(producers=(1, 2), supports=False)
    play(
        connection,
        [
            (mark(10, 50), [paused(10, "no_support")]),
            (mark(20, 50, producer=2), []),
            (set_(30, 2), []),
            (unmark(40), []),
            (unmark(50, producer=2), []),
            (clear(60, 2), [resumed(60, 50)]),
        ],
    )
    counted = metrics(connection).values()

    assert counted[READ] == 50
    assert {key: counted[key] for key in counted if key.startswith(LIMIT)} == {
        f"{LIMIT}{{pulsar.connection.rate_limit.operation.name={name}}}": 1
        for name in ("paused", "resumed", "throttled", "unthrottled")
    }


def test_a_pause_may_begin_and_end_in_one_millisecond():
    connection = play(opened(), [off(10), on(10, 0), off(11), on(11, 0)])

    assert READ not in metrics(connection).values()


def test_deadlines_stand_still_while_reads_are_off():
    connection = play(told_two(), [off(150), (900, []), on(1000, 850)])

    play(
        connection, [(1049, []), (1050, [paused(1050, "no_receipt")]), (2000, []), (unmark(2000), [resumed(2000, 950)])]
    )
    play(connection, [(2039, []), (2040, [paused(2040, "no_receipt", producer=2)])])


def test_deadlines_freeze_again_and_again():
    connection = told_two()
    play(connection, [off(150), on(250, 100), off(260), on(300, 40), off(339), on(400, 61), (400, [])])

    play(connection, [(401, [paused(401, "no_receipt")])])


def test_without_freezing_deadlines_run_on():
    connection = play(told_two(freeze_deadlines=False), [off(150), (Receipt(160, 1), []), (200, []), (240, [])])

    assert connection.view()["holds"] == ["producer:1", "producer:2", f"reason:{OFF}"]
    assert connection.view()["queued"] == [1]


def test_a_deadline_at_the_millisecond_in_which_reads_go_off_fires_in_it():
    connection = play(told_two(), [off(200), (200, [])])

    assert producer(connection) == holding(0)
    assert producer(connection, 2)[0] == "W"


def test_a_deadline_at_the_millisecond_of_a_pause_and_a_resume_fires_in_it():
    play(told_two(), [off(200), on(200, 0), (Probe(201), [paused(200, "no_receipt")])])


def test_a_fall_back_freezes_the_deadlines_of_neighbours():
    connection = play(told_two(), [(900, [paused(200, "no_receipt")]), (unmark(1000), [resumed(1000, 800)])])

    play(connection, [(1039, []), (1040, [paused(1040, "no_receipt", producer=2)])])


def test_a_command_sent_while_reads_are_off_has_the_whole_wait_from_the_resume_on():
    connection = play(opened(), [off(50), (mark(100, 5000), [told(100, 1, 5000)]), on(300, 250), (399, [])])

    play(connection, [(400, [paused(400, "no_receipt")])])


def test_window_ends_are_never_frozen():
    play(opened(), [off(50), (mark(100, 20), [told(100, 1, 20)]), (130, [told(120, 2, 100, "extend")])])


def test_a_receipt_that_arrives_while_reads_are_off_is_read_on_resume():
    connection = play(told_two(), [off(150), (Receipt(160, 2), []), (Receipt(170, 1), [])])
    assert connection.view()["queued"] == [2, 1]
    assert receipts(connection) == {}

    play(connection, [on(300, 150), (400, [])])
    assert connection.view()["queued"] == []
    assert [producer(connection, id_)[0] for id_ in (1, 2)] == ["C", "C"]
    assert receipts(connection) == {"in_time": 2}


def test_deadlines_thaw_before_the_queued_receipts_are_read():
    connection = play(told_two(), [off(199), (Receipt(500, 1), []), on(600, 401), (600, []), (639, [])])

    play(connection, [(640, []), (641, [paused(641, "no_receipt", producer=2)])])


def test_a_queued_receipt_stays_queued_whatever_becomes_of_its_id():
    connection = play(
        told_two(),
        [off(150), (Receipt(160, 1), []), (Receipt(161, 2), []), (unmark(170), []), (CloseProducer(180, 2), [])],
    )
    assert connection.view()["queued"] == [1, 2]
    assert receipts(connection) == {}

    play(connection, [on(300, 150)])
    assert receipts(connection) == {"ignored": 2}
    assert producer(connection) == FREE


def test_a_receipt_of_a_fallen_back_id_that_was_queued_at_its_deadline_is_ignored_on_resume():
    connection = play(told_two(), [off(200), (Receipt(200, 1), []), (210, []), (clear(300, OFF, n=200), [])])
    assert producer(connection) == holding(0)

    play(connection, [(unmark(400), [resumed(400, 200)])])
    assert receipts(connection) == {"ignored": 1}


def test_copies_and_strangers_are_settled_on_arrival_while_reads_are_off():
    connection = play(
        told_two(),
        [off(150), (Receipt(160, 1), []), (Receipt(161, 1), []), (Receipt(162, 3), []), (Receipt(163, 0), [])],
    )

    assert connection.view()["queued"] == [1]
    assert receipts(connection) == {"ignored": 1, "unknown": 2}


def test_receipts_that_close_nothing_change_nothing():
    connection = play(
        told_two(),
        [
            (Receipt(150, 1), []),
            (Receipt(151, 1), []),
            (Receipt(152, 0), []),
            (Receipt(153, 3), []),
            (
                set_(154, 2),
                [
                    told(154, 3, 0, "notice", reason=2),
                    told(154, 4, 0, "notice", 2, 2),
                    paused(154, "condition", 2, None),
                ],
            ),
            (Receipt(155, 3), []),
            (clear(156, 2), [resumed(156, 2)]),
            (Receipt(157, 4), []),
            (unmark(158, producer=2), []),
            (Receipt(159, 2), []),
        ],
    )

    assert receipts(connection) == {"in_time": 1, "ignored": 4, "unknown": 2}
    assert producer(connection) == ("C", 5100, [0], [])


def test_receipts_still_queued_at_the_close_are_not_counted():
    connection = play(told_two(), [off(150), (Receipt(160, 1), []), (Close(190), [])])

    assert receipts(connection) == {}
    assert metrics(connection).values()[READ] == 40
