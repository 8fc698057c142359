"""The end of a producer: nothing is lost, and every future ends."""

import threading
from contextlib import suppress

import pytest

from headgate.client import ProducerClosedError, SendTimeoutError, Unsent
from unit.client.doubles import SOON_S, Gate, ToldLibrary, elsewhere, scene_of


def test_close_waits_for_what_is_pending_and_for_the_callbacks():
    with scene_of() as scene, elsewhere() as call:
        gate, ended = Gate(), []
        scene.producer.on_command(1, 0, 0, 50)
        future = scene.producer.send("a")
        future.add_done_callback(lambda done: (gate.stay(), ended.append(done.result())))
        closing = call(scene.producer.close, SOON_S)
        scene.at(50)
        scene.library.ack("a")
        gate.wait_reached()
        assert not closing.done()

        gate.let_go()
        closing.result(SOON_S)
        assert ended == ["a stored"]
        assert scene.library.calls == ["flush", "close"]


def test_close_fails_what_is_not_acknowledged_in_time_and_nothing_of_it_is_written_later(caplog):
    with scene_of() as scene:
        written = scene.producer.send("a")
        scene.producer.on_command(1, 0, 0, 50)
        blocked = scene.producer.send("b")
        unsent = scene.producer.close(0)
        scene.at(100)

        assert [type(future.exception(0)) for future in (written, blocked)] == [ProducerClosedError] * 2
        assert str(blocked.exception()).startswith("t: the producer is closed")
        assert [future.exception(0).may_be_stored for future in (written, blocked)] == [True, False]
        assert (scene.library.written, scene.library.calls) == (["a"], ["close"])
        assert unsent == Unsent(not_written=1, not_acknowledged=1)
        text = "t: closed; 1 messages were not written, 1 were written but not acknowledged and may be stored"
        assert [record.getMessage() for record in caplog.records] == [text]


def test_what_ends_before_close_and_what_is_acknowledged_in_it_is_not_counted_and_what_times_out_in_it_is(caplog):
    with scene_of(send_timeout_ms=100) as scene, elsewhere() as call:
        before = scene.producer.send("a")
        scene.at(100)
        assert type(scene.error(before)) is SendTimeoutError
        scene.producer.send("b")
        scene.producer.send("c")
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("d")
        scene.producer.on_command(2, 0, 0, 500)
        closing = call(scene.producer.close, SOON_S)
        while not scene.producer._is_closed:
            pass
        scene.library.ack("b")
        scene.at(200)
        assert closing.result(SOON_S) == Unsent(not_written=1, not_acknowledged=1)


def test_a_close_that_loses_nothing_says_nothing(caplog):
    with scene_of(ToldLibrary(acknowledges=True)) as scene:
        scene.producer.send("a")
        assert scene.producer.close() == Unsent(0, 0)
        assert not Unsent(0, 0)
        assert Unsent(1, 0)
        assert Unsent(0, 1)
    assert not caplog.records


def test_a_write_that_hangs_counts_as_written():
    gate = Gate()
    library = ToldLibrary()
    library.on_write = lambda _: gate.stay()
    library.close = lambda _: gate.let_go()
    with scene_of(library) as scene, elsewhere() as call:
        call(scene.producer.send, "a")
        gate.wait_reached()
        assert scene.producer.close(0) == Unsent(not_written=0, not_acknowledged=1)


def test_an_exception_in_the_body_of_with_waits_for_no_message():
    with scene_of() as scene, suppress(ZeroDivisionError), scene.producer:
        scene.library.flush = lambda _: scene.library.ack("a")
        future = scene.producer.send("a")
        raise ZeroDivisionError
    assert type(future.exception(0)) is ProducerClosedError
    assert scene.library.calls == ["close"]


def test_a_body_of_with_that_ends_waits_for_its_messages():
    with scene_of() as scene, scene.producer:
        future = scene.producer.send("a")
        scene.library.flush = lambda _: scene.library.ack("a")
    assert future.result(0) == "a stored"


def test_sends_after_the_beginning_of_close_fail_at_once_and_are_counted():
    with scene_of() as scene, elsewhere() as call:
        scene.producer.send("a")
        closing = call(scene.producer.close, SOON_S)
        assert scene.library.is_flushed.wait(SOON_S)
        during = scene.producer.send("b")
        assert during.done()
        scene.library.ack("a")
        closing.result(SOON_S)
        after = scene.producer.send("c")

        assert [type(future.exception(0)) for future in (during, after)] == [ProducerClosedError] * 2
        assert scene.library.written == ["a"]
        key = "headgate.client.producer.send.failed.count{error=ProducerClosedError,topic=t}"
        assert scene.producer.metrics() == {key: 2}


def test_closing_twice_is_closing_once():
    with scene_of() as scene:
        scene.producer.send("a")
        scene.producer.close(0)
        assert scene.producer.close() == Unsent(0, 0)
        assert scene.library.calls == ["close"]


def test_a_callback_may_close_the_producer():
    with scene_of() as scene:
        closed = threading.Event()
        future = scene.producer.send("a")
        future.add_done_callback(lambda _: (scene.producer.close(SOON_S), closed.set()))
        scene.library.ack("a")
        assert closed.wait(SOON_S)


def test_close_ends_a_write_that_waits_for_room():
    gate = Gate()
    library = ToldLibrary()
    library.on_write = lambda _: gate.stay()
    library.close = lambda _: gate.let_go()
    with scene_of(library) as scene, elsewhere() as call:
        sending = call(scene.producer.send, "a")
        gate.wait_reached()
        scene.producer.close(0)
        assert type(sending.result(SOON_S).exception(SOON_S)) is ProducerClosedError


def test_the_threads_end_though_the_library_does_not_close_well():
    library = ToldLibrary()
    library.close = lambda _: 1 / 0
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), scene_of(library):
        assert threading.active_count() == before + 3
    assert threading.active_count() == before


def test_flush_says_whether_all_is_done():
    with scene_of() as scene:
        scene.producer.send("a")
        assert not scene.producer.flush(0)
        scene.library.ack("a")
        assert scene.producer.flush(0)


def test_without_time_nothing_is_flushed():
    with scene_of() as scene:
        scene.producer.send("a")
        scene.producer.close(0)
        assert scene.library.calls == ["close"]


def test_what_a_window_held_back_is_flushed_when_it_is_written():
    with scene_of() as scene, elsewhere() as call:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        flushing = call(scene.producer.flush, SOON_S)
        scene.at(50)
        assert scene.library.is_flushed.wait(SOON_S / 2)
        scene.library.ack("a")
        assert flushing.result(SOON_S)


def test_what_a_window_held_back_until_it_failed_does_not_hold_up_a_flush():
    with scene_of(send_timeout_ms=100) as scene, elsewhere() as call:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        scene.producer.on_command(2, 0, 0, 150)
        scene.at(150)
        scene.producer.send("b")
        flushing = call(scene.producer.flush, SOON_S)
        assert scene.library.is_flushed.wait(SOON_S / 2)
        scene.library.ack("b")
        assert flushing.result(SOON_S)


def test_a_message_in_a_window_is_not_flushed_but_waited_for():
    with scene_of() as scene:
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        assert not scene.producer.flush(0)
        assert scene.library.calls == []
