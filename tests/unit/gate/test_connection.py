"""A client's socket, whose other end and whose time the test moves."""

from typing import Any

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.connection import CATCH_UP_BYTES, LINGER_MS, READ_BYTES, ClientConnection, Host
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.session import Rules
from headgate.wire import Frame, pulsar_commands
from unit.gate.driven import HandClock


class Socket:
    """A transport whose other end takes nothing: once it is closing, nothing but `abort` ends it."""

    def __init__(self) -> None:
        self.is_closed = self.is_aborted = False

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing is written above them here."""

    def get_extra_info(self, _: str) -> None:
        """No TLS, and no socket."""

    def write(self, _: bytes) -> None:
        """It waits."""

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    resume_reading = pause_reading

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True


def host_of(clock: HandClock) -> Host:
    feed = MachineFeed(BrokerSettings(), clock, BrokerMetrics())
    return Host(Rules(), feed, clock, Counters(), write_buffer_bytes=2**16)


def joined(host: Host, name: str) -> tuple[ClientConnection, Socket]:
    connection, socket = ClientConnection(host, lambda: None, lambda: None), Socket()
    transport: Any = socket
    connection.connection_made(transport)
    read(connection, Frame(pulsar_commands.connect("x", supports_throttle_producer=True, connection=name)).encode())
    return connection, socket


def read(connection: ClientConnection, received: bytes) -> None:
    connection.get_buffer(-1)[: len(received)] = received
    connection.buffer_updated(len(received))


def test_connections_whose_reads_come_on_read_all_at_once_into_one_buffer() -> None:
    """A client that says nothing then keeps its turn to catch up, and that costs no memory."""
    host = host_of(HandClock())
    clients = [joined(host, name)[0] for name in "abc"]
    for client in clients:
        client.stop_reading()
        client.resume_reading()
    buffers = [client.get_buffer(-1) for client in clients]

    assert [len(one) for one in buffers] == [CATCH_UP_BYTES] * 3
    assert len({id(one.obj) for one in buffers}) == 1
    read(clients[0], Frame(pulsar_commands.ping()).encode())
    assert [len(one.get_buffer(-1)) for one in clients] == [READ_BYTES, CATCH_UP_BYTES, CATCH_UP_BYTES]


def test_a_connection_that_is_ending_has_its_time_however_often_its_reads_go_off_and_on() -> None:
    clock = HandClock()
    connection, socket = joined(host_of(clock), "c")
    connection.end("a reason")
    for at_ms in range(0, LINGER_MS, 100):
        clock.pass_to(at_ms)
        connection.stop_reading()
        connection.resume_reading()
        assert not socket.is_aborted
    clock.pass_to(LINGER_MS)

    assert socket.is_aborted
