"""Commands as the broker's machine of each connection decides them, while limiters say what happens."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import REJECTED, BrokerMetrics
from headgate.core.protocol.broker.checks import error_in_release
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import Input, Trip
from headgate.core.protocol.broker.outputs import BadInput, Command, Output, ReadsPaused, ReadsResumed, Rejected
from headgate.core.protocol.settings import BrokerSettings
from headgate.core.state import PlainData
from headgate.gate.events import Event, Heard, Joined, Left, Paused
from headgate.gate.feed import GateClock, Link, NameTaken, Seat, Timer
from headgate.gate.producers import ProducerName, Producers
from headgate.wire import ThrottleProducer

Making = Callable[[int], Input]
"""An input, made of the time at which it acts."""


MAX_PRODUCERS = 10_000
TOO_MANY_PRODUCERS = "too_many_producers"


class MachineFeed:
    """What machines emit is done at once: commands go to the client, and its reads go off and on.

    Everything acts at the gate's clock, and timers fire once their millisecond is over. All methods are to be called
    from the gate's event loop.

    Arguments: `max_producers`, that are open on a connection at once.
    Attributes: `metrics`, of all connections.
    Source: PIP-385, throttle-protocol 7
    """

    def __init__(
        self,
        settings: BrokerSettings,
        clock: GateClock,
        metrics: BrokerMetrics,
        *,
        max_producers: int = MAX_PRODUCERS,
    ) -> None:
        self._max_producers = max_producers
        self.metrics = metrics
        self._settings = settings
        self._clock = clock
        self._heard: list[Heard] = []
        self._seats: dict[str, _MachineSeat] = {}

    def join(self, connection: str, link: Link, *, supports: bool) -> Seat:
        """Open a machine. Raises NameTaken."""
        if connection in self._seats:
            raise NameTaken
        machine = Connection(self._settings, self.metrics, supports=supports, at_ms=self._clock.now_ms())
        seat = _MachineSeat(
            machine, link, self._clock, partial(self._emit, connection), partial(self._gone, connection)
        )
        self._seats[connection] = seat
        seat.join(supports=supports)
        return seat

    async def run(self) -> None:
        """Nothing but to be there: limiters and sockets drive the machines."""
        await asyncio.Event().wait()

    def tell(self, connection: str, make: Making) -> BadInput | None:
        """An input to a connection, now; why it was refused, None where it was not."""
        seat = self._seats.get(connection)
        return self._refuse(BadInput.UNKNOWN_CONNECTION) if seat is None else seat.tell(make)

    def listen(self, heard: Heard) -> None:
        """Tell `heard` of all events from now on, once each. `standing` has what still holds of those before."""
        self.unlisten(heard)
        self._heard.append(heard)

    def unlisten(self, heard: Heard) -> None:
        """Tell it nothing more."""
        self._heard = [one for one in self._heard if one != heard]

    def standing(self, connection: str) -> list[Event]:
        """The events that still hold: it has joined, and its reads are off. None where there is no such connection."""
        seat = self._seats.get(connection)
        return [] if seat is None else seat.standing()

    def open(self, connection: str, producer: int, topic: str, name: str = "") -> str | None:
        """A producer opened: its id, and its name on its topic. Why it was refused, None where it was not."""
        seat = self._seats.get(connection)
        if seat is None:
            return self._refuse(BadInput.UNKNOWN_CONNECTION)
        if not seat.producers.allows(producer, ProducerName(topic, name)):
            return self._refuse(BadInput.DUPLICATE_PRODUCER)
        if seat.producers.id_of(ProducerName(topic, name)) is None and len(seat.producers) >= self._max_producers:
            self.metrics.add(REJECTED, (("error", TOO_MANY_PRODUCERS),))
            return f"{TOO_MANY_PRODUCERS}: {self._max_producers} of a connection may be open at once; close others"
        refused = seat.tell(lambda at_ms: inputs.Open(at_ms, producer, topic))
        if refused is None:
            seat.producers.add(producer, ProducerName(topic, name))
        return refused

    def producers(self, connection: str) -> Producers:
        """Names and ids of the producers that are open, none where there is no such connection."""
        seat = self._seats.get(connection)
        return Producers() if seat is None else seat.producers

    def mark(self, connection: str, producer: int, trips: Sequence[Trip]) -> BadInput | None:
        """A publish of the producer tripped limiters."""
        return self.tell(connection, lambda at_ms: inputs.Mark(at_ms, producer, trips))

    def unmark(self, connection: str, producer: int, reason: int, ordinal: int) -> BadInput | None:
        """A limiter released the producer from its marks up to `ordinal`."""
        return self.tell(connection, lambda at_ms: inputs.Unmark(at_ms, producer, reason, ordinal))

    def unmark_all(self, connection: str, reason: int, ordinal: int) -> BadInput | None:
        """As `unmark`, for each producer that is open, also those that nothing holds."""
        if connection not in self._seats:
            return self._refuse(BadInput.UNKNOWN_CONNECTION)
        error = error_in_release(reason, ordinal)
        if error is not None:
            return self._refuse(error)
        for producer in self.producers(connection).ids():
            self.unmark(connection, producer, reason, ordinal)
        return None

    def refuse_producer(self, connection: str) -> BadInput:
        """Why an input is refused that names a producer which is not open."""
        return self._refuse(BadInput.UNKNOWN_PRODUCER if connection in self._seats else BadInput.UNKNOWN_CONNECTION)

    def view(self, connection: str) -> PlainData | None:
        """Reads, holds and producers of a connection now, None where it is not there. throttle-protocol 19, probe"""
        if self.tell(connection, inputs.Probe) is not None:
            return None
        return self._seats[connection].view()

    def names(self) -> list[str]:
        """The connections that are there, in the order of their names."""
        return sorted(self._seats)

    def _refuse(self, error: BadInput) -> BadInput:
        self.metrics.rejected(error)
        return error

    def _emit(self, connection: str, event: Event) -> None:
        for heard in self._heard:
            heard(connection, event)

    def _gone(self, connection: str) -> None:
        del self._seats[connection]


class _MachineSeat:
    """A connection's machine, with its link and its timers.

    Each timer is earlier than the one that was set before it, so there are hardly more than two: for a deadline, and
    behind it for the end of a window. None is taken back: one that comes too early does nothing but set the next.
    """

    __slots__ = (
        "_clock",
        "_due_ms",
        "_emit",
        "_joined",
        "_late_ms",
        "_link",
        "_machine",
        "_on_leave",
        "_paused",
        "_timers",
        "producers",
    )

    def __init__(
        self,
        machine: Connection,
        link: Link,
        clock: GateClock,
        emit: Callable[[Event], None],
        on_leave: Callable[[], None],
    ) -> None:
        self._machine = machine
        self._link = link
        self._clock = clock
        self._emit = emit
        self._on_leave = on_leave
        self._due_ms: int | None = None
        self._late_ms = 0
        self._timers: dict[int, Timer] = {}
        self._joined: Joined
        self._paused: Paused | None = None
        self.producers = Producers()

    def join(self, *, supports: bool) -> None:
        self._joined = Joined(self._clock.now_ms(), supports)
        self._emit(self._joined)

    def standing(self) -> list[Event]:
        """What there was to hear that still holds."""
        return [self._joined] if self._paused is None else [self._joined, self._paused]

    def tell(self, make: Making) -> BadInput | None:
        return self._feed(make, self._clock.now_ms())

    def answered(self, request_id: int, read_ms: int) -> None:
        self._feed(lambda at_ms: inputs.Receipt(at_ms, request_id), read_ms)

    def leave(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        now_ms = self._clock.now_ms()
        self._feed(inputs.Close, now_ms)
        self._on_leave()
        self._emit(Left(now_ms))

    def view(self) -> PlainData:
        return self._machine.view()

    def _feed(self, make: Making, now_ms: int) -> BadInput | None:
        """A publish says nothing while time is held back: windows that are over would not be (row 14 of 7.4)."""
        given = make(self._time_at(now_ms))
        if isinstance(given, inputs.Publish) and self._late_ms:
            return None
        refused = self._act(self._machine.feed(given))
        if isinstance(given, inputs.CloseProducer) and refused is None:
            self.producers.remove(given.producer)
        if self._machine.is_open:
            self._arm()
        return refused

    def _time_at(self, now_ms: int) -> int:
        """The machine's time stands still before a timer that is due until it is called: the gate is late, which no
        client can help.

        What sockets hold is read before the timer is called, and a receipt among it is in time, as it is in a broker
        that stops its timer. What is sent meanwhile has its whole wait. Once no receipt is awaited the machine's time
        is that of the clock again.
        """
        if not self._machine.awaits_receipts:
            self._late_ms = 0
        if self._due_ms is not None:
            self._late_ms = max(self._late_ms, now_ms - self._due_ms)
        return now_ms - self._late_ms

    def _act(self, outputs: list[Output]) -> BadInput | None:
        refused = None
        for output in outputs:
            event: Event = output
            match output:
                case Command():
                    self._link.send(
                        ThrottleProducer(output.request_id, output.producer, output.reason, output.pause_ms)
                    )
                case ReadsPaused(at_ms, cause, reason, producer):
                    name = None if producer is None else self.producers.name_of(producer)
                    event = self._paused = Paused(at_ms, cause, reason, name)
                    self._link.stop_reading()
                case ReadsResumed():
                    self._paused = None
                    self._link.resume_reading()
                case Rejected(_, error):
                    refused = error
            self._emit(event)
        return refused

    def _arm(self) -> None:
        """See to it that the machine is called once the millisecond in which it is due is over."""
        self._due_ms = self._machine.next_due_ms()
        if self._due_ms is None:
            return
        over_ms = self._due_ms + 1 + self._late_ms
        if not self._timers or over_ms < min(self._timers):
            self._timers[over_ms] = self._clock.call_at(over_ms, partial(self._fire, over_ms))

    def _fire(self, over_ms: int) -> None:
        """A timer: what it was for may be settled, or put off."""
        del self._timers[over_ms]
        at_ms = self._time_at(self._clock.now_ms() - 1)
        if self._due_ms is not None and self._due_ms <= at_ms:
            self._act(self._machine.advance(at_ms))
        self._arm()
