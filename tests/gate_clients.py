"""A gate that runs in a thread, and clients that speak with it over real sockets."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.inputs import ConditionClear, ConditionSet, Trip
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.command import LoopClock
from headgate.gate.feed import Feed, GateClock
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.server import Gate
from headgate.gate.settings import GateSettings
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

TIMEOUT_S = 30.0
T = TypeVar("T")


class Client:
    """One connection, frame by frame. Every read that finds nothing for TIMEOUT_S fails."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None = None, receive_buffer: int | None = None, host: str = "127.0.0.1"
    ) -> None:
        plain = socket.socket()
        plain.settimeout(TIMEOUT_S)
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.connect((host, port))
        self.socket = plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost")
        self._reader = FrameReader()
        self._read: list[Command] = []

    def greet(self, connection: str | None, *, supports: bool = True, token: str | None = None) -> Command | None:
        said = pulsar_commands.connect("test", supports_throttle_producer=supports, connection=connection, token=token)
        self.send(said)
        return self.heard()

    def send(self, command: bytes) -> None:
        self.socket.sendall(Frame(command).encode())

    def answer(self, request_id: int) -> None:
        self.send(throttle_producer_receipt(Receipt(request_id)))

    def heard(self) -> Command | None:
        """The next command; None at the end of the stream."""
        while not self._read:
            try:
                received = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not received:
                return None
            for frame in self._reader.feed(received):
                assert isinstance(frame, Frame)
                self._read.append(decode_command(frame.command))
        return self._read.pop(0)

    def told(self) -> ThrottleProducer:
        """The command that comes next, which is one to throttle."""
        heard = self.heard()
        assert heard is not None
        assert heard.type == BaseCommand.THROTTLE_PRODUCER
        return ThrottleProducer.decode(heard.message)

    def hears_nothing_for(self, duration_s: float) -> bool:
        self.socket.settimeout(duration_s)
        try:
            self.heard()
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(TIMEOUT_S)
        return False

    def round_trip(self) -> None:
        """A ping, and its pong; the gate's own pings are answered."""
        self.send(pulsar_commands.ping())
        while (heard := self.heard()) is not None and heard.type == BaseCommand.PING:
            self.send(pulsar_commands.pong())
        assert heard is not None
        assert heard.type == BaseCommand.PONG

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def words_of(heard: Command | None) -> str:
    """What an ERROR says."""
    assert heard is not None
    assert heard.type == BaseCommand.ERROR, heard
    return str(CommandError.FromString(heard.message).message)


class RunningGate:
    """A gate in a thread of its own; what is not thread-safe is called by `do`."""

    def __init__(self, settings: GateSettings, make_feed: Callable[[GateClock, Counters], Feed]) -> None:
        self._settings = settings
        self._make_feed = make_feed
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.counters = Counters()
        self.said: list[str] = []
        self.gate: Gate
        self.feed: Any = None

    async def _run(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            clock = LoopClock(self._loop)
            self.feed = self._make_feed(clock, self.counters)
            self.gate = Gate(self._settings, self.feed, clock, self.counters, self.said.append)
        finally:
            self._started.set()
        await self.gate.serve(self._stop)

    @property
    def port(self) -> int:
        return self.gate.address[1]

    def do(self, act: Callable[[], T]) -> T:
        """What `act` returns, called in the gate's loop."""

        async def called() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(TIMEOUT_S)

    def await_that(self, holds: Callable[[], bool], what: str) -> None:
        give_up_s = time.monotonic() + TIMEOUT_S
        while not self.do(holds):
            assert time.monotonic() < give_up_s, f"{what} did not come"

    def ended(self) -> dict[str, int]:
        """How many connections ended, by why."""
        name = "headgate.gate.connection.ended.count{why="
        counted = self.do(self.counters.values).items()
        return {key.removeprefix(name).removesuffix("}"): count for key, count in counted if key.startswith(name)}

    def client(self, connection: str, **how: Any) -> Client:
        """One that was welcomed."""
        client = Client(self.port)
        welcome = client.greet(connection, **how)
        assert welcome is not None
        assert welcome.type == BaseCommand.CONNECTED, words_of(welcome)
        return client

    def start(self) -> None:
        self._thread.start()
        self._started.wait(TIMEOUT_S)

    def stop(self) -> None:
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()


class MachineGate(RunningGate):
    """One whose machines the test drives."""

    def __init__(self, settings: GateSettings, broker: BrokerSettings) -> None:
        super().__init__(settings, lambda clock, _: MachineFeed(broker, clock, BrokerMetrics()))

    def client(self, connection: str, producers: int = 1, **how: Any) -> Client:
        client = super().client(connection, **how)
        for producer in range(1, producers + 1):
            assert self.do(lambda producer=producer: self.feed.open(connection, producer, f"t{producer}")) is None
        return client

    def mark(
        self,
        connection: str,
        producer: int = 1,
        ordinal: int = 1,
        balance: int = -999,
        *,
        is_condition_set: bool = False,
    ) -> None:
        """A mark of a limiter of 100 a second: a pause of 10 s by default. is_condition_set: at the same moment."""
        trips = [Trip(0, ordinal, [(balance, 100)])]

        def mark() -> list[object]:
            marked = self.feed.mark(connection, producer, trips)
            return [marked, self._condition(connection, is_set=True) if is_condition_set else None]

        assert self.do(mark) == [None, None]

    def unmark(self, connection: str, producer: int = 1, ordinal: int = 1) -> None:
        assert self.do(lambda: self.feed.unmark(connection, producer, 0, ordinal)) is None

    def condition(self, connection: str, *, is_set: bool) -> None:
        """Reason 5, of which clients are not told."""
        assert self.do(lambda: self._condition(connection, is_set=is_set)) is None

    def _condition(self, connection: str, *, is_set: bool) -> object:
        made = ConditionSet if is_set else ConditionClear
        return self.feed.tell(connection, lambda at_ms: made(at_ms, 5, 1))

    def reads(self, connection: str) -> str:
        return str(self.do(lambda: self.feed.view(connection))["reads"])

    def phase(self, connection: str, producer: int = 1) -> str:
        return str(self.do(lambda: self.feed.view(connection))["producers"][str(producer)]["state"])

    def count(self, name: str) -> int:
        return int(self.do(self.feed.metrics.values).get(name, 0))


@contextmanager
def running(gate: RunningGate) -> Iterator[Any]:
    """The gate while the block runs."""
    gate.start()
    try:
        yield gate
    finally:
        gate.stop()
