"""What is put into an outbox is carried out once, in order, by one thread at a time."""

import threading

import pytest

from headgate.client.outbox import Outbox
from headgate.core.protocol.client.client_outputs import Receipt, Write
from unit.client.doubles import SOON_S, Gate, elsewhere

A1, A2, B1 = Write(0, 1, 1), Write(0, 1, 2), Write(0, 2, 1)
ONE, TWO, THREE = (Receipt(0, number) for number in (1, 2, 3))


class Carried(list):
    """What was carried out; the first of them at a gate, if there is one."""

    def __init__(self, gate=None):
        super().__init__()
        self.gate = gate

    def carry(self, outgoing):
        if self.gate is not None and not self:
            self.append(outgoing)
            self.gate.stay()
        else:
            self.append(outgoing)


@pytest.fixture
def call():
    with elsewhere() as call:
        yield call


def test_who_must_not_wait_carries_receipts_alone_and_leaves_writes_to_the_outboxs_own_thread():
    carried, is_written = [], threading.Event()

    def carry(outgoing):
        carried.append((outgoing, threading.current_thread().name))
        if outgoing == A1:
            is_written.set()

    outbox = Outbox(carry)
    outbox.put(A1)
    outbox.put(ONE)
    outbox.carry_out(wait=False)
    assert is_written.wait(SOON_S)
    outbox.stop(SOON_S)
    assert carried == [(ONE, threading.current_thread().name), (A1, "headgate-client-writer")]


def test_who_carries_out_carries_what_others_put():
    carried = Carried()
    outbox = Outbox(carried.carry)
    for outgoing in (ONE, TWO):
        outbox.put(outgoing)
    outbox.carry_out()
    outbox.stop(SOON_S)
    assert carried == [ONE, TWO]


def test_one_thread_carries_at_a_time_and_takes_what_comes_meanwhile(call):
    carried = Carried(Gate())
    outbox = Outbox(carried.carry)
    outbox.put(ONE)
    first = call(outbox.carry_out)
    carried.gate.wait_reached()
    outbox.put(TWO)
    outbox.carry_out(wait=False)
    outbox.put(THREE)
    outbox.leave()
    assert carried == [ONE]

    carried.gate.let_go()
    first.result(SOON_S)
    outbox.stop(SOON_S)
    assert carried == [ONE, TWO, THREE]


def test_what_is_put_at_the_end_of_a_turn_is_not_left_behind(call):
    """Who finds the turn taken goes away, though nobody looks into the outbox any more."""

    class Turn:
        def __init__(self):
            self.lock = threading.Lock()
            self.acquire = self.lock.acquire

        def release(self):
            if carried == [ONE]:
                outbox.put(TWO)
                call(outbox.carry_out, wait=False).result(SOON_S)
            self.lock.release()

    carried = Carried()
    outbox = Outbox(carried.carry)
    outbox._turn = Turn()
    outbox.put(ONE)
    outbox.carry_out()
    assert carried == [ONE, TWO]
    outbox.stop(SOON_S)


def test_what_is_left_is_carried_by_the_outboxs_own_thread_also_at_its_end():
    names = []
    outbox = Outbox(lambda _: names.append(threading.current_thread().name) is None)
    outbox.put(ONE)
    outbox.leave()
    outbox.put(TWO)
    outbox.stop(SOON_S)
    assert names == ["headgate-client-writer"] * 2


def test_an_interrupt_ends_the_turn_and_leaves_the_rest():
    def interrupt(outgoing):
        carried.append(outgoing)
        if outgoing == ONE:
            raise KeyboardInterrupt

    carried = []
    outbox = Outbox(interrupt)
    outbox.put(ONE)
    outbox.put(TWO)
    with pytest.raises(KeyboardInterrupt):
        outbox.carry_out()
    outbox.stop(SOON_S)
    assert carried == [ONE, TWO]


def test_after_an_interrupt_of_a_sender_the_outboxs_own_thread_carries_the_rest():
    def interrupt(outgoing):
        if outgoing == ONE:
            raise KeyboardInterrupt
        is_carried.set()

    is_carried = threading.Event()
    outbox = Outbox(interrupt)
    outbox.put(ONE)
    outbox.put(TWO)
    with pytest.raises(KeyboardInterrupt):
        outbox.carry_out()
    assert is_carried.wait(SOON_S)
    outbox.stop(SOON_S)


def test_an_exit_in_the_outboxs_own_thread_is_logged_and_ends_neither_the_thread_nor_the_rest(caplog):
    def leave_the_program(outgoing):
        carried.append(outgoing)
        if outgoing == TWO:
            is_carried.set()
        else:
            raise SystemExit

    carried, is_carried = [], threading.Event()
    outbox = Outbox(leave_the_program)
    outbox.put(ONE)
    outbox.put(TWO)
    outbox.leave()
    assert is_carried.wait(SOON_S)

    outbox.put(THREE)
    outbox.stop(SOON_S)
    assert carried == [ONE, TWO, THREE]
    assert caplog.messages == ["a write or a receipt failed"] * 2


def test_receipts_overtake_writes_and_a_write_that_waits_keeps_those_of_its_producer_behind_it():
    waits = {A1}
    carried = []
    outbox = Outbox(lambda one: one not in waits and carried.append(one) is None)
    for one in (A1, A2, B1, ONE):
        outbox.put(one)
    outbox.carry_out()
    assert carried == [ONE, B1]

    outbox.resume()
    outbox.carry_out()
    assert carried == [ONE, B1]
    waits.clear()
    outbox.resume()
    outbox.stop(SOON_S)
    assert carried == [ONE, B1, A1, A2]


def test_a_write_is_tried_again_that_was_resumed_before_the_outbox_knew_that_it_has_to_wait():
    """Its window may end, and the timer say so, between the look at the window and the answer."""
    tries = []

    def carry(outgoing):
        tries.append(outgoing)
        if len(tries) == 1:
            outbox.resume()
            return False
        return True

    outbox = Outbox(carry)
    outbox.put(A1)
    outbox.carry_out()
    outbox.stop(SOON_S)
    assert tries == [A1, A1]
