"""What a wrapped producer does with messages and commands (throttle-protocol 10 to 14)."""

import pickle
import threading

import pytest

from headgate.client import (
    ProducerClosedError,
    ProducerQueueFullError,
    ProducerThrottledError,
    SendRejectedError,
    SendTimeoutError,
)
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import HeldReason
from headgate.errors import InvalidArgument
from unit.client.doubles import SOON_S, ToldLibrary, scene_of


def test_a_message_is_written_at_once_and_its_future_gives_what_the_library_says():
    with scene_of() as scene:
        future = scene.producer.send("a")
        assert (scene.library.written, future.done()) == (["a"], False)

        scene.library.ack("a")
        assert future.result(SOON_S) == "a stored"


def test_options_of_a_send_are_handed_to_the_library():
    with scene_of(ToldLibrary(acknowledges=True)) as scene:
        assert scene.producer.send("a", key=b"k").result(SOON_S) == "a stored {'key': b'k'}"


def test_an_option_that_the_library_does_not_have_is_refused_at_once_and_the_allowed_are_named():
    with scene_of(ToldLibrary(acknowledges=True, options={"key", "headers"})) as scene:
        with pytest.raises(InvalidArgument) as raised:
            scene.producer.send("a", key=b"k", partition_key="k", keey="k")
        text = "send to t: got ['keey', 'partition_key'], allowed are partition, headers, key"
        assert (str(raised.value), scene.library.written) == (text, [])
        assert scene.producer.flush(0), "no message is pending"
        assert scene.producer.send("b", headers={}).result(SOON_S) == "b stored {'headers': {}}"


def test_in_a_window_messages_wait_and_leave_in_order_at_its_end():
    with scene_of() as scene:
        scene.at(100)
        scene.producer.send("a")
        scene.producer.on_command(1, 0, Reason.TopicProduceQuotaExceeded, 50)
        scene.producer.send("b")
        scene.producer.send("c")
        assert (scene.receipts, scene.producer.is_throttled(), scene.library.written) == ([1], True, ["a"])

        scene.at(149)
        assert scene.library.written == ["a"]
        scene.at(150)
        assert (scene.producer.is_throttled(), scene.library.written) == (False, ["a", "b", "c"])


def test_a_command_overtakes_the_writes_of_a_backlog_and_they_go_on_in_order_when_its_window_is_over():
    """At the end of a window all that waited is to be written; the broker asks again after the first of it."""
    library = ToldLibrary()
    with scene_of(library) as scene:
        scene.producer.on_command(1, 0, Reason.TopicProduceQuotaExceeded, 50)
        for payload in ("a", "b", "c"):
            scene.producer.send(payload)
        library.on_write = lambda payload: payload == "a" and scene.producer.on_command(2, 0, 0, 100)
        scene.at(50)
        assert (library.written, scene.receipts) == (["a"], [1, 2])

        scene.at(149)
        scene.producer.send("d")
        assert library.written == ["a"]
        scene.at(150)
        assert library.written == ["a", "b", "c", "d"]


def test_what_a_command_held_up_is_written_by_itself_when_its_window_is_over():
    library, is_written = ToldLibrary(), threading.Event()
    with scene_of(library) as scene:
        scene.producer.on_command(1, 0, Reason.TopicProduceQuotaExceeded, 50)
        for payload in ("a", "b"):
            scene.producer.send(payload)
        library.on_write = lambda payload: (
            scene.producer.on_command(2, 0, 0, 100) if payload == "a" else is_written.set()
        )
        scene.at(50)
        scene.clock.ring(150)
        assert is_written.wait(SOON_S)


def test_a_backlog_that_a_command_held_up_fails_when_the_producer_is_closed():
    library = ToldLibrary()
    with scene_of(library) as scene:
        scene.producer.on_command(1, 0, Reason.TopicProduceQuotaExceeded, 50)
        futures = [scene.producer.send(payload) for payload in ("a", "b")]
        library.on_write = lambda _: scene.producer.on_command(2, 0, 0, 100)
        scene.at(50)
        scene.producer.close(0)
        assert [type(scene.error(future)) for future in futures] == [ProducerClosedError] * 2
    assert library.written == ["a"]


def test_a_send_after_the_end_writes_what_waits_first():
    with scene_of(drain_delay_ms=1000) as scene:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        scene.at(60)
        scene.producer.send("b")
        assert scene.library.written == ["a", "b"]


def test_every_copy_of_a_command_is_answered():
    with scene_of() as scene:
        for request_id in (1, 1, 2, 2**63):
            scene.producer.on_command(request_id, 0, 0, 50)
        assert scene.receipts == [1, 1, 2]


def test_a_message_that_would_wait_longer_than_its_send_timeout_has_failed_on_return(caplog):
    with scene_of(send_timeout_ms=100) as scene:
        scene.producer.on_command(1, 0, Reason.ResourceGroupProduceQuotaExceeded, 101)
        future = scene.producer.send("a")

        assert future.done()
        error = future.exception()
        assert isinstance(error, ProducerThrottledError)
        assert (error.reason, error.protocol_reason) == ("GROUP_QUOTA", Reason.ResourceGroupProduceQuotaExceeded)
        assert (error.throttled_ms, error.timeout_ms, error.remaining_ms, error.immediate) == (0, 100, 101, True)
        assert str(error).startswith("t: not written: the producer is throttled for 101 ms more")
        assert "; reason: GROUP_QUOTA; " in str(error)
        scene.at(1000)
        assert scene.library.written == []
    assert not caplog.records, "a future ends once"


@pytest.mark.parametrize(("pause_ms", "kind"), [(80, SendTimeoutError), (81, ProducerThrottledError)])
def test_a_send_timeout_is_blamed_on_the_throttle_above_80_percent(pause_ms, kind):
    with scene_of(send_timeout_ms=100) as scene:
        future = scene.producer.send("a")
        scene.producer.on_command(1, 0, 0, pause_ms)
        scene.at(100)
        error = scene.error(future)

        assert type(error) is kind
        assert (error.throttled_ms, error.timeout_ms, error.remaining_ms, error.immediate) == (pause_ms, 100, 0, False)
        assert error.reason is HeldReason.TOPIC_PUBLISH_RATE


def test_a_producer_that_was_never_throttled_times_out_without_a_reason():
    with scene_of(send_timeout_ms=100) as scene:
        future = scene.producer.send("a")
        scene.at(100)
        assert (type(scene.error(future)), future.exception().reason) == (SendTimeoutError, None)


def test_a_reason_that_this_version_does_not_know_is_none_and_named_as_unspecified():
    with scene_of(send_timeout_ms=100) as scene:
        scene.producer.on_command(1, 0, 77, 101)
        error = scene.producer.send("a").exception()
        assert (error.reason, error.protocol_reason) == (None, Reason.Unspecified)
        assert "; reason: Unspecified; " in str(error)
        assert "pulsar.client.producer.throttled_times{reason=Unspecified,topic=t}" in scene.producer.metrics()


def test_a_message_that_failed_is_not_written_and_a_late_answer_changes_nothing():
    with scene_of(send_timeout_ms=100) as scene:
        written = scene.producer.send("a")
        scene.producer.on_command(1, 0, 0, 60)
        blocked = scene.producer.send("b")
        scene.producer.on_command(2, 0, 0, 200)
        scene.at(100)
        scene.library.ack("a")
        scene.at(200)

        assert type(scene.error(written)) is ProducerThrottledError
        assert type(scene.error(blocked)) is ProducerThrottledError
        assert [scene.error(future).may_be_stored for future in (written, blocked)] == [True, False]
        assert pickle.loads(pickle.dumps(scene.error(written))).may_be_stored
        assert scene.library.written == ["a"]


def test_a_refusal_carries_what_the_library_said():
    with scene_of() as scene:
        future = scene.producer.send("a")
        scene.library.nack("a", ValueError("too big"))

        assert type(scene.error(future)) is SendRejectedError
        assert isinstance(future.exception().__cause__, ValueError)
        assert str(future.exception()) == "t: refused by the library or the broker: too big"


def test_a_write_that_raises_is_a_refusal_and_the_next_message_is_written():
    def refuse(payload):
        if payload == "a":
            raise TypeError("no such option")

    library = ToldLibrary()
    library.on_write = refuse
    with scene_of(library) as scene:
        futures = [scene.producer.send(payload) for payload in "ab"]
        library.ack("b")

        assert type(scene.error(futures[0])) is SendRejectedError
        assert isinstance(futures[0].exception().__cause__, TypeError)
        assert futures[1].result(SOON_S) == "b stored"


def test_an_answer_within_the_write_is_taken():
    with scene_of(ToldLibrary(acknowledges=True)) as scene:
        assert scene.producer.send("a").result(SOON_S) == "a stored"
        assert scene.producer.flush(0)


def test_a_full_queue_refuses():
    with scene_of(max_pending=1) as scene:
        scene.producer.send("a")
        future = scene.producer.send("b")
        assert (future.done(), type(future.exception())) == (True, ProducerQueueFullError)
        assert scene.library.written == ["a"]


def test_what_timed_out_but_is_with_the_library_takes_room_until_it_is_done_with():
    with scene_of(max_pending=1, send_timeout_ms=100) as scene:
        timed_out = scene.producer.send("a")
        scene.at(100)
        assert isinstance(scene.error(timed_out), SendTimeoutError)
        assert isinstance(scene.error(scene.producer.send("b")), ProducerQueueFullError)
        scene.library.ack("a")
        assert not scene.producer.send("c").done()


def test_what_was_never_written_takes_no_room_once_it_has_failed():
    with scene_of(max_pending=1, send_timeout_ms=100) as scene:
        scene.producer.on_command(1, 0, 0, 90)
        failed = scene.producer.send("a")
        scene.clock.ms = 50
        scene.producer.on_command(2, 0, 0, 1000)
        scene.at(100)
        assert isinstance(scene.error(failed), ProducerThrottledError)
        scene.at(1050)
        assert not scene.producer.send("b").done()
        assert scene.library.written == ["b"]


def test_payloads_are_bounded_but_for_the_first():
    with scene_of(max_pending_bytes=10) as scene:
        assert not scene.producer.send("a" * 11).done()
        refused = scene.producer.send("b")
        assert isinstance(scene.error(refused), ProducerQueueFullError)
        scene.library.ack("a" * 11)
        assert [scene.producer.send(one).done() for one in ("c" * 5, "d" * 5, "e")] == [False, False, True]
        assert 2 == sum(
            count for name, count in scene.producer.metrics().items() if "ProducerQueueFullError" in name
        ), scene.producer.metrics()


def test_a_payload_counts_as_large_as_it_was():
    payload = bytearray(9)
    with scene_of(max_pending_bytes=10) as scene:
        scene.library.write = lambda _id, _payload, _options, completed: scene.receipts.append(completed)
        scene.producer.send(payload)
        payload.clear()
        scene.receipts.pop()("stored", None)
        with memoryview(b"a" * 9) as view:
            scene.producer.send(view)
        assert isinstance(scene.error(scene.producer.send("€")), ProducerQueueFullError)
        scene.receipts.pop()("stored", None)
        assert not scene.producer.send("€€€").done()


@pytest.mark.parametrize("most", [-1, "10MB", True])
def test_a_bound_that_is_none_is_refused(most):
    with pytest.raises(InvalidArgument, match="max_pending_bytes: got"), scene_of(max_pending_bytes=most):
        pass


def test_a_partition_in_trouble_takes_no_room_from_others():
    with scene_of(ToldLibrary(partitions=2), topic="t", partitions=2, max_pending=1, send_timeout_ms=100) as scene:
        for round_ in range(3):
            scene.producer.send(f"{round_}", partition=0)
            scene.at(100 * (round_ + 1))
        assert not scene.producer.send("x", partition=1).done()


def test_nobody_cancels_a_message():
    with scene_of() as scene:
        future = scene.producer.send("a")
        assert not future.cancel()
        scene.library.ack("a")
        assert future.result(SOON_S) == "a stored"


def test_a_receipt_that_cannot_be_sent_is_logged_and_the_window_holds(caplog):
    def fail(request_id):
        raise ConnectionError(request_id)

    with scene_of() as scene:
        scene.producer._receipts = fail
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        assert scene.library.written == []
    assert "t: the receipt of command 1 was not taken" in caplog.text


def test_metrics_are_those_of_the_machine_up_to_now():
    with scene_of(send_timeout_ms=100) as scene:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.on_command(2, 0, 0, 500)
        scene.producer.send("a")
        scene.clock.ms = 30

        cause = "reason=TOPIC_PUBLISH_RATE,topic=t}"
        assert scene.producer.metrics() == {
            f"headgate.client.producer.throttle.command.count{{outcome=applied,{cause}": 2,
            f"pulsar.client.producer.throttled_times{{{cause}": 550,
            f"headgate.client.producer.throttled.duration{{{cause}": 30,
            "headgate.client.producer.send.failed.count{error=ProducerThrottledError,topic=t}": 1,
        }


def test_after_a_new_connection_request_ids_start_anew_and_the_window_runs_out():
    with scene_of() as scene:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.on_connection()
        assert scene.producer.is_throttled()
        scene.producer.on_command(1, 0, 0, 90)
        scene.at(60)
        assert (scene.producer.is_throttled(), scene.receipts) == (True, [1, 1])


def test_settings_of_two_producers_are_refused():
    with pytest.raises(InvalidArgument, match="got 2, allowed is one"), scene_of(producers={0: "t", 1: "u"}):
        pass


def test_errors_survive_a_copy_to_another_process():
    with scene_of(send_timeout_ms=100) as scene:
        scene.producer.on_command(1, 0, 0, 101)
        error = scene.producer.send("a").exception()
        copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.remaining_ms) == (ProducerThrottledError, str(error), 101)
