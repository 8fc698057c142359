"""A producer on a real Pulsar that listens to a gate, and a limiter that holds it again and again."""

import threading
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Self
from uuid import uuid4

import pulsar

from gate_processes import Limiter
from headgate.client import ClientSettings, GateConnection
from headgate.client.pulsar_library import PulsarLibrary
from pulsar_standalone import Pulsar

PER_S, HELD_EVERY_S, HELD_S = 20, 5, 1
NAME, REASON = "soak", "TOPIC_PUBLISH_RATE"
LEAST_PAUSE_MS = 250
"""A mark below is good for 510; a gate that is killed takes some with it."""
PATIENCE_S = 60


class Clients:
    """Numbered messages; `check` at the end says whether each that was acknowledged is in the topic, once."""

    def __init__(self, broker: Pulsar, gate_port: int, control_port: int) -> None:
        namespace = f"public/{uuid4()}"
        broker.send("PUT", f"namespaces/{namespace}", {})
        broker.send("POST", f"namespaces/{namespace}/deduplication", True)
        self._topic = f"persistent://{namespace}/gate"
        self._control_port = control_port
        self._is_over = threading.Event()
        self._acknowledged, self._failed, self._pending = set[int](), set[int](), set[int]()
        self._client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self._client.subscribe(self._topic, "kept").close()  # else a broker that starts again drops what nobody reads
        settings = ClientSettings.of({"producers": {0: self._topic}, "send_timeout_ms": 0})
        self._gate = GateConnection("127.0.0.1", gate_port, NAME)
        self._producer = self._gate.producer(PulsarLibrary.open(self._client, settings), settings)
        self._threads = [threading.Thread(target=one) for one in (self._send, self._hold)]
        self.holds = 0

    def __enter__(self) -> Self:
        self._gate.__enter__()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._producer.close(0)
        self._gate.__exit__(None, None, None)
        self._client.close()

    def _stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        for number in count():
            if self._is_over.wait(1 / PER_S):
                return
            self._pending.add(number)
            self._producer.send(str(number).encode()).add_done_callback(partial(self._done, number))

    def _done(self, number: int, sent: Future[object]) -> None:
        (self._acknowledged if sent.exception() is None else self._failed).add(number)
        self._pending.discard(number)

    def _hold(self) -> None:
        """Where the gate is away or does not know the client, once more."""
        while not self._is_over.wait(1):
            with suppress(OSError, ValueError, LookupError), Limiter(self._control_port) as limiter:
                self._hold_again_and_again(limiter)

    def _hold_again_and_again(self, limiter: Limiter) -> None:
        producer = {"connection": NAME, "topic": self._topic, "producer": "p"}
        limiter.say(kind="open", producer_id=0, **producer)
        for ordinal in count(time.time_ns()):
            buckets = [{"balance": -50, "rate": 100}]
            trip = {"reason": REASON, "ordinal": ordinal, "buckets": buckets}
            if "error" in limiter.say(kind="mark", trips=[trip], **producer):
                raise LookupError
            self.holds += 1
            self._is_over.wait(HELD_S)
            limiter.say(kind="unmark", reason=REASON, ordinal=ordinal, **producer)
            if self._is_over.wait(HELD_EVERY_S - HELD_S):
                return

    def check(self) -> str:
        """Sends no more. What was sent, for people."""
        self._stop()
        give_up_s = time.monotonic() + PATIENCE_S
        while self._pending and time.monotonic() < give_up_s:
            time.sleep(0.1)
        stored = self._stored()
        sent, doubled = self._acknowledged, sorted(number for number, times in stored.items() if times > 1)
        throttled_ms = sum(value for name, value in self._producer.metrics().items() if "throttled_times" in name)
        assert not self._pending, f"{len(self._pending)} have no end: {sorted(self._pending)[:50]}"
        assert not self._failed, f"{len(self._failed)} failed: {sorted(self._failed)[:50]}"
        assert sent <= stored.keys(), f"{len(sent - stored.keys())} of {len(sent)} are lost"
        assert not doubled, f"{len(doubled)} of {len(stored)} are there more than once: {doubled[:50]}"
        assert throttled_ms > self.holds * LEAST_PAUSE_MS > 0, f"{self.holds} holds throttled for {throttled_ms} ms"
        return f"{len(sent):,} acknowledged, each stored once; held {self.holds} times, {throttled_ms:,} ms"

    def _stored(self) -> Counter[int]:
        reader = self._client.create_reader(self._topic, pulsar.MessageId.earliest)
        stored = Counter[int]()
        while reader.has_message_available():
            stored[int(reader.read_next().data())] += 1
        return stored
