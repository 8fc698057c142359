"""RateLimitedProducer over real brokers: what arrives, in which order, when, and what fails."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pulsar
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from gate_clients import MachineGate, running
from headgate.client import (
    ClientSettings,
    PartitionedSettings,
    ProducerClosedError,
    ProducerThrottledError,
    RateLimitedProducer,
    SendTimeoutError,
    Unsent,
)
from headgate.client.kafka_library import KafkaLibrary
from headgate.client.library import Completed, Library, Settings
from headgate.client.pulsar_library import PulsarLibrary
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings
from headgate.core.reasons import HeldReason
from headgate.gate.settings import GateSettings
from kafka_broker import START_TIMEOUT_S
from pulsar_standalone import Pulsar
from real_broker import free_ports, started

TIMEOUT_S = 60
CLOCKS_MS = 5
"""How far the wall clock of a library may go from the steady clock of the wrapper in a test."""
SENDERS = 16
PARTITIONS = 4
LATE_MS = 20_000
"""Time that a library waits for company of a message: nothing is acknowledged by then."""
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
names = count(1)


class Arrived(NamedTuple):
    """A message as the broker has it. sent_ms: when its library wrote it."""

    partition: int
    payload: str
    sent_ms: int


class KafkaSide:
    """Topics and producers of a Kafka broker."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})
        self.stack = stack

    def topic(self, partitions: int) -> str:
        name = f"client-{next(names)}"
        for future in self.admin.create_topics([NewTopic(name, partitions)]).values():
            future.result(TIMEOUT_S)
        return name

    def library(self, settings: Settings, *, late: bool = False) -> Library:
        if not late:
            return KafkaLibrary.open({"bootstrap.servers": self.address}, settings)
        options = {"bootstrap.servers": self.address, "linger.ms": LATE_MS, "message.timeout.ms": 0}
        return KafkaLibrary(confluent_kafka.Producer(options), settings)

    def arrived(self, topic: str, partitions: int, number: int) -> list[Arrived]:
        """That many messages, and any more that there are, in the order of each partition."""
        config = {"bootstrap.servers": self.address, "group.id": "g", "auto.offset.reset": "earliest"}
        with closing(confluent_kafka.Consumer(config)) as consumer:
            places = [confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)]
            there = sum(consumer.get_watermark_offsets(place, TIMEOUT_S)[1] for place in places)
            consumer.assign(places)
            messages = [consumer.poll(TIMEOUT_S) for _ in range(max(number, there))]
        return [Arrived(each.partition(), each.value().decode(), each.timestamp()[1]) for each in messages]

    @staticmethod
    def key(key: str) -> dict[str, Any]:
        return {"key": key}


class PulsarSide:
    """Topics and producers of a Pulsar broker."""

    def __init__(self, broker: Pulsar, stack: ExitStack) -> None:
        self.broker = broker
        self.client = stack.enter_context(closing(pulsar.Client(broker.service_url, logger=QUIET)))

    def topic(self, partitions: int) -> str:
        name = f"client-{next(names)}"
        if partitions > 1:
            self.broker.send("PUT", f"persistent/public/default/{name}/partitions", partitions)
        return name

    def library(self, settings: Settings, *, late: bool = False) -> Library:
        options = {"batching_enabled": True, "batching_max_publish_delay_ms": LATE_MS} if late else {}
        return PulsarLibrary.open(self.client, settings, **options)

    def arrived(self, topic: str, partitions: int, number: int) -> list[Arrived]:
        """That many messages, and any more that there are, in the order of each partition."""
        found: list[Arrived] = []
        for partition in range(partitions):
            name = f"{topic}-partition-{partition}" if partitions > 1 else topic
            with closing(self.client.create_reader(name, pulsar.MessageId.earliest)) as reader:
                while reader.has_message_available():
                    message = reader.read_next(TIMEOUT_S * 1000)
                    found.append(Arrived(partition, message.data().decode(), message.publish_timestamp()))
        assert len(found) >= number
        return found

    @staticmethod
    def key(key: str) -> dict[str, Any]:
        return {"partition_key": key}


Side = KafkaSide | PulsarSide


@pytest.fixture(
    params=[
        pytest.param("kafka_broker", marks=pytest.mark.kafka),
        pytest.param("pulsar_standalone", marks=pytest.mark.pulsar),
    ]
)
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    broker = request.getfixturevalue(request.param)
    with ExitStack() as stack:
        yield PulsarSide(broker, stack) if isinstance(broker, Pulsar) else KafkaSide(broker, stack)


class Sending:
    """A producer on a new topic of a broker, with its receipts and their times."""

    def __init__(self, side: Side, partitions: int = 1, *, late: bool = False, **settings: object) -> None:
        self.side = side
        self.partitions = partitions
        self.topic = side.topic(partitions)
        chosen: Settings = ClientSettings.of({"producers": {0: self.topic}, **settings})
        if partitions > 1:
            chosen = PartitionedSettings.of({"topic": self.topic, "partitions": partitions, **settings})
        self.receipts: dict[int, int] = {}
        self.producer = RateLimitedProducer(side.library(chosen, late=late), chosen, receipts=self._receipt)

    def _receipt(self, request_id: int) -> None:
        self.receipts[request_id] = time.time_ns() // 1_000_000

    def arrived(self, number: int) -> list[Arrived]:
        return self.side.arrived(self.topic, self.partitions, number)


@pytest.fixture
def sending(side: Side) -> Iterator[Callable[..., Sending]]:
    """Makes producers, which are closed in the end without waiting."""
    with ExitStack() as stack:

        def opened(partitions: int = 1, **options: Any) -> Sending:
            made = Sending(side, partitions, **options)
            stack.callback(made.producer.close, 0)
            return made

        yield opened


def storm(
    producer: RateLimitedProducer,
    each: int,
    begun: threading.Event | None = None,
    go_on: threading.Event | None = None,
) -> list[threading.Thread]:
    """Sixteen threads that send "sender number" at once.

    begun: set after a quarter. go_on: the first thread waits for it after half of its messages.
    """

    def send_all(sender: int) -> None:
        for number in range(each):
            producer.send(f"{sender} {number}".encode())
            if begun is not None and number == each // 4:
                begun.set()
            if go_on is not None and sender == 0 and number == each // 2:
                go_on.wait(TIMEOUT_S)

    threads = [threading.Thread(target=send_all, args=(sender,)) for sender in range(SENDERS)]
    for thread in threads:
        thread.start()
    return threads


def assert_complete_and_in_order(arrived: list[Arrived], each: int) -> None:
    """All messages of a storm, once, those of a sender in its order in each partition."""
    payloads = Counter(message.payload for message in arrived)
    assert payloads == {f"{sender} {number}": 1 for sender in range(SENDERS) for number in range(each)}
    last: dict[tuple[int, str], int] = {}
    for message in arrived:
        sender, number = message.payload.split()
        assert last.get((message.partition, sender), -1) < int(number)
        last[message.partition, sender] = int(number)


def wait_ms(future: Any, started_ns: int) -> float:
    """How long after a time a message was acknowledged."""
    future.result(TIMEOUT_S)
    return (time.monotonic_ns() - started_ns) / 1_000_000


@pytest.mark.parametrize("partitions", [1, PARTITIONS])
def test_a_thousand_messages_of_sixteen_threads_pass_windows_once_and_in_order(
    sending: Callable[..., Sending], partitions: int
) -> None:
    scene = sending(partitions, send_timeout_ms=0)
    threads = storm(scene.producer, 63)
    for request_id in range(1, 21):
        scene.producer.on_command(request_id, request_id % partitions, 0, 10 * (request_id % 4))
    for thread in threads:
        thread.join(TIMEOUT_S)
    scene.producer.close(TIMEOUT_S)

    assert_complete_and_in_order(scene.arrived(SENDERS * 63), 63)
    assert sorted(scene.receipts) == list(range(1, 21))
    assert not [name for name in scene.producer.metrics() if "failed" in name]


def test_a_command_in_a_storm_stops_the_writes_until_the_window_ends(sending: Callable[..., Sending]) -> None:
    scene = sending(send_timeout_ms=0)
    has_begun, is_announced = threading.Event(), threading.Event()
    threads = storm(scene.producer, 200, has_begun, is_announced)
    assert has_begun.wait(TIMEOUT_S)
    announced_ms = time.time_ns() // 1_000_000
    scene.producer.on_command(1, 0, 0, 500)
    is_announced.set()
    end_ms = announced_ms + 500
    for thread in threads:
        thread.join(TIMEOUT_S)
    scene.producer.close(TIMEOUT_S)

    arrived = scene.arrived(SENDERS * 200)
    assert_complete_and_in_order(arrived, 200)
    written = [message.sent_ms for message in arrived]
    assert [ms for ms in written if scene.receipts[1] < ms < end_ms - CLOCKS_MS] == []
    assert min(written) <= scene.receipts[1] < end_ms <= max(written)


def test_close_waits_for_the_end_of_the_window_and_loses_nothing(sending: Callable[..., Sending]) -> None:
    scene = sending()
    scene.producer.on_command(1, 0, 0, 300)
    ended: list[object] = []
    for number in range(200):
        scene.producer.send(str(number).encode()).add_done_callback(lambda done: ended.append(done.exception()))
    scene.producer.close(TIMEOUT_S)

    assert ended == [None] * 200
    assert [message.payload for message in scene.arrived(200)] == [str(number) for number in range(200)]


def test_close_that_does_not_wait_fails_what_the_window_holds_and_writes_nothing_of_it(
    sending: Callable[..., Sending],
) -> None:
    scene = sending()
    scene.producer.send(b"before").result(TIMEOUT_S)
    scene.producer.on_command(1, 0, 0, 20_000)
    futures = [scene.producer.send(b"in the window") for _ in range(50)]
    unsent = scene.producer.close(0)

    assert {type(future.exception(0)) for future in futures} == {ProducerClosedError}
    assert unsent == Unsent(not_written=50, not_acknowledged=0)
    assert [message.payload for message in scene.arrived(1)] == ["before"]


def test_close_without_waiting_fails_what_the_library_has_not_sent_and_drops_it(
    sending: Callable[..., Sending],
) -> None:
    scene = sending(late=True)
    future = scene.producer.send(b"late")
    assert scene.producer.close(0) == Unsent(not_written=0, not_acknowledged=1)
    assert type(future.exception(0)) is ProducerClosedError
    assert scene.arrived(0) == []


def test_close_sends_what_waits_for_company(sending: Callable[..., Sending]) -> None:
    scene = sending(late=True)
    started_ns = time.monotonic_ns()
    future = scene.producer.send(b"late")
    scene.producer.close(TIMEOUT_S)
    assert wait_ms(future, started_ns) < LATE_MS
    assert [message.payload for message in scene.arrived(1)] == ["late"]


def test_a_window_longer_than_the_send_timeout_fails_a_message_at_once(sending: Callable[..., Sending]) -> None:
    scene = sending(send_timeout_ms=1000)
    scene.producer.on_command(1, 0, Reason.ResourceGroupProduceQuotaExceeded, 30_000)
    error = scene.producer.send(b"a").exception(0)

    assert isinstance(error, ProducerThrottledError)
    assert (error.reason, error.immediate) == (HeldReason.GROUP_QUOTA, True)
    throttle = scene.producer.throttle()
    assert throttle is not None
    assert throttle.reason is HeldReason.GROUP_QUOTA
    assert error.remaining_ms >= throttle.remaining_ms > 0
    assert scene.arrived(0) == []


def test_a_message_that_was_throttled_for_most_of_its_time_blames_the_throttle(
    sending: Callable[..., Sending],
) -> None:
    scene = sending(send_timeout_ms=2000)
    scene.producer.on_command(1, 0, 0, 1900)
    future = scene.producer.send(b"a")
    scene.producer.on_command(2, 0, 0, 4000)
    error = future.exception(TIMEOUT_S)

    assert isinstance(error, ProducerThrottledError)
    assert (error.throttled_ms, error.timeout_ms, error.immediate) == (2000, 2000, False)
    scene.producer.close(0)
    assert scene.arrived(0) == []


@pytest.mark.parametrize(
    ("pause_ms", "kind"), [(0, SendTimeoutError), (250, SendTimeoutError), (900, ProducerThrottledError)]
)
def test_a_message_that_the_broker_does_not_acknowledge_fails_by_what_took_its_time(
    sending: Callable[..., Sending], pause_ms: int, kind: type[Exception]
) -> None:
    scene = sending(late=True, send_timeout_ms=1000, zero_pause="ignore")
    future = scene.producer.send(b"a")
    scene.producer.on_command(1, 0, 0, pause_ms)
    error = future.exception(TIMEOUT_S)

    assert type(error) is kind
    assert error.throttled_ms <= pause_ms


def test_messages_pass_over_throttled_partitions_but_not_those_with_a_key(
    side: Side, sending: Callable[..., Sending]
) -> None:
    scene = sending(PARTITIONS)
    for request_id, partition in enumerate((1, 3), 1):
        scene.producer.on_command(request_id, partition, 0, 3000)
    for number in range(40):
        scene.producer.send(f"free {number}".encode())
    keyed = [scene.producer.send(f"key {number}".encode(), **side.key(f"key {number}")) for number in range(40)]
    assert scene.producer.is_throttled()
    assert [future for future in keyed if not future.done()]
    scene.producer.close(TIMEOUT_S)

    arrived = scene.arrived(80)
    assert Counter(each.partition for each in arrived if each.payload.startswith("free")) == {0: 20, 2: 20}
    assert {each.partition for each in arrived if each.payload.startswith("key")} == set(range(PARTITIONS))


@pytest.mark.kafka
def test_a_key_of_kafka_goes_where_its_own_partitioner_sends_it(kafka_broker: str) -> None:
    with ExitStack() as stack:
        side = KafkaSide(kafka_broker, stack)
        scene = Sending(side, PARTITIONS)
        own = confluent_kafka.Producer({"bootstrap.servers": kafka_broker})
        for number in range(50):
            scene.producer.send(f"ours {number}".encode(), key=f"ключ {number}")
            own.produce(scene.topic, f"own {number}", key=f"ключ {number}")
        scene.producer.close(TIMEOUT_S)
        own.flush(TIMEOUT_S)
        places = {message.payload: message.partition for message in scene.arrived(100)}
    assert all(places[f"ours {number}"] == places[f"own {number}"] for number in range(50))


class CountedLibrary(KafkaLibrary):
    """Says when it is done with a message."""

    def __init__(self, producer: confluent_kafka.Producer, settings: Settings) -> None:
        self.done = threading.Semaphore(0)
        super().__init__(producer, settings)

    def write(self, producer_id: int, payload: Any, options: Any, completed: Completed) -> None:
        def counted(result: object, error: BaseException | None) -> None:
            completed(result, error)
            self.done.release()

        super().write(producer_id, payload, options, counted)


@pytest.mark.kafka
def test_what_timed_out_in_an_outage_is_not_stored_after_it_but_for_what_was_in_flight(tmp_path: Path) -> None:
    port, controller = free_ports(2)
    broker = {"KAFKA_PORT": port, "KAFKA_CONTROLLER_PORT": controller, "KAFKA_RUN": tmp_path / "run"}
    with ExitStack() as stack:
        stack.enter_context(started("kafka-broker.sh", "Kafka broker", START_TIMEOUT_S, tmp_path, **broker))
        side = KafkaSide(f"127.0.0.1:{port}", stack)
        topic = side.topic(1)
        settings = ClientSettings.of({"producers": {0: topic}, "send_timeout_ms": 2000})
        options = {"bootstrap.servers": side.address, "max.in.flight": 1, "batch.num.messages": 10}
        library = CountedLibrary.open(options, settings)
        producer = stack.enter_context(RateLimitedProducer(library, settings, receipts=print))
        producer.send(b"before").result(TIMEOUT_S)
        pid = int((tmp_path / "run" / "pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            lost = [producer.send(f"lost {number}".encode()) for number in range(100)]
            assert {type(future.exception(TIMEOUT_S)) for future in lost} == {SendTimeoutError}
            assert all(library.done.acquire(timeout=TIMEOUT_S) for _ in ["before", *lost])
        finally:
            os.kill(pid, signal.SIGCONT)
        producer.send(b"after").result(TIMEOUT_S)

        stored = [message.payload for message in side.arrived(topic, 1, 2)]
    assert [stored[0], stored[-1]] == ["before", "after"]
    assert set(stored[1:-1]) <= {f"lost {number}" for number in range(10)}, "no more than one batch was in flight"


@pytest.mark.kafka
def test_a_limiters_mark_stops_a_real_producer_through_the_gate_and_the_receipt_is_in_time(kafka_broker: str) -> None:
    """All of the protocol: a mark, the broker's machine, a frame, the wrapper, its receipt as a frame."""
    patient = BrokerSettings(receipt_wait_ms=30_000)  # by default 100, in which a busy machine may not answer
    gate = MachineGate(GateSettings.of({"--port": 0}), patient)
    with ExitStack() as stack:
        stack.enter_context(running(gate))
        client = stack.enter_context(gate.client("c"))
        side = KafkaSide(kafka_broker, stack)
        topic = side.topic(1)
        settings = ClientSettings.of({"producers": {1: topic}})
        producer = RateLimitedProducer(side.library(settings), settings, receipts=client.answer)
        stack.enter_context(producer)
        threads = storm(producer, 100)

        gate.mark("c", balance=-29)
        told = client.told()
        told_ms = time.time_ns() // 1_000_000
        producer.on_command(told.request_id, told.producer_id, told.reason, told.pause_ms)
        gate.await_that(lambda: gate.feed.view("c")["producers"]["1"]["state"] == "C", "the receipt")
        receipt_ms = time.time_ns() // 1_000_000
        for number in range(10):
            producer.send(f"held {number}".encode())
        gate.unmark("c")
        for thread in threads:
            thread.join(TIMEOUT_S)
        producer.close(TIMEOUT_S)
        arrived = side.arrived(topic, 1, SENDERS * 100 + 10)

        held = [each for each in arrived if each.payload.startswith("held")]
        assert [each.payload for each in held] == [f"held {number}" for number in range(10)]
        assert_complete_and_in_order([each for each in arrived if each not in held], 100)
        assert told.pause_ms == 300
        end_ms = told_ms + 300 - CLOCKS_MS
        assert [each for each in arrived if receipt_ms < each.sent_ms < end_ms] == []
        assert gate.count("headgate.broker.throttle.receipt.count{outcome=in_time}") == 1
        assert gate.reads("c") == "on"
