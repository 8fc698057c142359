"""What is to be carried out, in order, by one thread at a time and under no lock of the machine."""

import threading
from collections import deque
from collections.abc import Callable

from headgate.client.threads import join, started
from headgate.core.protocol.client_outputs import Receipt, Write

Outgoing = Write | Receipt


class Outbox:
    """All that is put is carried out once, in the order of `put`, never two at a time.

    Whoever puts something then calls one of `carry_out` and `leave`. To carry out may block, as long as the library
    has no room; so threads that make room, or that let time pass, leave it to a thread of the outbox's own.
    """

    def __init__(self, carry: Callable[[Outgoing], object]) -> None:
        self._carry = carry
        self._waiting: deque[Outgoing] = deque()
        self._turn = threading.Lock()
        self._carrier: int | None = None
        self._left = threading.Semaphore(0)
        self._is_stopped = False
        self._thread = started("writer", self._run)

    def put(self, outgoing: Outgoing) -> None:
        """Put something behind all that was put before."""
        self._waiting.append(outgoing)

    def carry_out(self, *, wait: bool = True) -> None:
        """Carry out what waits, also what others have put.

        wait: whether to wait for a thread that is at it, else that does it all. A call from within the carrying leaves
        it to that, too.
        """
        if self._carrier == threading.get_ident():
            return
        # Asked again after each turn: one who found the turn taken has gone away, and left here what he put.
        while self._waiting and self._turn.acquire(blocking=wait):
            try:
                self._carrier = threading.get_ident()
                self._carry_all()
            finally:
                self._carrier = None
                self._turn.release()

    def leave(self) -> None:
        """Have what waits, if anything, carried out soon; never blocks."""
        if self._waiting:
            self._left.release()

    def stop(self, timeout_s: float) -> None:
        """Carry out what waits, then end the outbox's own thread."""
        self._is_stopped = True
        self._left.release()
        join(self._thread, timeout_s)

    def _carry_all(self) -> None:
        while self._waiting:
            self._carry(self._waiting.popleft())

    def _run(self) -> None:
        while not self._is_stopped:
            self._left.acquire()
            self.carry_out()
