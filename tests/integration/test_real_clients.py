"""Real brokers: the clients of the extra `client` send to them, and Pulsar hears the protocol's frames."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import confluent_kafka
import pulsar
import pytest

from headgate.core.protocol.reasons import Reason
from headgate.wire import (
    Command,
    Connect,
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
    pulsar_commands,
    throttle_producer,
    throttle_producer_receipt,
)
from headgate.wire.throttle_pb2 import BaseCommand, CommandConnected
from pulsar_standalone import Pulsar

MESSAGES = [f"message {number}".encode() for number in range(10)]
TIMEOUT_S = 30
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def test_confluent_kafka_sends_to_a_broker_without_a_send_timeout(kafka_broker: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker, "message.timeout.ms": 0})
    delivered = []
    for message in MESSAGES:
        producer.produce("real-clients", message, callback=lambda error, sent: delivered.append((error, sent.value())))

    assert producer.flush(TIMEOUT_S) == 0
    assert delivered == [(None, message) for message in MESSAGES]


def test_pulsar_client_sends_to_a_broker_without_a_send_timeout(pulsar_standalone: Pulsar) -> None:
    with closing(pulsar.Client(pulsar_standalone.service_url, logger=QUIET)) as client:
        producer = client.create_producer("real-clients", send_timeout_millis=0)
        results = []
        for message in MESSAGES:
            producer.send_async(message, lambda result, _id: results.append(result))
        producer.flush()
        reader = client.create_reader("real-clients", pulsar.MessageId.earliest)
        received = [reader.read_next(TIMEOUT_S * 1000).data() for _ in MESSAGES]

    assert (results, received) == ([pulsar.Result.Ok] * len(MESSAGES), MESSAGES)


class Conversation:
    """A connection to a broker, command by command."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FrameReader()

    def send(self, command: bytes) -> None:
        self._connection.sendall(Frame(command).encode())

    def answer(self) -> Command | None:
        """The one frame that comes next, None at the end of the stream."""
        while received := self._connection.recv(65536):
            for frame in self._reader.feed(received):
                assert isinstance(frame, Frame)
                return decode_command(frame.command)
        return None


@pytest.fixture
def conversation(pulsar_standalone: Pulsar) -> Iterator[Conversation]:
    with socket.create_connection(("127.0.0.1", pulsar_standalone.port), TIMEOUT_S) as connection:
        yield Conversation(connection)


@pytest.mark.parametrize("supports", [True, False])
def test_a_broker_without_support_talks_to_a_client_with_and_without_the_flag(
    conversation: Conversation, supports: bool
) -> None:
    """Row 4 of throttle-protocol 16: to such a broker the flag is an unknown field."""
    conversation.send(pulsar_commands.connect("headgate", supports_throttle_producer=supports))
    connected = conversation.answer()
    conversation.send(pulsar_commands.ping())

    assert connected is not None
    assert connected.type == BaseCommand.CONNECTED
    assert conversation.answer() == Command(BaseCommand.PONG, b"")


def test_flag_6_of_a_real_broker_is_not_the_feature(conversation: Conversation) -> None:
    conversation.send(pulsar_commands.connect("headgate", supports_throttle_producer=True))
    connected = conversation.answer()
    assert connected is not None
    flags = CommandConnected.FromString(connected.message).feature_flags

    assert b"\x30\x01" in flags.SerializeToString()
    assert not flags.supports_throttle_producer_commands


def test_a_receipt_ends_the_connection_to_a_broker_without_support(conversation: Conversation) -> None:
    """Why only what was asked is answered: such a broker cannot parse the type."""
    conversation.send(pulsar_commands.connect("headgate", supports_throttle_producer=True))
    conversation.answer()
    conversation.send(throttle_producer_receipt(Receipt(1)))

    assert conversation.answer() is None


@pytest.fixture
def called() -> Iterator[Conversation]:
    """What a broker hears of Pulsar's own client, which wants to open a producer."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(TIMEOUT_S)
        client = pulsar.Client(f"pulsar://127.0.0.1:{server.getsockname()[1]}", logger=QUIET)
        pool.submit(client.create_producer, "real-clients")
        connection, _ = server.accept()
        with connection:
            connection.settimeout(TIMEOUT_S)
            yield Conversation(connection)
            client.shutdown()


def test_a_real_client_does_not_set_the_flag(called: Conversation) -> None:
    """Row 2 of throttle-protocol 16."""
    connect = called.answer()

    assert connect is not None
    assert connect.type == BaseCommand.CONNECT
    assert not Connect.decode(connect.message).supports


def test_a_command_ends_the_connection_to_a_client_without_support(called: Conversation) -> None:
    """Why it is never sent to one that did not set the flag."""
    called.answer()
    called.send(pulsar_commands.connected("headgate", protocol_version=21, max_message_size=5242880))
    called.answer()  # what it asks of the topic
    called.send(pulsar_commands.ping())
    assert called.answer() == Command(BaseCommand.PONG, b"")

    called.send(throttle_producer(ThrottleProducer(1, 0, Reason.TopicProduceQuotaExceeded, 1000)))
    assert called.answer() is None
