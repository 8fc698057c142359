"""A client's socket: what its session says is done, and what its source of commands asks for."""

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from headgate.core.protocol.counters import Counters
from headgate.gate.feed import Feed, GateClock, NameTaken, Seat, Timer
from headgate.gate.session import Answered, Ends, Event, Joins, Rules, Send, Session
from headgate.wire import Frame, ThrottleProducer, throttle_producer
from headgate.wire.pulsar_commands import ServerError

READ_BYTES = 4096
"""What is read of one client before others have their turn."""
CATCH_UP_BYTES = 2**18
"""What is read at once when reads come on: more than a socket holds (server.SOCKET_BUFFER_BYTES)."""
TLS_WAITING_BYTES = 2**16
LINGER_MS = 1000
"""How long a client has to read why its connection ends."""
HANG_UP_CHECK_MS = 1000
ENDED = "headgate.gate.connection.ended.count"
_HUNG_UP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


@dataclass(frozen=True, slots=True)
class Host:
    """What all connections of a gate share. write_buffer_bytes: see GateSettings. buffer: what is read of one of them,
    until it is taken out at once.
    """

    rules: Rules
    feed: Feed
    clock: GateClock
    counters: Counters
    write_buffer_bytes: int
    buffer: bytearray = field(default_factory=lambda: bytearray(CATCH_UP_BYTES), repr=False)


class ClientConnection(asyncio.BufferedProtocol):
    """Whatever a client does or leaves undone, it costs its own connection at most.

    It is read in small turns. While reads are off nothing is taken from its socket, so receipts wait there; when they
    come on again all of them are read before any timer. What waits to be written is bounded: a client that does not
    read loses its connection. A receipt has the time at which its bytes were read.

    Arguments: `admit`, asked once CONNECT is there, says why the client gets no place; `on_end`, called once, when the
    connection is gone.
    """

    def __init__(self, host: Host, admit: Callable[[], str | None], on_end: Callable[[], None]) -> None:
        self._host = host
        self._admit = admit
        self._clock = host.clock
        self._on_end = on_end
        self._session = Session(host.rules, host.counters, host.clock.now_ms())
        self._read_bytes = READ_BYTES
        self._transport: asyncio.Transport | None = None
        self._seat: Seat | None = None
        self._timer: Timer | None = None
        self._timer_ms: int | None = None
        self._why = "the client hung up"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._host.write_buffer_bytes)
        if transport.get_extra_info("ssl_object") is not None:
            self._transport.set_read_buffer_limits(high=TLS_WAITING_BYTES)  # type: ignore[attr-defined]
        self._arm()

    def get_buffer(self, _: int) -> memoryview:
        """Where bytes are put, and taken out before anything else happens; a view, as TLS puts a second record behind
        the first one into a slice of it.
        """
        return memoryview(self._host.buffer)[: self._read_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        read_ms = self._clock.now_ms()
        received = bytes(memoryview(self._host.buffer)[:nbytes])
        self._read_bytes = READ_BYTES
        for event in self._session.receive(received, read_ms):
            self._do(event, read_ms)
        self._arm()

    def pause_writing(self) -> None:
        """More waits to be written than is allowed."""
        self._abort("the client does not read")

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._seat is not None:
            self._seat.leave()
        self._host.counters.add(ENDED, (("why", self._why),))
        self._on_end()

    def send(self, command: ThrottleProducer) -> None:
        """Write a command."""
        self._write(Frame(throttle_producer(command)).encode())

    def stop_reading(self) -> None:
        """Take nothing more from the socket; look once in a while whether anybody is there. One that is ending has its
        time to end, and is not read anyway.
        """
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._session.stop_reading()
        self._set_timer(self._clock.now_ms() + HANG_UP_CHECK_MS)

    def resume_reading(self) -> None:
        """Read again, all that waits in the socket first."""
        if self._transport is None:
            return
        self._session.resume_reading(self._clock.now_ms())
        self._read_bytes = CATCH_UP_BYTES
        self._transport.resume_reading()
        self._arm()

    def end(self, why: str) -> None:
        """Close the connection once all is written, or it has taken too long."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self._why = why
            transport.close()
            self._set_timer(self._clock.now_ms() + LINGER_MS)

    def abort(self) -> None:
        """Close the connection at once."""
        self._abort("the gate stopped")

    def _abort(self, why: str) -> None:
        if self._transport is not None:
            if not self._transport.is_closing():
                self._why = why
            self._transport.abort()

    def _do(self, event: Event, at_ms: int) -> None:
        match event:
            case Send(frame):
                self._write(frame)
            case Answered(request_id):
                assert self._seat is not None  # noqa: S101  the session lets nothing come before Joins
                self._seat.answered(request_id, at_ms)
            case Joins(connection, supports):
                self._join(connection, supports=supports)
            case Ends(why):
                self.end(why)

    def _join(self, connection: str, *, supports: bool) -> None:
        refused = self._admit()
        if refused is not None:
            self._write(self._session.refusal(ServerError.TOO_MANY_REQUESTS, refused))
            self.end("no more places")
            return
        try:
            self._seat = self._host.feed.join(connection, self, supports=supports)
        except NameTaken:
            self._write(self._session.refusal(ServerError.NOT_ALLOWED, "another client has this connection's name"))
            self.end("the name is taken")
        else:
            self._write(self._session.welcome())

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    def _arm(self) -> None:
        """See to it that something happens when the session is due; a timer that comes too early sets the next."""
        due_ms = self._session.next_due_ms()
        if due_ms is not None and (self._timer_ms is None or due_ms < self._timer_ms):
            self._set_timer(due_ms)

    def _set_timer(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ms = self._clock.call_at(at_ms, self._wake), at_ms

    def _wake(self) -> None:
        self._timer_ms = None
        if self._transport is None:
            return
        if self._transport.is_closing():
            self._transport.abort()
            return
        now_ms = self._clock.now_ms()
        for event in self._session.advance(now_ms):
            self._do(event, now_ms)
        if not self._session.is_read and self._timer_ms is None:
            if self._has_hung_up():
                self._abort("the client hung up")
                return
            self._set_timer(now_ms + HANG_UP_CHECK_MS)
        self._arm()

    def _has_hung_up(self) -> bool:
        """Whether the client is gone, which no read tells while there are none. Linux tells; others only of errors."""
        socket = self._transport.get_extra_info("socket") if self._transport is not None else None
        if socket is None or socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(socket.fileno(), getattr(select, "POLLRDHUP", 0))
        return any(events & _HUNG_UP for _, events in poll.poll(0))
