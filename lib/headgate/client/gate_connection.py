"""What producers need of `headgate gate`: its commands, and a way back for their receipts (PIP-385)."""

import asyncio
import logging
import random
import ssl
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from headgate.client.library import Library, Settings, topics
from headgate.client.producer import RateLimitedProducer
from headgate.client.threads import join, started
from headgate.errors import WireError
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
SILENCE_S = 15.0
"""After so long without a word the gate is asked whether it is there; after twice as long it is not."""
LINGER_S = 1.0
CLOSE_TIMEOUT_S = 5.0
MOST_AT_ONCE_BYTES = 65_536


class GateConnection:
    """Every command that comes reaches the producer that it names, and the gate gets its receipt.

    Connects at once, and again for as long as it is not closed, in a thread of its own. Producers do not wait for it:
    without a gate they send, and windows that are in force run out. A connection that comes after a lost one counts
    its request ids anew. `problem` says why there is none.

    Arguments: host, port: of the gate. connection: the name whose commands it is to send. token: what the gate asks
    for. tls: the context to check its certificate with; None: no TLS.
    Source: PIP-385; throttle-protocol 5, 9, 13
    """

    def __init__(
        self, host: str, port: int, connection: str, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._place = (host, port)
        self._tls = tls
        self._greeting = pulsar_commands.connect(
            "headgate", supports_throttle_producer=True, connection=connection, token=token
        )
        self._producers: dict[int, RateLimitedProducer] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._connected = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.problem: str | None = "not connected yet"
        self._thread = started("gate", self._serve)

    def producer(self, library: Library, settings: Settings, **options: Any) -> RateLimitedProducer:
        """A RateLimitedProducer that obeys the commands for the producer ids of `settings`.

        options: its own others. Whoever asks closes it, before this connection. Raises InvalidArgument as it does.
        """
        made = RateLimitedProducer(library, settings, receipts=self.answer, **options)
        self._producers = self._producers | dict.fromkeys(topics(settings), made)  # a new one: the thread reads it
        return made

    def answer(self, request_id: int) -> None:
        """Send the receipt of a command, from any thread; without a connection there is nobody to send it to."""
        receipt = Frame(throttle_producer_receipt(Receipt(request_id))).encode()
        with suppress(RuntimeError):  # closed
            self._loop.call_soon_threadsafe(self._write, receipt)

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
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*self._place, ssl=self._tls)
        self._writer, frames = writer, FrameReader()
        try:
            self._write(Frame(self._greeting).encode())
            while received := await self._received(reader):
                for frame in frames.feed(received):
                    self._hear(frame.command if isinstance(frame, Frame) else b"")
        finally:
            self._writer = None
            await _closed(writer)
        raise ConnectionError("the gate closed the connection")

    async def _received(self, reader: asyncio.StreamReader) -> bytes:
        for timeout_s in (SILENCE_S if self._connected.is_set() else ANSWER_TIMEOUT_S, SILENCE_S):
            try:
                return await asyncio.wait_for(reader.read(MOST_AT_ONCE_BYTES), timeout_s)
            except TimeoutError:
                self._write(Frame(pulsar_commands.ping()).encode())
        raise ConnectionError(f"the gate said nothing for {2 * SILENCE_S:.0f} s")

    def _hear(self, frame: bytes) -> None:
        try:
            self._follow(decode_command(frame))
        except WireError as error:
            LOG.warning("the gate on %s port %d sent what cannot be read, and it was dropped: %s", *self._place, error)

    def _follow(self, command: Command) -> None:
        match command.type:
            case BaseCommand.CONNECTED:
                for producer in set(self._producers.values()):
                    producer.on_connection()
                self.problem = None
                self._connected.set()
            case BaseCommand.THROTTLE_PRODUCER:
                self._throttle(ThrottleProducer.decode(command.message))
            case BaseCommand.PING:
                self._write(Frame(pulsar_commands.pong()).encode())
            case BaseCommand.ERROR:
                raise ConnectionError(f"refused: {CommandError.FromString(command.message).message}")

    def _throttle(self, asked: ThrottleProducer) -> None:
        """A command for a producer that there is not is one for any other, which counts and answers it."""
        producer = self._producers.get(asked.producer_id) or next(iter(self._producers.values()), None)
        if producer is None:
            LOG.warning("command %d came before there was a producer; it was dropped", asked.request_id)
            return
        producer.on_command(asked.request_id, asked.producer_id, asked.reason, asked.pause_ms)

    def _write(self, frame: bytes) -> None:
        if self._writer is not None:
            self._writer.write(frame)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Send what waits, if the gate takes it, and let go of the socket."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(LINGER_S):
            await writer.wait_closed()
    writer.transport.abort()
