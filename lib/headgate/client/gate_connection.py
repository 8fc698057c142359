"""What producers need of `headgate gate`: its commands, and a way back for their receipts (PIP-385)."""

import asyncio
import logging
import random
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from headgate.client.clock import MonotonicClock
from headgate.client.gate_commands import CommandRouter
from headgate.client.library import Library, Settings, client_of, topics
from headgate.client.producer import ProducerOptions, RateLimitedProducer
from headgate.client.threads import join, started
from headgate.errors import InvalidArgument, WireError
from headgate.wire import (
    Command,
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
    pulsar_commands,
    throttle_producer_receipt,
)
from headgate.wire.throttle_pb2 import BaseCommand, CommandError

LOG = logging.getLogger(__name__)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
"""Between two attempts to connect; each wait is twice the last one, less up to half of it by chance."""
ANSWER_TIMEOUT_S = 10.0
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds, seconds, tries: a gate whose machine is gone without a word is noticed in a minute. The system asks, not
this: a gate that has reads off answers no PING, however long they are off, and who hangs up then is not held any more.
"""
LINGER_S = 1.0
CLOSE_TIMEOUT_S = 5.0
MAX_PORT, MAX_NAME_BYTES = 65_535, 1024
READ_BYTES = 4096
"""What is read before its receipts are written, all at once: about 150 commands."""


class GateConnection:
    """Every command that comes reaches the producer that it names, and the gate gets its receipt.

    Connects at once, and again for as long as it is not closed, in a thread of its own. Producers do not wait for it:
    without a gate they send, and windows that are in force run out. A connection that comes after a lost one counts
    its request ids anew, and receipts of the lost one are dropped. `problem` says why there is none.

    Arguments: host, port: of the gate. connection: the name whose commands it is to send. token: what the gate asks
    for. tls: the context to check its certificate with; None: no TLS. enabled: as in the settings of its producers;
    false: the feature flag is not set, so the gate tells nothing and turns reads off instead.
    Raises InvalidArgument for a host, a port or a name that can be none.
    Source: PIP-385; throttle-protocol 5, 9, 13
    """

    def __init__(
        self,
        host: str,
        port: int,
        connection: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        enabled: bool = True,
    ) -> None:
        _check(host, port, connection)
        self._place = (host, port)
        self._tls = tls
        self._enabled = enabled
        self._greeting = pulsar_commands.connect(
            "headgate", supports_throttle_producer=enabled, connection=connection, token=token
        )
        self._clock = MonotonicClock()
        self._router = CommandRouter(self._clock)
        self._connected = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.problem: str | None = "not connected yet"
        self._thread = started("gate", self._serve)

    def producer(self, library: Library, settings: Settings, **options: Unpack[ProducerOptions]) -> RateLimitedProducer:
        """A RateLimitedProducer that obeys the commands for the producer ids of `settings`; on return also those that
        came before it and are in force.

        options: its own others. Whoever asks closes it, before this connection. Raises InvalidArgument as it does, for
        ids that another producer of this has or had, and where `enabled` is not the same in the settings. What raises
        takes no ids.
        """
        client = client_of(settings)
        if client.enabled is not self._enabled:
            raise InvalidArgument(
                f"enabled: got {client.enabled} in the settings and {self._enabled} in the connection to the gate; "
                "allowed is the same in both"
            )
        options.setdefault("clock", self._clock)
        return self._router.add(
            topics(settings), lambda answer: RateLimitedProducer(library, settings, receipts=answer, **options)
        )

    def metrics(self) -> dict[str, int]:
        """Commands that no producer of it hears of, by `name{label=value,...}`: copies, those for a producer that is
        not there, and those without an id. To be added to what the producers count. Source: throttle-protocol 14
        """
        return self._router.metrics()

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait for the gate's greeting; false if the time was over before."""
        return self._connected.wait(timeout_s)

    def close(self) -> None:
        """End the connection and its thread. A second call does nothing."""
        with suppress(RuntimeError):  # closed
            self._loop.call_soon_threadsafe(self._stop.set)
        join(self._thread, CLOSE_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        wait_s = FIRST_WAIT_S
        while not stopped.done():
            conversation = asyncio.ensure_future(self._converse())
            await asyncio.wait((conversation, stopped), return_when=asyncio.FIRST_COMPLETED)
            was_connected = self._connected.is_set()
            await self._ended(conversation)
            wait_s = FIRST_WAIT_S if was_connected else min(2 * wait_s, LONGEST_WAIT_S)
            await asyncio.wait((stopped,), timeout=wait_s * random.uniform(0.5, 1.0))  # noqa: S311  no secret

    async def _ended(self, conversation: asyncio.Task[None]) -> None:
        """Say why a conversation has ended; one that has not ends here."""
        conversation.cancel()
        (error,) = await asyncio.gather(conversation, return_exceptions=True)
        self._connected.clear()
        problem = str(error) or type(error).__name__
        if isinstance(error, Exception) and problem != self.problem:
            LOG.warning("the gate on %s port %d: %s; producers go on without it", *self._place, problem)
        self.problem = problem

    async def _converse(self) -> None:
        """One connection, from its greeting to its end. Raises what ended it."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S) as until_welcome:
            reader, writer = await asyncio.open_connection(*self._place, ssl=self._tls)
            frames, outgoing = FrameReader(), _Outgoing(writer)
            try:
                _keep_alive(writer.get_extra_info("socket"))
                outgoing.put(self._greeting)
                outgoing.flush()
                while received := await reader.read(READ_BYTES):
                    for frame in frames.feed(received):
                        self._hear(frame.command if isinstance(frame, Frame) else b"", outgoing)
                    outgoing.flush()
                    if self._connected.is_set():
                        until_welcome.reschedule(None)
            finally:
                await _closed(writer)
        raise ConnectionError("the gate closed the connection")

    def _hear(self, frame: bytes, outgoing: "_Outgoing") -> None:
        try:
            self._follow(decode_command(frame), outgoing)
        except WireError as error:
            LOG.warning("the gate on %s port %d sent what cannot be read, and it was dropped: %s", *self._place, error)

    def _follow(self, command: Command, outgoing: "_Outgoing") -> None:
        match command.type:
            case BaseCommand.CONNECTED:
                self._router.renumber()
                self.problem = None
                self._connected.set()
            case BaseCommand.THROTTLE_PRODUCER:
                self._router.route(ThrottleProducer.decode(command.message), partial(self._answer, outgoing))
            case BaseCommand.PING:
                outgoing.put(pulsar_commands.pong())
            case BaseCommand.ERROR:
                raise ConnectionError(f"refused: {CommandError.FromString(command.message).message}")

    def _answer(self, outgoing: "_Outgoing", request_id: int) -> None:
        """A producer has obeyed, in any thread: that of the connection writes all receipts of a read at its end."""
        asks_for_flush = outgoing.put(throttle_producer_receipt(Receipt(request_id)))
        if asks_for_flush and threading.current_thread() is not self._thread:
            with suppress(RuntimeError):  # closed
                self._loop.call_soon_threadsafe(outgoing.flush)


class _Outgoing:
    """Commands of one connection, in the order of `put`, which any thread may call; `flush` writes them in one piece.

    Each write lets go of the interpreter, which other threads may keep for 5 ms then: where some compute, a burst of
    receipts that are written one by one takes half as long again, or twice as long.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._commands: deque[bytes] = deque()
        self._is_waiting = False

    def put(self, command: bytes) -> bool:
        """Whether this is the first one since the last flush, so that one has to follow."""
        self._commands.append(command)
        is_first, self._is_waiting = not self._is_waiting, True
        return is_first

    def flush(self) -> None:
        """Write what waits; what a lost connection waits for is dropped."""
        self._is_waiting = False  # first: what is put from here on asks for a flush of its own
        frames = []
        while self._commands:
            frames.append(Frame(self._commands.popleft()).encode())
        if frames and not self._writer.is_closing():
            self._writer.write(b"".join(frames))


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # macOS has another name for the first one
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Send what waits, if the gate takes it, and let go of the socket."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(LINGER_S):
            await writer.wait_closed()
    writer.transport.abort()


def _check(host: object, port: object, connection: object) -> None:
    """Raises InvalidArgument for what no gate can be found or asked with."""
    mistakes = []
    if not (isinstance(host, str) and host):
        mistakes.append(f"host: got {host!r}, allowed a name or an address")
    if type(port) is not int or not 1 <= port <= MAX_PORT:
        mistakes.append(f"port: got {port!r}, allowed an integer from 1 to {MAX_PORT}")
    if not (isinstance(connection, str) and 1 <= len(connection.encode(errors="replace")) <= MAX_NAME_BYTES):
        mistakes.append(
            f"connection: got {connection!r:.100}, allowed the name of a connection, 1 to {MAX_NAME_BYTES} bytes"
        )
    if mistakes:
        raise InvalidArgument("; ".join(mistakes))
