"""A gate with 1,000 connections: commands out, receipts back, while limiters mark producers all the time.

    python tests/benchmarks/gate.py [--connections 1000] [--seconds 10]

The gate is a process of one thread, as `headgate gate machine` is; marks come from within, evenly spread over time and
connections, and each brings a command. The clients are a second process, which reads each command as headgate's own
would and answers it at once. A round trip is from when the gate has written a command until it has read its receipt.
Settings are the defaults: a receipt that takes more than 100 ms turns reads off. Then its limiter lets go at once.
"""

import asyncio
import multiprocessing
import resource
import selectors
import socket
import statistics
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from typing import Any

from _bench import Results, parser

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outputs import Command
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.command import LoopClock, allow_descriptors, leave_start_to_itself
from headgate.gate.events import Event, Paused
from headgate.gate.feed import Link, Seat
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.server import Gate
from headgate.gate.settings import GateSettings
from headgate.wire import (
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
    pulsar_commands,
    throttle_producer_receipt,
)
from headgate.wire.throttle_pb2 import BaseCommand

RATES_PER_S = (1_000, 5_000, 10_000)
TURN_S = 0.002
SETTLE_S = 1.0
MS = 1000.0
TEN_SECONDS = [(-999, 100)]


@dataclass
class Measured:
    """What one rate brought. cpu: seconds of the gate. commands, receipts: within `seconds`."""

    seconds: float
    commands: int
    receipts: int
    cpu_s: float
    round_trips_s: list[float]
    fallbacks: int
    connections: int
    memory_mb: float


@dataclass
class Timed:
    """When commands were written and their receipts read, of all connections."""

    sent_s: dict[tuple[str, int], float] = field(default_factory=dict)
    round_trips_s: list[float] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    commands: int = 0

    def heard(self, connection: str, event: Event) -> None:
        if isinstance(event, Command):
            self.commands += 1
            self.sent_s[connection, event.request_id] = time.perf_counter()
        elif isinstance(event, Paused):
            self.off.append(connection)

    def answered(self, connection: str, request_id: int) -> None:
        self.round_trips_s.append(time.perf_counter() - self.sent_s.pop((connection, request_id)))


class TimedFeed(MachineFeed):
    """A feed whose receipts are timed as they come in, before the machine hears of them."""

    timed: Timed

    def join(self, connection: str, link: Link, *, supports: bool) -> Seat:
        seat = super().join(connection, link, supports=supports)
        acts, timed = seat.answered, self.timed

        class TimedSeat:
            leave = staticmethod(seat.leave)

            @staticmethod
            def answered(request_id: int, read_ms: int) -> None:
                timed.answered(connection, request_id)
                acts(request_id, read_ms)

        return TimedSeat()


class Limiters:
    """A publish of each producer in turn trips its limiter, so often that `per_s` commands leave."""

    def __init__(self, feed: MachineFeed, names: list[str], off: list[str]) -> None:
        self._feed = feed
        self._off = off
        self._names = names
        self._marked = 0

    async def mark(self, per_s: int, seconds: float) -> None:
        start_s, done = time.perf_counter(), 0
        while (passed_s := time.perf_counter() - start_s) < seconds:
            due = int(passed_s * per_s)
            for _ in range(min(due - done, per_s)):
                self._one()
            done = due
            while self._off:
                self._feed.unmark(self._off.pop(), 1, 0, self._marked)
            await asyncio.sleep(TURN_S)

    def _one(self) -> None:
        place = self._marked % len(self._names)
        self._marked += 1
        self._feed.mark(self._names[place], 1, [Trip(0, self._marked, TEN_SECONDS)])


async def gate_of(connections: int, seconds: float, out: Pipe) -> None:
    """The gate's process: as long as the clients are there, every rate."""
    clock, counters, metrics, timed = LoopClock(asyncio.get_running_loop()), Counters(), BrokerMetrics(), Timed()
    feed = TimedFeed(BrokerSettings(), clock, metrics)
    feed.listen(timed.heard)
    feed.timed = timed
    settings = GateSettings.of(
        {"--port": 0, "--max-connections": connections, "--max-handshakes-per-address": connections}
        | {"--max-handshakes": connections}
    )
    gate, stop = Gate(settings, feed, clock, counters, print), asyncio.Event()
    serving = asyncio.ensure_future(gate.serve(stop))
    out.send(gate.address[1])
    while len(feed.names()) < connections:  # noqa: ASYNC110  nothing says when the last one has joined
        await asyncio.sleep(TURN_S)
    for name in feed.names():
        feed.open(name, 1, "t")
    limiters = Limiters(feed, feed.names(), timed.off)
    for per_s in RATES_PER_S:
        await limiters.mark(per_s, SETTLE_S)
        out.send(await measured(limiters, per_s, seconds, feed, timed))
    stop.set()
    await serving


async def measured(limiters: Limiters, per_s: int, seconds: float, feed: MachineFeed, timed: Timed) -> Measured:
    timed.round_trips_s, before, fallbacks = [], timed.commands, fallbacks_of(feed)
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    await limiters.mark(per_s, seconds)
    passed_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    return Measured(
        passed_s,
        timed.commands - before,
        len(timed.round_trips_s),
        cpu_s,
        timed.round_trips_s,
        fallbacks_of(feed) - fallbacks,
        len(feed.names()),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def fallbacks_of(feed: MachineFeed) -> int:
    counted = feed.metrics.values().items()
    return sum(count for name, count in counted if name.startswith("headgate.broker.throttle.fallback.count"))


def gate_process(connections: int, seconds: float, out: Pipe) -> None:
    allow_descriptors(connections)
    leave_start_to_itself()
    asyncio.run(gate_of(connections, seconds, out))


class Answering:
    """A client that answers each command at once."""

    def __init__(self, name: str, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = FrameReader()
        said = pulsar_commands.connect("bench", supports_throttle_producer=True, connection=name)
        self.socket.sendall(Frame(said).encode())

    def answer(self) -> bool:
        """Whether the connection goes on."""
        try:
            received = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        for frame in self._frames.feed(received):
            command = decode_command(frame.command)  # type: ignore[union-attr]
            if command.type == BaseCommand.THROTTLE_PRODUCER:
                asked = ThrottleProducer.decode(command.message)
                self.socket.sendall(Frame(throttle_producer_receipt(Receipt(asked.request_id))).encode())
        return bool(received)


def client_process(connections: int, port: int) -> None:
    """All clients, until the gate closes the last connection."""
    allow_descriptors(connections)
    open_ = 0
    with selectors.DefaultSelector() as selector:
        for number in range(connections):
            client = Answering(f"connection-{number}", port)
            selector.register(client.socket, selectors.EVENT_READ, client)
            open_ += 1
        while open_:
            for key, _ in selector.select():
                if not key.data.answer():
                    selector.unregister(key.fileobj)
                    open_ -= 1


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def report(results: Results, per_s: int, found: Measured, connections: int) -> list[str]:
    trips_ms = [trip_s * MS for trip_s in found.round_trips_s]
    half, most = percentile(trips_ms, 50), percentile(trips_ms, 99)
    sent, read = found.commands / found.seconds, found.receipts / found.seconds
    if per_s == RATES_PER_S[-1]:
        results.measure("commands sent", "1/s", [sent])
        results.measure("receipts read", "1/s", [read])
        results.measure("round trip, half of them", "ms", [half])
        results.measure("round trip, 99 of 100", "ms", [most])
        results.measure("processor time of the gate", "of one core", [found.cpu_s / found.seconds])
        results.measure("memory of the gate", "MiB", [found.memory_mb])
        results.target("commands sent", "1/s", [sent], at_least=0.99 * per_s)
    results.check(f"at {per_s:,} a second no connection was lost", passed=found.connections == connections)
    cells = [f"{per_s:,}", f"{sent:,.0f}", f"{read:,.0f}", f"{half:.2f}", f"{most:.2f}", f"{max(trips_ms):.1f}"]
    return [*cells, f"{found.fallbacks:,}", f"{found.cpu_s / found.seconds:.2f}"]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--connections", type=int, default=1000, metavar="N")
    options.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of each rate")
    arguments = options.parse_args()
    about = (
        f"{arguments.connections:,} clients in one process, the gate in another, sockets on loopback. Producers are "
        "marked all the time, evenly spread over connections and time; every mark brings a command, which the client "
        "answers at once. A round trip is from the write of a command to the read of its receipt."
    )
    context: Any = multiprocessing.get_context("spawn")
    with Results("gate", "The gate: commands and receipts", about=about) as results:
        mine, out = context.Pipe()
        gate = context.Process(target=gate_process, args=(arguments.connections, arguments.seconds, out))
        gate.start()
        out.close()
        clients = context.Process(target=client_process, args=(arguments.connections, mine.recv()))
        clients.start()
        rows = [report(results, per_s, mine.recv(), arguments.connections) for per_s in RATES_PER_S]
        columns = (
            "marks a second",
            "commands/s",
            "receipts/s",
            "p50 ms",
            "p99 ms",
            "longest ms",
            "reads off",
            "gate, of one core",
        )
        results.table("By the rate of marks:", columns, rows)
        results.note(
            "Gate and clients are Python, a thread each, and need both cores at the highest rate: what else runs then "
            "shows in the longest round trips. Marks are made in the gate's thread and are in its time. `reads off` "
            "counts receipts that took more than 100 ms."
        )
        gate.join()
        clients.join()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
