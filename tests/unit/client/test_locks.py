"""Under the producer's lock runs neither the application nor the library, and neither can hold up the other."""

import threading

import pytest

from headgate.client import SendTimeoutError
from unit.client.doubles import SOON_S, Gate, ToldLibrary, elsewhere, scene_of


@pytest.fixture
def call():
    with elsewhere() as call:
        yield call


def test_callbacks_run_in_a_thread_of_their_own_not_in_send(call):
    """A sender may hold a lock that a callback wants."""
    with scene_of(ToldLibrary(acknowledges=True)) as scene:
        lock, names = threading.Lock(), []

        def callback(_):
            with lock:
                names.append(threading.current_thread().name)

        with lock:
            for number in range(10):
                scene.producer.send(number).add_done_callback(callback)
        scene.producer.close()
        assert names == ["headgate-client-callbacks"] * 10


def test_a_callback_that_does_not_return_holds_up_no_write_no_receipt_and_no_library(call):
    gate = Gate()
    with scene_of(ToldLibrary(acknowledges=True)) as scene:
        scene.producer.send("a").add_done_callback(lambda _: gate.stay())
        gate.wait_reached()
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("b")
        scene.at(50)
        assert (scene.library.written, scene.receipts) == (["a", "b"], [1])
        gate.let_go()


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_callback_that_raises_leaves_others_alone(error):
    def fail(_):
        raise error

    with scene_of() as scene:
        scene.producer.send("a").add_done_callback(fail)
        future = scene.producer.send("b")
        scene.library.ack("a", "b")
        assert future.result(SOON_S) == "b stored"


def test_a_callback_may_send_and_wait_for_the_write():
    with scene_of() as scene:
        sent = threading.Event()
        scene.producer.send("a").add_done_callback(lambda _: (scene.producer.send("b"), sent.set()))
        scene.library.ack("a")
        assert sent.wait(SOON_S)
        assert scene.library.written == ["a", "b"]


def test_a_library_that_has_no_room_holds_up_neither_commands_nor_timeouts(call):
    """What is due fails in time though a write hangs; who answers for the library is not held up, either."""
    gate = Gate()
    library = ToldLibrary()
    library.on_write = lambda payload: gate.stay() if payload == "b" else None
    with scene_of(library, send_timeout_ms=100) as scene:
        first = scene.producer.send("a")
        sending = call(scene.producer.send, "b")
        gate.wait_reached()
        scene.producer.on_command(1, 0, 0, 10)
        library.ack("a")
        assert first.result(SOON_S) == "a stored"
        assert scene.producer.is_throttled()

        scene.clock.ms = 100
        scene.producer.advance()
        gate.let_go()
        assert type(sending.result(SOON_S).exception(SOON_S)) is SendTimeoutError


def test_a_receipt_follows_the_writes_that_were_decided_before_its_window(call):
    gate = Gate()
    library = ToldLibrary()
    library.on_write = lambda _payload: gate.stay()
    with scene_of(library) as scene:
        sending = call(scene.producer.send, "a")
        gate.wait_reached()
        scene.producer.on_command(1, 0, 0, 50)
        waiting = call(scene.producer.send, "b")
        waiting.result(SOON_S)
        assert scene.receipts == []

        gate.let_go()
        sending.result(SOON_S)
        assert (library.written, scene.receipts) == (["a"], [1])


def test_a_message_that_fails_before_its_turn_is_not_written(call):
    gate = Gate()
    library = ToldLibrary()
    library.on_write = lambda _payload: gate.stay()
    with scene_of(library, send_timeout_ms=100) as scene:
        first = call(scene.producer.send, "a")
        gate.wait_reached()
        second = call(scene.producer.send, "b")
        while scene.producer._pending.get(2) is None:
            pass
        scene.clock.ms = 100
        scene.producer.advance()
        gate.let_go()

        assert [type(call.result(SOON_S).exception(SOON_S)) for call in (first, second)] == [SendTimeoutError] * 2
        assert library.written == ["a"]


def test_a_receipt_may_be_answered_with_a_send_and_a_write_with_a_command():
    library = ToldLibrary()
    with scene_of(library) as scene:
        scene.producer._receipts = lambda request_id: (scene.receipts.append(request_id), scene.producer.send("b"))
        library.on_write = lambda payload: scene.producer.on_command(1, 0, 0, 50) if payload == "a" else None
        scene.producer.send("a")
        assert (library.written, scene.receipts) == (["a"], [1])
        scene.at(50)
        assert library.written == ["a", "b"]


def test_a_receipt_may_be_answered_with_a_send_that_is_written():
    """As a notice does not keep it back."""
    with scene_of() as scene:
        scene.producer._receipts = lambda _: scene.producer.send("a")
        is_written = threading.Event()
        scene.library.on_write = lambda _: is_written.set()
        scene.producer.on_command(1, 0, 2, 0)
        assert is_written.wait(SOON_S)
        assert scene.library.written == ["a"]


def test_what_an_answer_of_the_library_lets_out_is_written_by_another_thread(call):
    """The library's own thread may be the one that makes room."""
    names = []
    with scene_of() as scene:
        scene.producer.send("a")
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("b")
        written = threading.Event()
        scene.library.on_write = lambda _: (names.append(threading.current_thread().name), written.set())
        scene.clock.ms = 60
        scene.library.ack("a")
        assert written.wait(SOON_S)
        assert names == ["headgate-client-writer"]
