"""Every cell of the table of client states and inputs (throttle-protocol 10.2)."""

import pytest

from unit.core.protocol.client_steps import frame, machine_of, play, said

FREE, HELD, DOWN, CLOSED = "free", "held", "down", "closed"
BEFORE = {
    FREE: [(10, "send", 1, "w", ["10 write 1 w"])],
    HELD: [
        (10, "send", 1, "w", ["10 write 1 w"]),
        (50, "throttle", frame(1, 1, 400), ["50 receipt 1"]),
        (60, "send", 1, "b", []),
    ],
    DOWN: [
        (10, "send", 1, "w", ["10 write 1 w"]),
        (50, "disconnect", []),
        (60, "send", 1, "b", []),
    ],
    CLOSED: [(10, "send", 1, "w", ["10 write 1 w"]), (50, "close", 1, ["50 fail 1 w ProducerClosedError"])],
}


def in_state(state, **settings):
    machine = machine_of(**settings)
    play(machine, *BEFORE[state])
    return machine


@pytest.mark.parametrize(
    ("state", "emitted", "then"),
    [
        (FREE, ["100 receipt 7"], "100 probe 1 until 600 by 1 blocked 0 pending 1 theta 0"),
        (HELD, ["100 receipt 7"], "100 probe 1 until 600 by 1 blocked 1 pending 2 theta 50"),
        (DOWN, [], "100 probe 1 free blocked 0 pending 2 theta 0"),
        (CLOSED, ["100 receipt 7"], "100 rejected unknown_producer"),
    ],
)
def test_a_command_opens_or_joins_the_window_while_the_link_is_up(state, emitted, then):
    play(in_state(state), (100, "throttle", frame(7, 1, 500, reason=1), emitted), (100, "probe", 1, [then]))


@pytest.mark.parametrize(
    ("state", "emitted", "theta_ms"),
    [(FREE, ["100 receipt 7"], 100), (HELD, ["100 receipt 7"], 150), (DOWN, [], 0)],
)
def test_a_notice_blocks_nothing_but_counts_as_throttled_time(state, emitted, theta_ms):
    machine = in_state(state)
    play(machine, (100, "throttle", frame(7, 1, 0, reason=2), emitted))

    assert said(machine.probe(1, 200))[0].endswith(f"theta {theta_ms}")


@pytest.mark.parametrize(
    ("state", "emitted", "then"),
    [
        (FREE, ["100 write 1 m"], "100 probe 1 free blocked 0 pending 2 theta 0"),
        (HELD, [], "100 probe 1 until 450 by 0 blocked 2 pending 3 theta 50"),
        (DOWN, [], "100 probe 1 free blocked 0 pending 3 theta 0"),
        (CLOSED, ["100 fail 1 m ProducerClosedError"], "100 rejected unknown_producer"),
    ],
)
def test_a_send_is_written_kept_or_refused_by_state(state, emitted, then):
    play(in_state(state), (100, "send", 1, "m", emitted), (100, "probe", 1, [then]))


@pytest.mark.parametrize("state", [FREE, HELD, DOWN])
@pytest.mark.parametrize(("answer", "error"), [("ack", "done 1 w"), ("nack", "fail 1 w SendRejectedError")])
def test_an_answer_to_a_written_message_completes_it_in_every_state(state, answer, error):
    play(in_state(state), (100, answer, 1, "w", [f"100 {error}"]), (110, answer, 1, "w", []))


@pytest.mark.parametrize("answer", ["ack", "nack"])
@pytest.mark.parametrize(("state", "message"), [(HELD, "b"), (DOWN, "b"), (CLOSED, "w"), (FREE, "x")])
def test_an_answer_to_what_is_not_pending_or_was_never_written_is_ignored(state, message, answer):
    play(in_state(state), (100, answer, 1, message, []))


@pytest.mark.parametrize(
    ("state", "emitted"),
    [
        (FREE, ["110 fail 1 w SendTimeoutError by None: 0/100, left 0"]),
        (HELD, ["110 fail 1 w SendTimeoutError by 0: 60/100, left 340"]),
        (
            DOWN,
            [
                "110 fail 1 w SendTimeoutError by None: 0/100, left 0",
                "160 fail 1 b SendTimeoutError by None: 0/100, left 0",
            ],
        ),
        (CLOSED, []),
    ],
)
def test_send_timeouts_run_in_every_state_but_closed(state, emitted):
    machine = machine_of(send_timeout_ms=100)
    for at_ms, method, *arguments, _ in BEFORE[state]:
        getattr(machine, method)(*arguments, at_ms)

    assert emitted == said(machine.advance(300))


def test_at_the_window_end_the_producer_is_free_and_blocked_messages_wait_for_the_drain_or_the_next_send():
    drained, sent = in_state(HELD, drain_delay_ms=30), in_state(HELD, drain_delay_ms=30)
    play(
        drained,
        (449, "probe", 1, ["449 probe 1 until 450 by 0 blocked 1 pending 2 theta 399"]),
        (450, "probe", 1, ["450 probe 1 free blocked 1 pending 2 theta 400"]),
        (479, "advance", []),
        (480, "advance", ["480 write 1 b"]),
    )
    play(sent, (470, "send", 1, "m", ["470 write 1 b", "470 write 1 m"]), (900, "advance", []))


def test_a_disconnect_ends_window_and_notice_and_empties_what_is_blocked():
    machine = in_state(HELD)
    play(
        machine,
        (80, "throttle", frame(2, 1, 0, reason=2), ["80 receipt 2"]),
        (100, "disconnect", []),
        (100, "probe", 1, ["100 probe 1 free blocked 0 pending 2 theta 50"]),
        (150, "disconnect", []),
        (1000, "advance", []),
        (1000, "probe", 1, ["1000 probe 1 free blocked 0 pending 2 theta 50"]),
    )


def test_a_reconnect_writes_all_that_is_pending_again_by_ascending_producer():
    machine = machine_of()
    play(
        machine,
        (0, "send", 2, "x", ["0 write 2 x"]),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (1, "send", 1, "b", ["1 write 1 b"]),
        (2, "ack", 1, "a", ["2 done 1 a"]),
        (3, "disconnect", []),
        (4, "send", 1, "c", []),
        (5, "reconnect", ["5 write 1 b", "5 write 1 c", "5 write 2 x"]),
        (6, "ack", 1, "c", ["6 done 1 c"]),
    )


@pytest.mark.parametrize("state", [FREE, HELD])
def test_a_reconnect_of_a_link_that_is_up_changes_nothing(state):
    machine = in_state(state)
    before = said(machine.probe(1, 100))
    play(machine, (100, "reconnect", []))

    assert before == said(machine.probe(1, 100))


@pytest.mark.parametrize(
    ("state", "emitted"),
    [
        (FREE, ["100 fail 1 w ProducerClosedError"]),
        (HELD, ["100 fail 1 w ProducerClosedError", "100 fail 1 b ProducerClosedError"]),
        (DOWN, ["100 fail 1 w ProducerClosedError", "100 fail 1 b ProducerClosedError"]),
        (CLOSED, []),
    ],
)
def test_a_close_fails_all_that_is_pending_in_order_and_leaves_no_timer(state, emitted):
    machine = in_state(state)
    play(machine, (100, "close", 1, emitted), (100, "close", 1, []))

    assert machine.next_due_ms() is None
    assert said(machine.reconnect(200)) == []
    assert not machine.is_throttled(1, 200)


@pytest.mark.parametrize("producer", [9, -1, True, 1.0, "1", None, [1]])
def test_inputs_for_unknown_producers_do_no_harm(producer):
    play(
        machine_of(),
        (0, "send", producer, "m", ["0 rejected unknown_producer"]),
        (1, "probe", producer, ["1 rejected unknown_producer"]),
        (2, "throttle", frame(1, producer, 100), ["2 receipt 1"]),
        (3, "ack", producer, "m", []),
        (4, "nack", producer, "m", []),
        (5, "close", producer, []),
        (6, "probe", 1, ["6 probe 1 free blocked 0 pending 0 theta 0"]),
    )


def test_the_checks_of_a_send_come_in_their_order():
    machine = machine_of(max_pending=2, send_timeout_ms=300)
    play(
        machine,
        (0, "send", 1, "a", ["0 write 1 a"]),
        (0, "send", 1, "b", ["0 write 1 b"]),
        (0, "throttle", frame(1, 1, 500), ["0 receipt 1"]),
        (1, "send", 1, "b", ["1 rejected duplicate_message"]),
        (1, "send", 1, "c", ["1 fail 1 c ProducerQueueFullError"]),
        (1, "ack", 1, "a", ["1 done 1 a"]),
        (1, "send", 1, "c", ["1 fail 1 c ProducerThrottledError by 0: 0/300, left 499 at once"]),
        (2, "close", 1, ["2 fail 1 b ProducerClosedError"]),
        (2, "send", 1, "b", ["2 fail 1 b ProducerClosedError"]),
    )


def test_a_send_that_is_refused_drains_nothing():
    machine = machine_of(max_pending=1, drain_delay_ms=50)
    play(
        machine,
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (10, "send", 1, "a", []),
        (120, "send", 1, "b", ["120 fail 1 b ProducerQueueFullError"]),
        (121, "send", 1, "a", ["121 rejected duplicate_message"]),
        (200, "advance", ["150 write 1 a"]),
    )


def test_blocked_messages_count_as_pending_and_the_queue_frees_with_an_answer():
    machine = machine_of(max_pending=2)
    play(
        machine,
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (1, "send", 1, "a", []),
        (2, "send", 1, "b", []),
        (3, "send", 1, "c", ["3 fail 1 c ProducerQueueFullError"]),
        (100, "advance", ["100 write 1 a", "100 write 1 b"]),
        (101, "ack", 1, "b", ["101 done 1 b"]),
        (102, "send", 1, "c", ["102 write 1 c"]),
    )


def test_a_message_id_may_be_used_again_when_its_message_has_ended():
    play(
        machine_of(),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (0, "send", 2, "a", ["0 write 2 a"]),
        (1, "ack", 1, "a", ["1 done 1 a"]),
        (2, "send", 1, "a", ["2 write 1 a"]),
    )
