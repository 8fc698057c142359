"""What the clients of a connection were told and have to answer (throttle-protocol 7.4, 7.5)."""

from collections.abc import Iterable

from headgate.core.protocol.broker.gate import Gate
from headgate.core.protocol.broker.outbox import Outbox
from headgate.core.protocol.broker.outputs import CommandKind
from headgate.core.protocol.broker.pause import Pause
from headgate.core.protocol.broker.producer import Phase, Producer, Window
from headgate.core.protocol.broker.timers import Deadlines, WindowEnds


class Announcements:
    """Each open id has a deadline, each window an end; they go with the phase of their producer.

    Ends and deadlines are exact sums: one above 2^63-1 never comes, as no operation has such a time.
    Arguments: `wait_ms`, how long a receipt may take, >= 1 where commands are sent; `producers`, some of which may
    have been told something before.
    """

    __slots__ = ("_deadlines", "_ends", "_gate", "_outbox", "_wait_ms", "_windows", "open_ids")

    def __init__(self, wait_ms: int, gate: Gate, outbox: Outbox, producers: Iterable[Producer]) -> None:
        self._wait_ms = wait_ms
        self._gate = gate
        self._outbox = outbox
        self.open_ids: dict[int, Producer] = {}
        self._windows: dict[int, Producer] = {}
        self._deadlines = Deadlines(self.open_ids)
        self._ends = WindowEnds(self._windows)
        for producer in producers:
            self._watch_again(producer)

    def send(self, kind: CommandKind, producer: Producer, pause: Pause, now_ms: int) -> None:
        """Tell a producer to stop; it has `wait_ms` of reading to answer."""
        request_id = self._outbox.command(now_ms, kind, producer, pause)
        window = Window(now_ms + pause.pause_ms, pause.reason)
        producer.tell(request_id, self._gate.reading_ms(now_ms) + self._wait_ms, window)
        self._watch_id(producer, request_id)
        self._watch_end(producer, window)

    def answer(self, request_id: int) -> None:
        """The receipt of an open id was read."""
        self.open_ids.pop(request_id).answer(request_id)

    def settle(self, producer: Producer, phase: Phase) -> None:
        """What the producer was told is void."""
        for request_id in producer.open_ids:
            del self.open_ids[request_id]
        self._windows.pop(producer.id, None)
        producer.settle(phase)

    def deadline(self) -> tuple[int, Producer] | None:
        """When the earliest open id has to be answered, and by whom; None while deadlines are frozen."""
        first = self._deadlines.first()
        due_ms = None if first is None else self._gate.due_ms(first[0])
        return None if first is None or due_ms is None else (due_ms, first[1])

    def end(self) -> tuple[int, Producer] | None:
        """The earliest end of a window, and whose."""
        return self._ends.first()

    def _watch_again(self, producer: Producer) -> None:
        for request_id in producer.open_ids:
            self._watch_id(producer, request_id)
        if producer.window is not None:
            self._watch_end(producer, producer.window)

    def _watch_id(self, producer: Producer, request_id: int) -> None:
        self.open_ids[request_id] = producer
        self._deadlines.add(producer.open_ids[request_id], producer.id, request_id)

    def _watch_end(self, producer: Producer, window: Window) -> None:
        self._windows[producer.id] = producer
        self._ends.add(window.end_ms, producer.id)
