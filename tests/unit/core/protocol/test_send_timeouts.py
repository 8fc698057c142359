"""Which error a send timeout is, and what it tells (throttle-protocol 11)."""

import pytest

from headgate.core.protocol.client.client_outputs import Failed
from headgate.core.protocol.client.send_errors import SendError, ThrottleDetail, classify
from headgate.core.protocol.reasons import Reason
from unit.core.protocol.client_steps import counted, frame, machine_of, play


@pytest.mark.parametrize(
    ("theta_ms", "theta0_ms", "timeout_ms", "percent", "verdict"),
    [
        (1800, 1000, 1000, 80, (800, SendError.TIMEOUT)),
        (1801, 1000, 1000, 80, (801, SendError.THROTTLED)),
        (7, 7, 1000, 0, (0, SendError.TIMEOUT)),
        (8, 7, 1000, 0, (1, SendError.THROTTLED)),
        (9000, 0, 1000, 99, (1000, SendError.THROTTLED)),
        (9000, 0, 1000, 100, (1000, SendError.TIMEOUT)),
        (5, 9, 1000, 0, (0, SendError.TIMEOUT)),
        (9000, 0, 0, 0, (0, SendError.TIMEOUT)),
    ],
)
def test_the_throttle_is_to_blame_above_its_percentage_and_not_at_it(theta_ms, theta0_ms, timeout_ms, percent, verdict):
    assert verdict == classify(theta_ms, theta0_ms, timeout_ms, percent)


@pytest.mark.parametrize(
    ("pause_ms", "failed"),
    [
        (80, "SendTimeoutError by 0: 80/100, left 0"),
        (81, "ProducerThrottledError by 0: 81/100, left 0"),
    ],
)
def test_exactly_80_percent_is_a_timeout(pause_ms, failed):
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 1, pause_ms), ["0 receipt 1"]),
        (0, "send", 1, "a", []),
        (99, "advance", [f"{pause_ms} write 1 a"]),
        (100, "advance", [f"100 fail 1 a {failed}"]),
        (1000, "advance", []),
    )


ONE_OLD_ONE_NEW = [
    (0, "throttle", frame(1, 1, 90), ["0 receipt 1"]),
    (0, "send", 1, "a", []),
    (95, "send", 1, "b", ["90 write 1 a", "95 write 1 b"]),
]


def test_expired_only_fails_each_message_at_its_time_and_classes_it_by_itself():
    play(
        machine_of(send_timeout_ms=100),
        *ONE_OLD_ONE_NEW,
        (100, "advance", ["100 fail 1 a ProducerThrottledError by 0: 90/100, left 0"]),
        (195, "advance", ["195 fail 1 b SendTimeoutError by 0: 0/100, left 0"]),
    )


def test_head_all_fails_all_that_is_pending_in_order_with_the_class_and_values_of_the_oldest():
    machine = machine_of(send_timeout_ms=100, fail_mode="head_all")
    play(
        machine,
        *ONE_OLD_ONE_NEW,
        (
            100,
            "advance",
            [
                "100 fail 1 a ProducerThrottledError by 0: 90/100, left 0",
                "100 fail 1 b ProducerThrottledError by 0: 90/100, left 0",
            ],
        ),
        (101, "send", 1, "c", ["101 write 1 c"]),
        (195, "advance", []),
        (201, "advance", ["201 fail 1 c SendTimeoutError by 0: 0/100, left 0"]),
    )

    assert 2 == counted(machine)["send.failed.count{error=ProducerThrottledError,topic=t1}"]


def test_head_all_fails_blocked_messages_unwritten_and_other_producers_not_at_all():
    play(
        machine_of(send_timeout_ms=100, fail_mode="head_all"),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (10, "send", 2, "x", ["10 write 2 x"]),
        (50, "throttle", frame(1, 1, 100), ["50 receipt 1"]),
        (60, "send", 1, "b", []),
        (
            100,
            "advance",
            [
                "100 fail 1 a SendTimeoutError by 0: 50/100, left 50",
                "100 fail 1 b SendTimeoutError by 0: 50/100, left 50",
            ],
        ),
        (200, "advance", ["110 fail 2 x SendTimeoutError by None: 0/100, left 0"]),
    )


@pytest.mark.parametrize(
    ("pause_ms", "emitted"),
    [(151, ["50 fail 1 a ProducerThrottledError by 1: 0/100, left 101 at once"]), (150, []), (149, [])],
)
def test_a_send_fails_at_once_when_the_rest_of_the_window_is_longer_than_its_timeout(pause_ms, emitted):
    machine = machine_of(send_timeout_ms=100)
    machine.throttle(frame(1, 1, pause_ms, reason=1), 0)
    play(machine, (50, "send", 1, "a", emitted))

    pending = 0 if emitted else 1
    play(machine, (50, "probe", 1, [f"50 probe 1 until {pause_ms} by 1 blocked {pending} pending {pending} theta 50"]))


def test_a_timeout_at_the_window_end_comes_before_the_drain():
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 1, 150), ["0 receipt 1"]),
        (50, "send", 1, "a", []),
        (60, "send", 1, "b", []),
        (150, "advance", ["150 fail 1 a ProducerThrottledError by 0: 100/100, left 0", "150 write 1 b"]),
    )


def test_an_expired_blocked_message_leaves_unwritten_and_the_next_ones_stay_blocked():
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 1, 60), ["0 receipt 1"]),
        (0, "send", 1, "a", []),
        (10, "send", 1, "b", []),
        (50, "throttle", frame(2, 1, 200, reason=1), ["50 receipt 2"]),
        (105, "advance", ["100 fail 1 a ProducerThrottledError by 1: 100/100, left 150"]),
        (105, "probe", 1, ["105 probe 1 until 250 by 1 blocked 1 pending 1 theta 105"]),
        (150, "ack", 1, "a", ["110 fail 1 b ProducerThrottledError by 1: 100/100, left 140"]),
        (300, "advance", []),
    )


def test_timeout_0_fails_neither_at_once_nor_later():
    play(
        machine_of(send_timeout_ms=0),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (0, "throttle", frame(1, 1, 1_000_000), ["0 receipt 1"]),
        (1, "send", 1, "b", []),
        (10**9, "advance", ["1000000 write 1 b"]),
        (10**12, "advance", []),
    )


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        ([], None),
        ([frame(1, 1, 10, reason=4)], 4),
        ([frame(1, 1, 10, reason=0), frame(2, 1, 0, reason=3)], 3),
        ([frame(1, 1, 0, reason=3), frame(2, 1, 500, reason=1)], 1),
        ([frame(1, 1, 500, reason=1), frame(2, 1, 0, reason=3)], 1),
        ([frame(1, 1, 0, reason=3), frame(2, 1, 10, reason=1)], 3),
        ([frame(1, 1, 20, reason=1), frame(2, 1, 10, reason=0)], 1),
        ([frame(1, 1, 20, reason=1), frame(2, 9, 10, reason=0)], 1),
    ],
)
def test_the_reason_is_that_of_the_window_else_of_the_notice_else_the_last_one(commands, reason):
    machine = machine_of(send_timeout_ms=100, throttled_percent=100)
    machine.send(1, "a", 0)
    for command in commands:
        machine.throttle(command, 0)
    [failed] = machine.advance(100)

    assert reason == failed.detail.reason


def test_the_last_reason_survives_the_link():
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 1, 500, reason=1), ["0 receipt 1"]),
        (10, "disconnect", []),
        (20, "send", 1, "a", []),
        (120, "advance", ["120 fail 1 a SendTimeoutError by 1: 0/100, left 0"]),
    )


def test_throttled_time_before_the_send_is_not_counted():
    play(
        machine_of(send_timeout_ms=100),
        (0, "throttle", frame(1, 1, 150), ["0 receipt 1"]),
        (70, "send", 1, "a", []),
        (170, "advance", ["150 write 1 a", "170 fail 1 a SendTimeoutError by 0: 80/100, left 0"]),
    )


def test_a_failed_message_is_not_written_after_a_reconnect():
    play(
        machine_of(send_timeout_ms=100),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (10, "disconnect", []),
        (20, "send", 1, "b", []),
        (110, "reconnect", ["100 fail 1 a SendTimeoutError by None: 0/100, left 0", "110 write 1 b"]),
        (111, "ack", 1, "a", []),
    )


def test_a_message_sent_again_keeps_its_first_deadline():
    play(
        machine_of(send_timeout_ms=100),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (10, "disconnect", []),
        (90, "reconnect", ["90 write 1 a"]),
        (100, "advance", ["100 fail 1 a SendTimeoutError by None: 0/100, left 0"]),
    )


def test_the_texts_of_the_errors_name_the_reason():
    timeout = ThrottleDetail(Reason.BrokerProduceQuotaExceeded, 850, 1000, 50, immediate=False)
    at_once = ThrottleDetail(Reason.TopicProduceQuotaExceeded, 0, 300, 450, immediate=True)
    never = ThrottleDetail(None, 0, 1000, 0, immediate=False)

    assert (
        "not acknowledged within the send timeout of 1000 ms, throttled for 850 ms of it, for 50 ms more; "
        "reason: BROKER_PUBLISH_RATE" == str(timeout)
    )
    assert "TOPIC_PUBLISH_RATE" in str(at_once)
    assert "300 ms" in str(at_once)
    assert "never throttled" in str(never)


def test_only_the_two_errors_of_timeouts_carry_details():
    machine = machine_of(send_timeout_ms=100)
    machine.send(1, "a", 0)
    machine.send(1, "b", 0)
    outputs = [*machine.nack(1, "a", 1), *machine.advance(100), *machine.close(1, 101), *machine.send(1, "c", 102)]

    assert [
        (SendError.REJECTED, False),
        (SendError.TIMEOUT, True),
        (SendError.CLOSED, False),
    ] == [(output.error, output.detail is not None) for output in outputs if isinstance(output, Failed)]
