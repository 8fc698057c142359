"""The clock and the timers of a client: ties, order, late operations, what is due next (throttle-protocol 1)."""

import sys
from pathlib import Path

import pytest

import headgate.core
from headgate.core.numbers import MAX
from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.settings import ClientSettings
from unit.core.protocol.client_steps import counted, frame, machine_of, play, said

CORE = Path(headgate.core.__file__).parent


@pytest.mark.parametrize("at_ms", [-1, MAX + 1, True, 1.0, "1", None])
def test_a_time_that_is_none_is_rejected_as_it_came_and_the_clock_stays(at_ms):
    machine = machine_of()
    machine.advance(7)
    for emitted in (
        machine.advance(at_ms),
        machine.throttle(frame(0, 1, -1), at_ms),
        machine.send(9, "a", at_ms),
        machine.ack(1, "a", at_ms),
        machine.nack(1, "a", at_ms),
        machine.disconnect(at_ms),
        machine.reconnect(at_ms),
        machine.close(1, at_ms),
        machine.probe(9, at_ms),
    ):
        assert [f"{at_ms} rejected bad_time"] == said(emitted)

    assert machine.now_ms == 7
    assert {"headgate.input.rejected.count{error=bad_time}": 9} == counted(machine)


def test_operations_at_one_ms_come_before_its_timers_and_earlier_timers_before_them():
    play(
        machine_of(send_timeout_ms=100),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (0, "throttle", frame(1, 1, 50), ["0 receipt 1"]),
        (10, "send", 1, "b", []),
        (50, "probe", 1, ["50 probe 1 free blocked 1 pending 2 theta 50"]),
        (50, "send", 1, "c", ["50 write 1 b", "50 write 1 c"]),
        (50, "advance", []),
        (100, "ack", 1, "a", ["100 done 1 a"]),
        (
            111,
            "probe",
            1,
            ["110 fail 1 b SendTimeoutError by 0: 40/100, left 0", "111 probe 1 free blocked 0 pending 1 theta 50"],
        ),
    )


def test_an_operation_that_is_rejected_still_moves_the_clock_and_fires_what_was_due():
    machine = machine_of(send_timeout_ms=100)
    play(
        machine,
        (0, "send", 1, "a", ["0 write 1 a"]),
        (
            101,
            "throttle",
            frame(0, 1, 5),
            ["100 fail 1 a SendTimeoutError by None: 0/100, left 0", "101 rejected bad_request_id"],
        ),
    )

    assert machine.now_ms == 101


def descending(**settings):
    """Producers 10, 2 and 1, in that order: throttled for 90 ms from 10 on, each with a message that is blocked."""
    machine = machine_of(producers={"10": "t10", "2": "t2", "1": "t1"}, **settings)
    for producer in (10, 2, 1):
        machine.send(producer, "a", 0)
        machine.send(producer, "b", 0)
    for request_id, producer in enumerate((10, 2, 1), 1):
        machine.throttle(frame(request_id, producer, 90), 10)
    for producer in (10, 2, 1):
        machine.send(producer, "c", 20)
    return machine


def test_timers_of_one_ms_are_timeouts_then_drains_each_by_ascending_producer():
    fired = [text.partition(" Producer")[0] for text in said(descending(send_timeout_ms=100).advance(100))]

    assert [
        *[f"100 fail {producer} {message}" for producer in (1, 2, 10) for message in "ab"],
        *[f"100 write {producer} c" for producer in (1, 2, 10)],
    ] == fired


def test_producers_are_ascending_however_they_are_given():
    machine = ClientMachine(ClientSettings(producers={2: "t2", 1: "t1"}))
    play(
        machine,
        (0, "disconnect", []),
        (1, "send", 2, "x", []),
        (1, "send", 1, "a", []),
        (2, "reconnect", ["2 write 1 a", "2 write 2 x"]),
    )


def test_timers_fire_by_due_time_over_producers_however_far_the_clock_jumps():
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 2, 30), ["0 receipt 1"]),
        (0, "throttle", frame(2, 1, 60), ["0 receipt 2"]),
        (5, "send", 1, "a", []),
        (10, "send", 2, "x", []),
        (
            1000,
            "advance",
            [
                "30 write 2 x",
                "60 write 1 a",
                "105 fail 1 a SendTimeoutError by 0: 55/100, left 0",
                "110 fail 2 x SendTimeoutError by 0: 20/100, left 0",
            ],
        ),
    )


def test_a_late_operation_is_processed_at_the_clock():
    play(
        machine_of(send_timeout_ms=100),
        (50, "advance", []),
        (10, "send", 1, "a", ["50 write 1 a"]),
        (20, "throttle", frame(1, 1, 100), ["50 receipt 1"]),
        (0, "probe", 1, ["50 probe 1 until 150 by 0 blocked 0 pending 1 theta 0"]),
        (149, "advance", []),
        (20, "advance", []),
        (150, "advance", ["150 fail 1 a ProducerThrottledError by 0: 100/100, left 0"]),
    )


def test_metrics_are_settled_at_the_clock_and_fire_nothing():
    machine = machine_of(send_timeout_ms=100)
    play(
        machine,
        (0, "throttle", frame(1, 1, 30), ["0 receipt 1"]),
        (10, "send", 1, "a", []),
        (30, "send", 2, "x", ["30 write 2 x"]),
    )

    assert 30 == counted(machine)["throttled.duration{reason=TopicProduceQuotaExceeded,topic=t1}"]
    play(machine, (30, "advance", ["30 write 1 a"]))
    assert 30 == counted(machine)["throttled.duration{reason=TopicProduceQuotaExceeded,topic=t1}"]


def test_a_window_counts_up_to_the_clock_and_not_to_its_end():
    machine = machine_of()
    machine.throttle(frame(1, 1, 500), 100)
    machine.advance(140)

    assert 40 == counted(machine)["throttled.duration{reason=TopicProduceQuotaExceeded,topic=t1}"]
    assert 40 == counted(machine)["throttled.duration{reason=TopicProduceQuotaExceeded,topic=t1}"]
    assert 500 == counted(machine)["throttled_times{reason=TopicProduceQuotaExceeded,topic=t1}"]


def test_producers_of_one_topic_are_counted_together():
    machine = machine_of(producers={"1": "t", "2": "t"})
    machine.throttle(frame(1, 1, 10), 0)
    machine.throttle(frame(2, 2, 10), 0)
    machine.advance(100)

    assert 20 == counted(machine)["throttled.duration{reason=TopicProduceQuotaExceeded,topic=t}"]


@pytest.mark.parametrize(
    ("steps", "due_ms"),
    [
        ([], None),
        ([(0, "throttle", frame(1, 1, 50))], None),
        ([(5, "send", 1, "a")], 105),
        ([(5, "send", 1, "a"), (6, "send", 1, "b"), (7, "ack", 1, "a")], 106),
        ([(5, "send", 1, "a"), (7, "ack", 1, "a")], None),
        ([(0, "throttle", frame(1, 1, 50)), (5, "send", 1, "a")], 57),
        ([(0, "throttle", frame(1, 1, 50)), (5, "send", 1, "a"), (6, "throttle", frame(2, 1, 60))], 73),
        ([(0, "throttle", frame(1, 1, 50)), (5, "send", 1, "a"), (6, "disconnect")], 105),
        (
            [
                (0, "throttle", frame(1, 1, 90)),
                (5, "send", 1, "a"),
                (6, "disconnect"),
                (7, "reconnect"),
                (8, "throttle", frame(1, 1, 20)),
                (9, "send", 1, "b"),
            ],
            35,
        ),
        ([(0, "send", 2, "x"), (1, "close", 2)], None),
    ],
)
def test_what_is_due_next_is_the_earliest_timer_that_does_something(steps, due_ms):
    machine = machine_of(send_timeout_ms=100, drain_delay_ms=7)
    for at_ms, method, *arguments in steps:
        getattr(machine, method)(*arguments, at_ms)

    assert due_ms == machine.next_due_ms()


def test_a_drain_of_a_shorter_window_after_a_reconnect_is_not_missed():
    play(
        machine_of(),
        (0, "throttle", frame(1, 1, 900), ["0 receipt 1"]),
        (5, "send", 1, "a", []),
        (6, "disconnect", []),
        (7, "reconnect", ["7 write 1 a"]),
        (8, "throttle", frame(1, 1, 20), ["8 receipt 1"]),
        (9, "send", 1, "b", []),
        (30, "advance", ["28 write 1 b"]),
    )


def test_is_throttled_changes_nothing_and_follows_the_clock():
    machine = machine_of()
    machine.throttle(frame(1, 1, 50), 0)
    machine.send(1, "a", 10)

    assert [True, True, False] == [machine.is_throttled(1, at_ms) for at_ms in (0, 49, 50)]
    assert machine.now_ms == 10
    machine.advance(50)
    assert not machine.is_throttled(1, 0)


def lines_run(operation):
    """How many lines of the core `operation` runs: its work, whatever the machine and whatever else runs on it."""
    count = 0

    def tracer(running, *_):
        nonlocal count
        if CORE not in Path(running.f_code.co_filename).parents:
            return None
        count += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        operation()
    finally:
        sys.settrace(before)
    return count


def busy(pending, *, held):
    """Producer 1 with that many messages, written and then blocked, and as many ids seen."""
    machine = machine_of(send_timeout_ms=10**6)
    for number in range(pending):
        machine.send(1, f"w{number}", number)
        machine.throttle(frame(number + 1, 2, 1), number)
    if held:
        machine.throttle(frame(pending + 1, 1, 500_000), pending)
        for number in range(pending):
            machine.send(1, f"b{number}", pending)
    return machine


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    "operation",
    [
        lambda machine: machine.send(1, "new", 5000),
        lambda machine: machine.ack(1, "w3", 5000),
        lambda machine: machine.nack(1, "w0", 5000),
        lambda machine: machine.throttle(frame(10**6, 1, 700_000), 5000),
        lambda machine: machine.throttle(frame(3, 1, 700_000), 5000),
        lambda machine: machine.probe(1, 5000),
        lambda machine: machine.advance(10**6),
        lambda machine: (machine.ack(1, "w0", 5000), machine.next_due_ms()),
    ],
    ids=["send", "ack", "nack", "throttle", "duplicate", "probe", "timeout", "next due"],
)
def test_the_work_of_an_operation_does_not_grow_with_messages_or_ids(operation, held):
    few, many = (busy(pending, held=held) for pending in (10, 1000))
    if held:
        for machine in (few, many):
            machine.throttle(frame(10**7, 1, 10**7), 4000)

    assert 0 < lines_run(lambda: operation(few)) == lines_run(lambda: operation(many))
