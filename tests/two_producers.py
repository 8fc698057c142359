"""Two producers on one connection to a real Pulsar broker, one of them over its quota."""

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import count
from multiprocessing.connection import Connection as Pipe
from typing import Any
from uuid import uuid4

import pulsar

from headgate.client import ClientSettings, GateConnection, RateLimitedProducer
from headgate.client.pulsar_library import PulsarLibrary
from headgate.core.protocol.settings import BrokerSettings
from limited_broker import LimitedBroker, serve_limited
from pulsar_standalone import Pulsar

QUOTA_PER_S, GREEDY_PER_S, INNOCENT_PER_S = 100, 400, 500
PAYLOAD = bytes(1000)
GREEDY, INNOCENT = 0, 1
"""Ids of the producers, as Pulsar's client gives them to the producers of a connection."""
TIMEOUT_S = 60
DEFAULT_WAIT_MS = 100
"""What a broker waits for a receipt by default."""


class CaseName(StrEnum):
    """Who limits greedy, and what its client understands."""

    ALONE = "alone"
    OWN_LIMIT = "Pulsar's own limit"
    WITHOUT = "without the protocol"
    WITH = "with the protocol"


@dataclass
class Sent:
    """Messages of one producer: when each was acknowledged, in seconds since the case began, and how long after it was
    due. One that was sent late, since the one before was, counts from when it was due.
    """

    offered: int = 0
    acknowledged_s: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)

    def between(self, from_s: float, to_s: float) -> int:
        """How many were acknowledged in that time."""
        return sum(from_s <= at_s < to_s for at_s in self.acknowledged_s)

    def of_due(self, from_s: float, to_s: float) -> list[float]:
        """Latencies of those that were due in that time and were acknowledged, the shortest first."""
        both = zip(self.acknowledged_s, self.latencies_s, strict=True)
        return sorted(took_s for at_s, took_s in both if from_s <= at_s - took_s < to_s)


@dataclass
class Case:
    """What became of both producers, by id, and the counts of the broker's machine (throttle-protocol 14).

    load: mean number of running processes in the minute before its end.
    """

    producers: dict[int, Sent]
    counts: dict[str, int]
    load: float

    def fallbacks(self) -> dict[str, int]:
        """How often reads went off, by cause."""
        name = "headgate.broker.throttle.fallback.count{cause="
        counted = self.counts.items()
        return {key.removeprefix(name).removesuffix("}"): one for key, one in counted if key.startswith(name)}


class _Sending(threading.Thread):
    """Sends steadily, and notes what is acknowledged as it comes."""

    def __init__(self, producer: RateLimitedProducer, per_s: int, seconds: float) -> None:
        super().__init__()
        self.sent = Sent()
        self._producer = producer
        self._per_s = per_s
        self._begun_s = time.monotonic()
        self._until_s = self._begun_s + seconds
        self.start()

    def run(self) -> None:
        for number in count():
            due_s = self._begun_s + number / self._per_s if self._per_s else self._until_s
            if due_s >= self._until_s:
                return
            time.sleep(max(0.0, due_s - time.monotonic()))
            self.sent.offered += 1
            self._producer.send(PAYLOAD).add_done_callback(partial(self._note, due_s))

    def _note(self, due_s: float, done: Future[object]) -> None:
        now_s = time.monotonic()
        if done.exception() is None and now_s < self._until_s:
            self.sent.acknowledged_s.append(now_s - self._begun_s)
            self.sent.latencies_s.append(now_s - due_s)


def _door_process(
    pulsar_port: int, door_port: int, limited: tuple[str, int] | None, receipt_wait_ms: int, pipe: Pipe
) -> None:
    """The door and its gate, until something is heard from the pipe."""

    async def serve() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)
        keys = {"throttleProducerReceiptWaitTimeMillis": receipt_wait_ms, "doubling_extensions": True}
        settings = BrokerSettings.of(keys)
        door = await serve_limited(pulsar_port, door_port, limited, settings, pipe.send, stop)
        pipe.send(door.feed.metrics.values())

    asyncio.run(serve())


class Stack:
    """A broker, and a door to it while a case runs. receipt_wait_ms: of the door's machines; the default of brokers."""

    def __init__(self, broker: Pulsar, receipt_wait_ms: int = DEFAULT_WAIT_MS) -> None:
        self._broker = broker
        self._receipt_wait_ms = receipt_wait_ms

    def run(self, case: CaseName, seconds: float) -> Case:
        """Both producers on one connection through the door for so long. What is not acknowledged then is dropped."""
        namespace = f"public/{uuid4()}"
        topics = {GREEDY: f"persistent://{namespace}/greedy", INNOCENT: "persistent://public/default/innocent"}
        self._broker.send("PUT", f"namespaces/{namespace}", {})
        if case == CaseName.OWN_LIMIT:
            rate = {"publishThrottlingRateInMsg": QUOTA_PER_S, "publishThrottlingRateInByte": -1}
            self._broker.send("POST", f"namespaces/{namespace}/publishRate", rate)
        is_limited = case in {CaseName.WITHOUT, CaseName.WITH}
        with self._door((topics[GREEDY], QUOTA_PER_S) if is_limited else None) as (door, counted):
            producers = _sent(door, case, topics, seconds)
        return Case(producers, counted, os.getloadavg()[0])

    @contextmanager
    def _door(self, limited: tuple[str, int] | None) -> Iterator[tuple[LimitedBroker, dict[str, int]]]:
        context: Any = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(
            target=_door_process,
            args=(self._broker.port, self._broker.door_port, limited, self._receipt_wait_ms, theirs),
        )
        process.start()
        counted: dict[str, int] = {}
        yield mine.recv(), counted
        mine.send("stop")
        counted |= mine.recv()
        process.join()


def _sent(door: LimitedBroker, case: CaseName, topics: dict[int, str], seconds: float) -> dict[int, Sent]:
    with ExitStack() as stack:
        gate = None
        if case == CaseName.WITH:
            gate = stack.enter_context(GateConnection("127.0.0.1", door.gate_port, "connection-1"))
            assert gate.wait_connected(TIMEOUT_S), gate.problem
        quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        client = pulsar.Client(f"pulsar://127.0.0.1:{door.door_port}", logger=quiet, listener_name="door")
        producers = {number: _producer_of(client, gate, number, topic) for number, topic in topics.items()}
        rates = {GREEDY: 0 if case == CaseName.ALONE else GREEDY_PER_S, INNOCENT: INNOCENT_PER_S}
        sent = {number: _Sending(producers[number], rates[number], seconds) for number in topics}
        for one in sent.values():
            one.join()
        client.shutdown()  # at once: what waits behind reads that are off would hold up a close
        for producer in producers.values():
            producer.close(0)
    return {number: one.sent for number, one in sent.items()}


def _producer_of(client: pulsar.Client, gate: GateConnection | None, number: int, topic: str) -> RateLimitedProducer:
    settings = ClientSettings.of({"producers": {number: topic}, "send_timeout_ms": 0})
    library = PulsarLibrary.open(client, settings)
    return RateLimitedProducer(library, settings, receipts=print) if gate is None else gate.producer(library, settings)
