"""Commands to a client: checks in their order, windows, notices and receipts (throttle-protocol 10.3)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.protocol.client.commands import ThrottleCommand
from headgate.core.protocol.reasons import Reason
from unit.core.protocol.client_steps import counted, frame, machine_of, outcomes, play, row, said

TOPIC, GROUP, PENDING = (
    "TopicProduceQuotaExceeded",
    "ResourceGroupProduceQuotaExceeded",
    "ConnectionPendingMessagesBreach",
)


def test_a_client_that_is_switched_off_drops_even_bad_commands():
    machine = machine_of(enabled=False)
    play(
        machine,
        (0, "throttle", frame(1, 1, 500), []),
        (0, "throttle", frame(0, 1, -1), []),
        (1, "send", 1, "a", ["1 write 1 a"]),
    )

    assert {} == counted(machine)


@pytest.mark.parametrize("request_id", [0, -1, MAX + 1, True, 1.0, "1", None])
def test_a_bad_request_id_comes_before_a_bad_pause(request_id):
    machine = machine_of()
    play(machine, (5, "throttle", frame(request_id, 1, -1), ["5 rejected bad_request_id"]))

    assert {"headgate.input.rejected.count{error=bad_request_id}": 1} == counted(machine)


@pytest.mark.parametrize("pause_ms", [-1, MAX + 1, True, 1.0, "1", None])
def test_a_bad_pause_comes_before_a_link_that_is_down_and_leaves_the_id_unseen(pause_ms):
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 1, pause_ms), ["0 rejected bad_pause"]),
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (1, "disconnect", []),
        (2, "throttle", frame(2, 1, pause_ms), ["2 rejected bad_pause"]),
    )

    assert {("applied", TOPIC, "t1"): 1} == outcomes(machine)


def test_a_link_that_is_down_comes_before_an_id_that_was_seen():
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (1, "disconnect", []),
        (2, "throttle", frame(1, 1, 100), []),
        (2, "throttle", frame(2, 9, 100), []),
    )

    assert {
        ("applied", TOPIC, "t1"): 1,
        ("disconnected", TOPIC, "t1"): 1,
        ("disconnected", TOPIC, ""): 1,
    } == outcomes(machine)


def test_an_id_that_was_seen_comes_before_an_unknown_producer_and_is_seen_with_one():
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 9, 100), ["0 receipt 1"]),
        (1, "throttle", frame(1, 9, 100), ["1 receipt 1"]),
        (2, "throttle", frame(1, 1, 100), ["2 receipt 1"]),
        (3, "probe", 1, ["3 probe 1 free blocked 0 pending 0 theta 0"]),
    )

    assert {
        ("unknown_producer", TOPIC, ""): 1,
        ("duplicate", TOPIC, ""): 1,
        ("duplicate", TOPIC, "t1"): 1,
    } == outcomes(machine)


def test_an_unknown_or_closed_producer_comes_before_a_stale_row():
    machine = machine_of()
    play(
        machine,
        (100, "close", 1, []),
        (100, "throttle", row(1, 9, 10, issued_at_ms=0), ["100 receipt 1"]),
        (100, "throttle", row(2, 1, 10, issued_at_ms=0), ["100 receipt 2"]),
    )

    assert {("unknown_producer", TOPIC, ""): 2} == outcomes(machine)


def test_ids_seen_are_forgotten_at_a_reconnect_alone():
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (5, "reconnect", []),
        (6, "throttle", frame(1, 1, 500), ["6 receipt 1"]),
        (10, "disconnect", []),
        (20, "reconnect", []),
        (30, "throttle", frame(1, 1, 100), ["30 receipt 1"]),
        (30, "probe", 1, ["30 probe 1 until 130 by 0 blocked 0 pending 0 theta 10"]),
    )


@pytest.mark.parametrize("code", [5, 6, 7, 99, -1, MAX, None, True, 0.0, "0", [0]])
def test_reasons_other_than_0_to_4_become_99(code):
    machine = machine_of()
    machine.throttle(frame(1, 1, 100, reason=code), 0)

    assert {("applied", "Unspecified", "t1"): 1} == outcomes(machine)


@pytest.mark.parametrize("code", range(5))
def test_the_pause_alone_decides_whether_a_command_is_a_window_or_a_notice(code):
    machine = machine_of()
    machine.throttle(frame(1, 1, 0, reason=code), 0)
    machine.throttle(frame(2, 2, 100, reason=code), 0)

    assert not machine.is_throttled(1, 1)
    assert machine.is_throttled(2, 1)
    assert {("notice", Reason(code).name, "t1"): 1, ("applied", Reason(code).name, "t2"): 1} == outcomes(machine)


@pytest.mark.parametrize(
    ("pause_ms", "reason", "outcome", "then"),
    [
        (301, 1, "applied", "until 401 by 1"),
        (300, 0, "applied", "until 400 by 0"),
        (300, 1, "no_change", "until 400 by 1"),
        (300, 2, "no_change", "until 400 by 1"),
        (299, 0, "no_change", "until 400 by 1"),
    ],
)
def test_a_second_command_joins_the_window(pause_ms, reason, outcome, then):
    machine = machine_of()
    machine.throttle(frame(1, 1, 400, reason=1), 0)
    play(machine, (100, "throttle", frame(2, 1, pause_ms, reason), ["100 receipt 2"]))

    assert f"100 probe 1 {then} blocked 0 pending 0 theta 100" in said(machine.probe(1, 100))
    assert outcome in {key[0] for key, total in outcomes(machine).items() if key[1] == Reason(reason).name}
    announced = counted(machine)[f"throttled_times{{reason={Reason(reason).name},topic=t1}}"]
    assert announced == pause_ms + (400 if reason == 1 else 0)


def test_a_window_that_is_over_is_not_joined():
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 1, 100, reason=0), ["0 receipt 1"]),
        (100, "throttle", frame(2, 1, 50, reason=1), ["100 receipt 2"]),
        (100, "probe", 1, ["100 probe 1 until 150 by 1 blocked 0 pending 0 theta 100"]),
    )


@pytest.mark.parametrize(
    ("issued_at_ms", "then"),
    [(500, "until 600 by 0"), (100, "until 200 by 0"), (12, "until 112 by 0"), (11, "free"), (0, "free")],
)
def test_a_row_ends_by_its_own_time_and_is_stale_when_that_is_past(issued_at_ms, then):
    machine = machine_of(clock_skew_ms=10)
    play(machine, (111, "throttle", row(1, 1, 110, issued_at_ms), ["111 receipt 1"]))

    assert said(machine.probe(1, 111))[0].startswith(f"111 probe 1 {then} ")


def test_a_stale_row_is_neither_counted_as_a_pause_nor_remembered_as_the_reason():
    machine = machine_of(send_timeout_ms=50)
    play(
        machine,
        (100, "throttle", row(1, 1, 50, issued_at_ms=50, reason=1), ["100 receipt 1"]),
        (100, "send", 1, "a", ["100 write 1 a"]),
        (150, "advance", ["150 fail 1 a SendTimeoutError by None: 0/50, left 0"]),
    )

    assert {("stale", GROUP, "t1"): 1} == outcomes(machine)
    assert not any("throttled" in key for key in counted(machine))


@pytest.mark.parametrize(
    ("issued_at_ms", "outcome"), [(950, "notice"), (949, "stale"), (None, "notice"), (2000, "notice")]
)
def test_a_notice_row_is_stale_beyond_its_age_and_a_notice_frame_never(issued_at_ms, outcome):
    machine = machine_of(notice_ttl_ms=50)
    play(machine, (1000, "throttle", row(1, 1, 0, issued_at_ms, reason=2), ["1000 receipt 1"]))

    assert {(outcome, PENDING, "t1"): 1} == outcomes(machine)
    assert said(machine.probe(1, 1010))[0].endswith(f"theta {10 if outcome == 'notice' else 0}")


@pytest.mark.parametrize("issued_at_ms", ["0", 1.5, True, -1, 2**63, 10**30])
def test_a_row_whose_time_is_none_is_rejected_and_the_clock_stays(issued_at_ms):
    machine = machine_of()
    play(machine, (50, "throttle", row(1, 1, 100, issued_at_ms), ["50 rejected bad_time"]))

    assert machine.now_ms == 0


def test_ignored_notices_are_counted_and_remembered_but_do_not_count_as_throttled():
    machine = machine_of(zero_pause="ignore", send_timeout_ms=100)
    play(
        machine,
        (0, "throttle", frame(1, 1, 0, reason=3), ["0 receipt 1"]),
        (0, "send", 1, "a", ["0 write 1 a"]),
        (100, "advance", ["100 fail 1 a SendTimeoutError by 3: 0/100, left 0"]),
        (100, "probe", 1, ["100 probe 1 free blocked 0 pending 0 theta 0"]),
    )

    assert {("notice", "MessageBufferSizeBreach", "t1"): 1} == outcomes(machine)


def test_a_notice_ends_with_the_ack_of_a_message_written_after_it():
    play(
        machine_of(),
        (0, "send", 1, "before", ["0 write 1 before"]),
        (10, "throttle", frame(1, 1, 0), ["10 receipt 1"]),
        (20, "send", 1, "after", ["20 write 1 after"]),
        (30, "ack", 1, "before", ["30 done 1 before"]),
        (40, "probe", 1, ["40 probe 1 free blocked 0 pending 1 theta 30"]),
        (50, "ack", 1, "after", ["50 done 1 after"]),
        (90, "probe", 1, ["90 probe 1 free blocked 0 pending 0 theta 40"]),
    )


def test_the_base_counts_writes_and_not_messages():
    """Both messages are written twice: their second writes are younger than the notice, their first ones are not."""
    machine = machine_of()
    play(
        machine,
        (0, "send", 1, "a", ["0 write 1 a"]),
        (0, "send", 1, "b", ["0 write 1 b"]),
        (1, "disconnect", []),
        (2, "reconnect", ["2 write 1 a", "2 write 1 b"]),
        (10, "throttle", frame(1, 1, 0), ["10 receipt 1"]),
        (20, "ack", 1, "b", ["20 done 1 b"]),
        (30, "probe", 1, ["30 probe 1 free blocked 0 pending 1 theta 20"]),
        (40, "send", 1, "c", ["40 write 1 c"]),
        (50, "ack", 1, "c", ["50 done 1 c"]),
        (60, "probe", 1, ["60 probe 1 free blocked 0 pending 1 theta 40"]),
    )


def test_a_second_notice_keeps_the_start_and_takes_reason_and_base():
    machine = machine_of()
    play(
        machine,
        (0, "throttle", frame(1, 1, 0, reason=2), ["0 receipt 1"]),
        (10, "send", 1, "a", ["10 write 1 a"]),
        (20, "throttle", frame(2, 1, 0, reason=3), ["20 receipt 2"]),
        (30, "ack", 1, "a", ["30 done 1 a"]),
        (50, "probe", 1, ["50 probe 1 free blocked 0 pending 0 theta 50"]),
    )
    durations = {key: total for key, total in counted(machine).items() if key.startswith("throttled.duration")}

    assert {
        "throttled.duration{reason=ConnectionPendingMessagesBreach,topic=t1}": 20,
        "throttled.duration{reason=MessageBufferSizeBreach,topic=t1}": 30,
    } == durations


def test_a_nack_and_an_answer_to_a_failed_message_do_not_end_a_notice():
    play(
        machine_of(send_timeout_ms=50),
        (0, "throttle", frame(1, 1, 0), ["0 receipt 1"]),
        (10, "send", 1, "a", ["10 write 1 a"]),
        (15, "nack", 1, "a", ["15 fail 1 a SendRejectedError"]),
        (20, "send", 1, "b", ["20 write 1 b"]),
        (71, "ack", 1, "b", ["70 fail 1 b ProducerThrottledError by 0: 50/50, left 0"]),
        (80, "probe", 1, ["80 probe 1 free blocked 0 pending 0 theta 80"]),
    )


def test_an_open_notice_outlasts_a_window_and_overlaps_count_once():
    play(
        machine_of(),
        (0, "throttle", frame(1, 1, 0, reason=2), ["0 receipt 1"]),
        (10, "throttle", frame(2, 1, 20, reason=0), ["10 receipt 2"]),
        (25, "probe", 1, ["25 probe 1 until 30 by 0 blocked 0 pending 0 theta 25"]),
        (40, "probe", 1, ["40 probe 1 free blocked 0 pending 0 theta 40"]),
    )


def test_a_window_is_in_force_before_its_receipt_and_frees_nothing_that_is_blocked():
    machine = machine_of(drain_delay_ms=30)
    play(
        machine,
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (10, "send", 1, "a", []),
        (110, "throttle", frame(2, 1, 50), ["110 receipt 2"]),
        (110, "send", 1, "b", []),
        (130, "advance", []),
        (189, "advance", []),
        (190, "advance", ["190 write 1 a", "190 write 1 b"]),
    )


def test_a_command_that_changes_nothing_does_not_move_the_drain():
    play(
        machine_of(drain_delay_ms=10),
        (0, "throttle", frame(1, 1, 100), ["0 receipt 1"]),
        (0, "send", 1, "a", []),
        (50, "throttle", frame(2, 1, 20), ["50 receipt 2"]),
        (109, "advance", []),
        (110, "advance", ["110 write 1 a"]),
    )


def test_ends_beyond_the_largest_time_are_exact():
    machine = machine_of(send_timeout_ms=0)
    play(
        machine,
        (100, "throttle", frame(MAX, 1, MAX), [f"100 receipt {MAX}"]),
        (100, "send", 1, "a", []),
        (100, "throttle", frame(1, 1, MAX - 1, reason=1), ["100 receipt 1"]),
        (MAX, "probe", 1, [f"{MAX} probe 1 until {MAX + 100} by 0 blocked 1 pending 1 theta {MAX - 100}"]),
        (MAX, "advance", []),
    )

    assert MAX + 100 == machine.next_due_ms()
    assert MAX == counted(machine)[f"throttled_times{{reason={TOPIC},topic=t1}}"]


def test_a_command_reaches_its_own_producer_alone():
    machine = machine_of()
    machine.throttle(ThrottleCommand(1, 2, 0, 100), 0)

    assert [False, True] == [machine.is_throttled(producer, 50) for producer in (1, 2)]


def test_after_a_new_connection_ids_are_new_while_windows_and_what_waits_stay():
    """A library that connects again by itself has written again what was pending."""
    machine = machine_of()
    play(
        machine,
        (0, "send", 1, "a", ["0 write 1 a"]),
        (1, "throttle", frame(1, 1, 100), ["1 receipt 1"]),
        (2, "send", 1, "b", []),
        (3, "renumber", []),
        (4, "throttle", frame(1, 1, 197), ["4 receipt 1"]),
        (200, "send", 1, "c", []),
        (201, "renumber", []),
        (202, "ack", 1, "a", ["201 write 1 b", "201 write 1 c", "202 done 1 a"]),
    )

    assert {("applied", TOPIC, "t1"): 2} == outcomes(machine)
