"""A real Pulsar behind a door that limits a topic as a broker with the throttle protocol would.

The door takes the broker's place at the client's socket: it reads publishes, charges headgate's own publish limiter for
them, tells the machine of their connection what the limiter says, and reads nothing more while that machine has
reads off. What it has read it passes on to Pulsar, which stores and acknowledges it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from headgate.core.numbers import SECOND_NS
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outputs import ReadsResumed
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings
from headgate.core.protocol.wire_format import WireType, last_values
from headgate.core.publish.publish_limiter import PublishLimiter
from headgate.gate.command import LoopClock
from headgate.gate.events import Event, Paused
from headgate.gate.feed import NameTaken
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.server import Gate
from headgate.gate.settings import GateSettings
from headgate.wire import Frame, FrameReader, ThrottleProducer, decode_command

PRODUCER, SEND = 5, 6
"""Types of Pulsar's commands: a producer opens, a message comes."""
CHUNK_BYTES = 16_384


class Mark(NamedTuple):
    """A producer that waits in the limiter's queue."""

    connection: str
    producer: int
    ordinal: int


class TopicLimit:
    """Publishes of one topic are charged; a producer that trips the limiter is marked, and unmarked when it drains."""

    def __init__(self, feed: MachineFeed, topic: str, messages_per_s: int) -> None:
        self.topic = topic
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self._limiter = PublishLimiter("topic", messages_per_s, 0, created_ns=self._now_ns())
        self._ordinals: Counter[tuple[str, int]] = Counter()

    def publish(self, connection: str, producer: int, size_bytes: int) -> None:
        """A message was read."""
        now_ns = self._now_ns()
        if not self._limiter.charge(1, size_bytes, now_ns):
            return
        self._ordinals[connection, producer] += 1
        mark = Mark(connection, producer, self._ordinals[connection, producer])
        is_first = self._limiter.next_drain_ns is None
        self._limiter.enqueue(mark, now_ns)
        trip = Trip(Reason.TopicProduceQuotaExceeded, mark.ordinal, self._buckets(now_ns))
        self._feed.mark(connection, producer, [trip])
        if is_first:
            self._arm()

    def _buckets(self, now_ns: int) -> list[tuple[int, int]]:
        return [(one.balance_at(now_ns), one.rate) for one in self._limiter.buckets if one is not None]

    def _now_ns(self) -> int:
        return int(self._loop.time() * SECOND_NS)

    def _arm(self) -> None:
        if self._limiter.next_drain_ns is not None:
            self._loop.call_at(self._limiter.next_drain_ns / SECOND_NS, self._drain)

    def _drain(self) -> None:
        youngest: dict[tuple[str, int], int] = {}
        for mark in self._limiter.drain(self._now_ns()):
            youngest[mark.connection, mark.producer] = mark.ordinal
        for (connection, producer), ordinal in youngest.items():
            self._feed.unmark(connection, producer, Reason.TopicProduceQuotaExceeded, ordinal)
        self._arm()


class Door:
    """Every client's connection is one to Pulsar, byte for byte; only `limit` and the machines hold a client back.

    The n-th connection is named `connection-<n>`. One whose name has not joined the gate by its first producer is that
    of a client without the protocol: the door joins for it.
    """

    def __init__(self, pulsar_port: int) -> None:
        self._pulsar_port = pulsar_port
        self._reads: dict[str, asyncio.Event] = {}
        self._topics: dict[tuple[str, int], str] = {}
        self.feed: MachineFeed
        self.limit: TopicLimit | None = None

    def heard(self, connection: str, event: Event) -> None:
        """What a machine emitted."""
        match event:
            case Paused():
                self._reads[connection].clear()
            case ReadsResumed():
                self._reads[connection].set()

    async def welcome(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """A client has connected; returns when either side has hung up."""
        name = f"connection-{len(self._reads) + 1}"
        self._reads[name] = asyncio.Event()
        self._reads[name].set()
        broker, to_broker = await asyncio.open_connection("127.0.0.1", self._pulsar_port)
        ways = (self._read(name, client, to_broker), _passed_on(broker, to_client))
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            with suppress(asyncio.CancelledError):  # the case is over; asyncio would print a traceback
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for writer in (to_client, to_broker):
                writer.close()

    async def _read(self, name: str, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter) -> None:
        frames, reads = FrameReader(), self._reads[name]
        while True:
            await reads.wait()
            if not (received := await client.read(CHUNK_BYTES)):
                return
            for frame in frames.feed(received):
                if isinstance(frame, Frame):
                    self._take(name, frame)
            to_broker.write(received)
            await to_broker.drain()

    def _take(self, name: str, frame: Frame) -> None:
        command = decode_command(frame.command)
        if command.type == PRODUCER:
            values = last_values(command.message, {1: WireType.BYTES, 2: WireType.VARINT})
            with suppress(NameTaken):
                self.feed.join(name, _NoLink(), supports=False)
            self.feed.open(name, int(values[2]), bytes(values[1]).decode(), str(values[2]))
            self._topics[name, int(values[2])] = bytes(values[1]).decode()
        elif command.type == SEND and self.limit is not None:
            producer = int(last_values(command.message, {1: WireType.VARINT})[1])
            if self._topics[name, producer] == self.limit.topic:
                self.limit.publish(name, producer, len(frame.payload))


class _NoLink:
    """A client without the protocol has no socket but that of the door, which goes by what the machine emits."""

    def send(self, command: ThrottleProducer) -> None:
        raise AssertionError(f"{command}: nothing is sent to a client that does not support it")

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def _passed_on(broker: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    while received := await broker.read(CHUNK_BYTES):
        to_client.write(received)
        await to_client.drain()


class LimitedBroker(NamedTuple):
    """Where it listens on loopback: Pulsar's clients at `door_port`, gate connections at `gate_port`."""

    door_port: int
    gate_port: int


async def serve_limited(
    pulsar_port: int,
    door_port: int,
    limited: tuple[str, int] | None,
    settings: BrokerSettings,
    started: Callable[[LimitedBroker], object],
    stop: asyncio.Event,
) -> Door:
    """A gate and a door until `stop` is set. limited: a topic, and how many of its messages a second may be read."""
    clock, counters, metrics = LoopClock(asyncio.get_running_loop()), Counters(), BrokerMetrics()
    door = Door(pulsar_port)
    door.feed = MachineFeed(settings, clock, metrics)
    door.feed.listen(door.heard)
    gate = Gate(GateSettings.of({"--port": 0}), door.feed, clock, counters, print)
    if limited is not None:
        door.limit = TopicLimit(door.feed, *limited)
    server = await asyncio.start_server(door.welcome, "127.0.0.1", door_port, limit=CHUNK_BYTES)
    async with server:
        started(LimitedBroker(door_port, gate.address[1]))
        await gate.serve(stop)
    return door
