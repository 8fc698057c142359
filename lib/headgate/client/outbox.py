"""What is to be carried out, in order, by one thread at a time and under no lock of the machine."""

import logging
import threading
from collections import deque
from collections.abc import Callable

from headgate.client.threads import join, started
from headgate.core.protocol.client.client_outputs import Receipt, Write

LOG = logging.getLogger(__name__)
Outgoing = Write | Receipt


class Outbox:
    """All that is put is carried out once, never two at a time: receipts before writes, and of a kind and producer in
    the order of `put`.

    A write that `carry` says has to wait stays, and with it those of its producer behind it, until `resume`. No call
    takes longer the more writes wait.

    Whoever puts something then calls one of `carry_out` and `leave`. To carry out may block, as long as the library
    has no room; so threads that make room, or that let time pass, leave it to a thread of the outbox's own.
    """

    def __init__(self, carry: Callable[[Outgoing], bool]) -> None:
        """carry: carries something out, or tells by False that it has to wait, which no receipt does."""
        self._carry = carry
        self._receipts: deque[Receipt] = deque()
        self._writes: dict[int, deque[Write]] = {}
        self._ready: deque[int] = deque()
        """Producers whose next write is to be tried; several times for one does no harm."""
        self._waiting: set[int] = set()
        self._is_resumed = False
        self._turn = threading.Lock()
        self._carrier: int | None = None
        self._left = threading.Semaphore(0)
        self._is_stopped = False
        self._thread = started("writer", self._run)

    def put(self, outgoing: Outgoing) -> None:
        """Put something behind all of its kind that was put before."""
        if isinstance(outgoing, Receipt):
            self._receipts.append(outgoing)
        else:
            self._writes.setdefault(outgoing.producer_id, deque()).append(outgoing)
            self._ready.append(outgoing.producer_id)

    def resume(self) -> None:
        """What waits may be carried out again: try it, soon; never blocks."""
        if self._waiting or self._carrier is not None:
            self._is_resumed = True
        self.leave()

    def carry_out(self, *, wait: bool = True) -> None:
        """Carry out what waits, also what others have put.

        wait: whether to wait for a thread that is at it, and for the library's room; else receipts alone are carried
        out here, or by a thread that is at it, as soon as its write is through, and the rest is left. A call from
        within the carrying leaves it to that, too. What `carry` raises is raised here, and the rest is left.
        """
        if self._carrier == threading.get_ident():
            return
        # Asked again after each turn: one who found the turn taken has gone away, and left here what he put.
        while (self._has_work() if wait else self._receipts) and self._turn.acquire(blocking=wait):
            try:
                self._carrier = threading.get_ident()
                if wait:
                    self._carry_all()
                else:
                    self._carry_receipts()
            except BaseException:
                self.leave()
                raise
            finally:
                self._carrier = None
                self._turn.release()
        if not wait:
            self.leave()

    def leave(self) -> None:
        """Have what waits, if anything, carried out soon; never blocks."""
        if self._has_work():
            self._left.release()

    def stop(self, timeout_s: float) -> None:
        """Carry out what waits, then end the outbox's own thread."""
        self._is_stopped = True
        self._left.release()
        join(self._thread, timeout_s)

    def _has_work(self) -> bool:
        return bool(self._receipts or self._ready or self._is_resumed)

    def _carry_all(self) -> None:
        while self._has_work():
            if self._is_resumed:
                self._is_resumed = False
                self._ready.extend(self._waiting)
                self._waiting.clear()
            elif self._receipts:
                self._carry(self._receipts.popleft())
            else:
                self._carry_write(self._ready.popleft())

    def _carry_receipts(self) -> None:
        while self._receipts:
            self._carry(self._receipts.popleft())

    def _carry_write(self, producer_id: int) -> None:
        writes = self._writes[producer_id]
        if not writes or producer_id in self._waiting:
            return
        write = writes.popleft()
        if writes:
            self._ready.append(producer_id)
        if not self._carry(write):
            writes.appendleft(write)
            self._waiting.add(producer_id)

    def _run(self) -> None:
        while not self._is_stopped:
            self._left.acquire()
            while self._has_work():
                self._carry_out_unless_it_raises()

    def _carry_out_unless_it_raises(self) -> None:
        try:
            self.carry_out()
        except BaseException:  # a library's sys.exit() would end all writes to come
            LOG.exception("a write or a receipt failed")
