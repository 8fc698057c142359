"""The machines behind one key as objects, those alone to which something happens."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import places
from headgate.core.kernels.protocol.types import NONE
from headgate.core.numbers import MAX
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.broker_step import step
from headgate.core.protocol.broker.checks import is_time
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import Close, CloseProducer, Connect, Input, Open, Receipt
from headgate.core.protocol.broker.outputs import Command, CommandKind, Output, Rejected
from headgate.core.protocol.settings import BrokerSettings
from headgate.protocol.numbering import Numbering
from headgate.protocol.plain import Writing, read
from headgate.protocol.silence import Silence
from headgate.protocol.state import SlotState


class Machine:
    """A connection by its name: its machine while it is open, the number of its last decision, and when it closed.

    Decisions are numbered from 1 on, and go on where a name connects again. A life that has been closed is over: what
    opens or closes a connection, or opens a producer, at or before `closed_ms` (NONE: no close is known) does nothing.
    `heard_ms`: the time of its last row while it is open. `metrics` are those since it was loaded.
    """

    __slots__ = ("_silence", "closed_ms", "connection", "heard_ms", "metrics", "numbering", "seq")

    def __init__(self, silence: Silence) -> None:
        self._silence = silence
        self.connection: Connection | None = None
        self.metrics = BrokerMetrics()
        self.numbering = Numbering()
        self.closed_ms = self.heard_ms = NONE
        self.seq = 0

    def feed(self, given: Input, settings: BrokerSettings) -> list[Output]:
        """What the input, and the timers before it, emit. A closed connection begins with new numbers."""
        if isinstance(given, Connect | Close) and self.is_over(given.at_ms):
            return []
        was_open = self.connection is not None
        self.connection, emitted = step(self.connection, given, settings, self.metrics)
        if self.connection is None:
            self.numbering = Numbering()
            self.heard_ms = NONE
            self.closed_ms = given.at_ms if was_open else self.closed_ms
        elif isinstance(given, CloseProducer) and not any(isinstance(output, Rejected) for output in emitted):
            self.numbering.forget(given.producer)
        return emitted

    def is_over(self, at_ms: Any) -> bool:
        """Whether a row of this time is of a life that has been closed: a copy, or one that comes too late."""
        closed_ms = self.closed_ms if self.connection else max(self.closed_ms, self._silence.horizon_ms)
        return is_time(at_ms) and at_ms <= closed_ms

    def begin_anew(self, at_ms: Any) -> None:
        """After too long a silence there is no connection: neither what it decided nor its close is known any more."""
        last_ms = self.closed_ms if self.connection is None else self.heard_ms
        if not self._silence.is_over(last_ms, at_ms if is_time(at_ms) else NONE):
            return
        if self.connection is None or (self._silence.ends_open and self.connection.is_free):
            self.connection, self.numbering = None, Numbering()
            self.seq, self.closed_ms, self.heard_ms = 0, NONE, NONE

    def hear(self, at_ms: Any) -> None:
        """A row of this time was taken."""
        if self.connection is not None and is_time(at_ms):
            self.heard_ms = max(self.heard_ms, at_ms)

    def advance(self, at_ms: int) -> list[Output]:
        """What is emitted up to the end of millisecond `at_ms`."""
        return [] if self.connection is None else self.connection.advance(at_ms)

    @property
    def due_ms(self) -> int:
        """When it acts next by itself; numbers.MAX: never."""
        due_ms = None if self.connection is None else self.connection.next_due_ms()
        return MAX if due_ms is None else due_ms

    @property
    def now_ms(self) -> int:
        """Its clock; 0 while it is closed."""
        return 0 if self.connection is None else self.connection.now_ms


class Machines:
    """A view of a SlotState for what happens in one step; `store` puts back what was changed."""

    def __init__(self, state: SlotState, silence: Silence) -> None:
        self._state = state
        self._silence = silence
        self._loaded: dict[str, Machine] = {}

    def load(self, names: list[str]) -> Iterator[tuple[str, Machine]]:
        """The machines of these connections, new ones where there are none."""
        found = places(self._state.connection, pa.array(names, pa.string())).tolist()
        for name, place in zip(names, found, strict=True):
            if name not in self._loaded:
                self._loaded[name] = Machine(self._silence) if place < 0 else self._read(place)
            yield name, self._loaded[name]

    def due(self, until_ms: int) -> list[str]:
        """The connections that act by themselves by then, and are not loaded."""
        rows = np.flatnonzero(self._state.due_ms <= until_ms)
        return [name for name in self._state.connection.take(pa.array(rows)).to_pylist() if name not in self._loaded]

    def _read(self, place: int) -> Machine:
        machine = Machine(self._silence)
        (machine.seq, machine.closed_ms, machine.heard_ms), numbering, connection = read(self._state, place)
        machine.numbering = Numbering.from_state(numbering)
        if connection is not None:
            machine.connection = Connection.from_state(connection, machine.metrics)
        return machine

    def store(self) -> None:
        """Put what was loaded into the state. A closed connection leaves the number of its last decision, if there is
        one, and when it closed.
        """
        found = places(self._state.connection, pa.array(list(self._loaded), pa.string()))
        writing = Writing(self._state, found[found >= 0])
        for name, machine in self._loaded.items():
            connection = None if machine.connection is None else machine.connection.state()
            if connection is not None or machine.seq:
                numbers = {"seq": machine.seq, "closed_ms": machine.closed_ms, "heard_ms": machine.heard_ms}
                numbers["due_ms"] = machine.due_ms
                writing.add(name, machine.numbering.state(), connection, **numbers)
        writing.finish()


def answers(emitted: list[Output]) -> list[Input]:
    """What an obedient client does: a receipt for each command that asks it to stop, in the same millisecond."""
    return [
        Receipt(output.at_ms, output.request_id)
        for output in emitted
        if isinstance(output, Command) and output.kind is not CommandKind.NOTICE
    ]


def opening(row: Any, machine: Machine) -> Iterator[Input]:
    """What makes a producer of `marks` known where nobody says what producers there are."""
    if row["producer"] is not None and machine.numbering.id_of(row["topic"], row["producer"]) is None:
        yield Open(row["at_ms"], machine.numbering.add(row["topic"], row["producer"]), row["topic"])
