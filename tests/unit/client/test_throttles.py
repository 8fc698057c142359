"""What is told of windows: the state when it is asked for, and their begin and end when they come."""

import logging
import threading

import pytest

from headgate.client.throttles import Throttles
from headgate.core.protocol.client.windows import Window
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import HeldReason
from unit.client.doubles import SOON_S, Gate, scene_of

TOPIC, GROUP = Reason.TopicProduceQuotaExceeded, Reason.ResourceGroupProduceQuotaExceeded


@pytest.mark.parametrize(
    ("steps", "due_ms"),
    [
        # a step: time; a producer's window, None or "close"; what is told: (producer, throttled, remaining, until)
        ([(10, (0, 50), [(0, 0, 40, 50)])], 50),
        ([(10, (0, 50), [(0, 0, 40, 50)]), (49, None, [])], 50),
        ([(10, (0, 50), [(0, 0, 40, 50)]), (50, None, [(0, 40, 0, 50)]), (60, None, [])], None),
        ([(10, (0, 50), [(0, 0, 40, 50)]), (90, None, [(0, 40, 0, 50)])], None),
        # extended: the same window
        ([(10, (0, 50), [(0, 0, 40, 50)]), (40, (0, 80), []), (60, None, []), (80, None, [(0, 70, 0, 80)])], None),
        # after its end: another one
        ([(10, (0, 50), [(0, 0, 40, 50)]), (50, (0, 80), [(0, 40, 0, 50), (0, 0, 30, 80)])], 80),
        # of two producers, one goes on
        (
            [
                (10, (0, 90), [(0, 0, 80, 90)]),
                (20, (1, 50), [(1, 0, 30, 50)]),
                (60, None, [(1, 30, 0, 50)]),
                (80, None, []),
                (95, None, [(0, 80, 0, 90)]),
            ],
            None,
        ),
        # closed: over now, or when it was over
        ([(10, (0, 50), [(0, 0, 40, 50)]), (30, "close", [(0, 20, 0, 30)]), (60, None, [])], None),
        ([(10, (0, 50), [(0, 0, 40, 50)]), (60, "close", [(0, 40, 0, 50)])], None),
    ],
)
def test_a_window_is_told_when_it_begins_and_once_when_it_is_over(steps, due_ms):
    told = []
    throttles = Throttles({0: "t0", 1: "t1"}, is_partitioned=True, tell=told.append)
    for now_ms, what, expected in steps:
        if what == "close":
            throttles.end_all(now_ms)
        else:
            throttles.settle(now_ms)
        if isinstance(what, tuple):
            throttles.hold(what[0], Window(what[1], TOPIC), now_ms)
        assert [(each.partition, each.throttled_ms, each.remaining_ms, each.until_ms) for each in told] == expected
        told.clear()
    assert throttles.due_ms == due_ms


def test_a_producer_says_why_and_until_when_it_is_throttled():
    with scene_of() as scene:
        assert scene.producer.throttle() is None
        scene.clock.ms = 100
        scene.producer.on_command(1, 0, TOPIC, 50)
        scene.producer.on_command(2, 0, GROUP, 70)
        scene.clock.ms = 130

        throttle = scene.producer.throttle()
        assert (throttle.topic, throttle.partition) == ("t", None)
        assert (throttle.reason, throttle.protocol_reason) == (HeldReason.GROUP_QUOTA, GROUP)
        assert (throttle.throttled_ms, throttle.remaining_ms, throttle.until_ms) == (30, 40, 170)
        scene.clock.ms = 170
        assert (scene.producer.throttle(), scene.producer.is_throttled()) == (None, False)


def test_of_partitions_the_one_that_is_throttled_longest_answers():
    with scene_of(partitions=4) as scene:
        for request_id, (partition, pause_ms) in enumerate([(1, 50), (2, 90), (3, 90)], 1):
            scene.producer.on_command(request_id, partition, TOPIC, pause_ms)
        until = [scene.producer.throttle(partition) for partition in range(4)]
        assert [throttle and throttle.remaining_ms for throttle in until] == [None, 50, 90, 90]
        assert (scene.producer.throttle().partition, scene.producer.throttle().topic) == (2, "t-partition-2")


def test_a_notice_and_a_reason_from_a_later_version():
    with scene_of() as scene:
        scene.producer.on_command(1, 0, TOPIC, 0)
        assert scene.producer.throttle() is None, "reads are off, but the producer may write"
        scene.producer.on_command(2, 0, 77, 50)
        throttle = scene.producer.throttle()
        assert (throttle.reason, throttle.protocol_reason) == (None, Reason.Unspecified)


def test_a_command_for_no_producer_throttles_none():
    with scene_of() as scene:
        for request_id, producer_id in enumerate([7, None, "0", [0]], 1):
            scene.producer.on_command(request_id, producer_id, TOPIC, 50)
        assert (scene.producer.throttle(), scene.producer.throttle(7)) == (None, None)


def test_callbacks_hear_a_window_begin_and_end_in_the_thread_of_the_futures_and_may_send():
    """The timer wakes for the end though no message waits for it."""
    heard, resumed = [], threading.Event()

    def on_throttle(throttle):
        heard.append(("throttled", throttle.remaining_ms, threading.current_thread().name))
        scene.producer.send("in the window")

    def on_resume(throttle):
        heard.append(("resumed", throttle.throttled_ms, threading.current_thread().name))
        scene.producer.send("after it")
        resumed.set()

    with scene_of(on_throttle=on_throttle, on_resume=on_resume) as scene:
        scene.producer.on_command(1, 0, TOPIC, 50)
        scene.producer.on_command(2, 0, TOPIC, 70)
        scene.producer._completions.put((begun := threading.Event()).set)
        assert begun.wait(SOON_S)
        scene.clock.ring(70)
        assert resumed.wait(SOON_S)
        thread = "headgate-client-callbacks"
        assert heard == [("throttled", 50, thread), ("resumed", 70, thread)]
        scene.producer._outbox.carry_out()
        assert scene.library.written == ["in the window", "after it"]


def test_the_end_of_a_window_without_messages_is_heard():
    resumed = threading.Event()
    with scene_of(on_resume=lambda _: resumed.set()) as scene:
        scene.producer.on_command(1, 0, TOPIC, 50)
        scene.producer.on_command(2, 0, TOPIC, 90)
        scene.clock.ring(50)
        assert scene.producer.is_throttled()
        scene.clock.ring(90)
        assert resumed.wait(SOON_S)


def test_close_ends_a_window():
    heard = []
    with scene_of(on_resume=lambda throttle: heard.append((throttle.throttled_ms, throttle.remaining_ms))) as scene:
        scene.producer.on_command(1, 0, TOPIC, 50)
        scene.clock.ms = 20
        scene.producer.close(0)
        assert (heard, scene.producer.throttle()) == ([(20, 0)], None)


def test_a_callback_that_hangs_or_raises_holds_up_no_command(caplog):
    gate = Gate()

    def on_throttle(_):
        gate.stay()
        raise RuntimeError("no such gauge")

    with scene_of(on_throttle=on_throttle) as scene:
        scene.producer.on_command(1, 0, TOPIC, 50)
        gate.wait_reached()
        scene.producer.on_command(2, 0, TOPIC, 90)
        assert scene.receipts == [1, 2]
        gate.let_go()
        future = scene.producer.send("a")
        scene.at(90)
        scene.library.ack("a")
        assert future.result(SOON_S) == "a stored"
    assert "no such gauge" in caplog.text


def test_one_line_is_logged_for_a_window_and_one_for_its_end(caplog):
    caplog.set_level(logging.INFO, "headgate.client")
    with scene_of() as scene:
        scene.producer.on_command(1, 0, GROUP, 50)
        scene.producer.on_command(1, 0, GROUP, 50)
        scene.clock.ms = 40
        scene.producer.on_command(2, 0, GROUP, 50)
        scene.at(90)
        scene.producer.on_command(3, 0, 77, 10)
        scene.at(200)
    assert [record.getMessage() for record in caplog.records] == [
        "t: throttled for 50 ms; reason: GROUP_QUOTA",
        "t: was throttled for 90 ms; reason: GROUP_QUOTA",
        "t: throttled for 10 ms; reason: Unspecified",
        "t: was throttled for 10 ms; reason: Unspecified",
    ]
