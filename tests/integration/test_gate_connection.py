"""GateConnection and real gates: producers hear their commands, the gate its receipts, also after the gate was gone."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import pytest

from gate_clients import TIMEOUT_S, MachineGate, running
from headgate.client import ClientSettings, GateConnection, RateLimitedProducer, Throttle, gate_connection
from headgate.client.producer import ProducerOptions
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.settings import BrokerSettings
from headgate.core.reasons import HeldReason
from headgate.errors import InvalidArgument
from headgate.gate.settings import GateSettings
from unit.client.doubles import ToldLibrary

BROKER = BrokerSettings.of({"throttleProducerReceiptWaitTimeMillis": 5000})
"""Fifty times the default: these clients share their process with the gate, and the machine with others."""
IN_TIME = "headgate.broker.throttle.receipt.count{outcome=in_time}"


def gate_of(**settings: Any) -> MachineGate:
    options = {f"--{name.replace('_', '-')}": value for name, value in settings.items()}
    return MachineGate(GateSettings.of({"--port": 0} | options), BROKER)


@pytest.fixture
def gate() -> Iterator[MachineGate]:
    with running(gate_of()) as gate:
        yield gate


def producer_of(
    connection: GateConnection, number: int, **options: Unpack[ProducerOptions]
) -> tuple[RateLimitedProducer, ToldLibrary]:
    library = ToldLibrary(acknowledges=True)
    settings = ClientSettings.of({"producers": {number: f"t{number}"}})
    return connection.producer(library, settings, **options), library


def opened(gate: MachineGate, *numbers: int) -> None:
    for number in numbers:
        assert gate.do(lambda number=number: gate.feed.open("c", number, f"t{number}")) is None


def test_a_command_reaches_the_producer_that_it_names_and_the_gate_its_receipt(gate: MachineGate) -> None:
    with GateConnection("127.0.0.1", gate.port, "c") as connection:
        assert connection.wait_connected(TIMEOUT_S)
        (greedy, held), (innocent, free) = producer_of(connection, 0), producer_of(connection, 1)
        with greedy, innocent:
            opened(gate, 0, 1)
            gate.mark("c", producer=0)
            gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")
            greedy.send("waits")
            assert innocent.send("goes").result(TIMEOUT_S) == "goes stored"

            assert (held.written, free.written, gate.phase("c", 0)) == ([], ["goes"], "C")
            greedy.close(0)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (("", 6650, "c"), "host: got ''"),
        (("127.0.0.1", "6650", "c"), "port: got '6650'"),
        (("127.0.0.1", 0, "c"), "port: got 0"),
        (("127.0.0.1", 6650, ""), "connection: got ''"),
        (("127.0.0.1", 6650, None), "connection: got None"),
        (("127.0.0.1", 6650, "x" * 1025), "1 to 1024 bytes"),
    ],
)
def test_what_no_gate_can_be_asked_with_is_refused_at_once(place: tuple[Any, ...], says: str) -> None:
    threads = threading.active_count()
    with pytest.raises(InvalidArgument, match=says):
        GateConnection(*place)
    assert threads == threading.active_count()


def test_a_command_that_comes_before_its_producer_is_made_is_answered_and_obeyed(gate: MachineGate) -> None:
    """The machine trusts whoever has answered: it would take reads off from one that writes all the same."""
    with GateConnection("127.0.0.1", gate.port, "c") as connection:
        assert connection.wait_connected(TIMEOUT_S)
        opened(gate, 0)
        gate.mark("c", producer=0)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")
        heard: list[Throttle] = []
        producer, library = producer_of(connection, 0, on_throttle=heard.append)
        with producer:
            producer.send("waits")

            assert (producer.is_throttled(), library.written) == (True, [])
            assert gate.do(lambda: gate.feed.metrics.values()[IN_TIME]) == 1
            assert [key for key in connection.metrics() if "outcome=unknown_producer" in key]
            assert producer._clock is connection._clock, "what is left of a pause is told to the ms"
            producer.close(0)
        assert [throttle.reason for throttle in heard] == [HeldReason.TOPIC_PUBLISH_RATE]


def test_producers_send_without_a_gate_and_hear_the_one_that_comes_back() -> None:
    with running(gate_of()) as first:
        port = first.port
        connection = GateConnection("127.0.0.1", port, "c")
        producer, library = producer_of(connection, 0)
        assert connection.wait_connected(TIMEOUT_S)
        opened(first, 0)
        first.mark("c", producer=0, balance=1)
        first.await_that(lambda: IN_TIME in first.feed.metrics.values(), "the receipt")  # extensions follow soon
    with connection, producer:
        assert producer.send("alone").result(TIMEOUT_S) == "alone stored"
        with running(gate_of(port=port)) as second:
            second.await_that(lambda: second.feed.names() == ["c"], "the connection")
            opened(second, 0)
            second.mark("c", producer=0)
            second.await_that(lambda: second.feed.metrics.values().get(IN_TIME) == 1, "the receipt of command 1 again")

            assert producer.is_throttled()
            producer.close(0)
    assert library.written == ["alone"]


def test_a_gate_that_refuses_says_why(gate: MachineGate) -> None:
    with gate.client("c"), GateConnection("127.0.0.1", gate.port, "c") as second:
        gate.await_that(lambda: second.problem is not None and "another client" in second.problem, "the refusal")
        assert not second.wait_connected(0)


def test_tls_and_a_token(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    (tmp_path / "token").write_text("secret")
    protected = {"tls_cert": str(cert), "tls_key": str(key), "token_file": str(tmp_path / "token")}
    with running(gate_of(**protected)) as gate:
        tls = ssl.create_default_context(cafile=str(cert))
        with GateConnection("localhost", gate.port, "c", token="secret", tls=tls) as connection:
            assert connection.wait_connected(TIMEOUT_S), connection.problem
        with GateConnection("localhost", gate.port, "c", token="wrong", tls=tls) as refused:
            gate.await_that(lambda: "refused" in str(refused.problem), "the refusal")


def test_a_gate_that_asks_whether_its_client_is_there_is_answered() -> None:
    with running(gate_of(idle_timeout_ms=1000)) as gate, GateConnection("127.0.0.1", gate.port, "c") as connection:
        assert connection.wait_connected(TIMEOUT_S)
        later_s = time.monotonic() + 2.5
        gate.await_that(lambda: time.monotonic() > later_s, "the time of two timeouts and more")

        assert gate.ended() == {}


def test_a_closed_connection_leaves_no_thread_and_takes_receipts_without_a_word(gate: MachineGate) -> None:
    connection = GateConnection("127.0.0.1", gate.port, "c")
    assert connection.wait_connected(TIMEOUT_S)
    connection.close()
    connection.close()
    producer, library = producer_of(connection, 0)
    with producer:
        producer.on_command(1, 0, 0, 1)
        assert producer.send("goes").result(TIMEOUT_S) == "goes stored"

    assert library.written == ["goes"]
    assert "headgate-client-gate" not in {thread.name for thread in threading.enumerate()}
    gate.await_that(lambda: gate.gate.connections == 0, "the end of the connection")


def test_a_gate_that_has_reads_off_for_hours_is_not_left(gate: MachineGate) -> None:
    """It answers no PING then, and who hangs up has a new machine there, which holds nobody."""
    with GateConnection("127.0.0.1", gate.port, "c") as connection:
        assert connection.wait_connected(TIMEOUT_S)
        opened(gate, 0)
        gate.condition("c", is_set=True)
        for _ in range(3):
            an_hour_passes(connection)

        assert connection.wait_connected(0)
        assert gate.reads("c") == "off"


def an_hour_passes(connection: GateConnection) -> None:
    """All that the connection's loop waits for within an hour is due, and done."""
    loop, time_of = connection._loop, connection._loop.time
    loop.time = lambda: time_of() + 3600  # type: ignore[method-assign]
    for _ in range(10):
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(TIMEOUT_S)


def test_a_gate_whose_machine_is_gone_is_missed_by_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        gate_connection._keep_alive(client)

        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def test_commands_for_producers_in_turn_are_obeyed_and_answered_in_a_burst_while_threads_compute(
    gate: MachineGate,
) -> None:
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            sum(range(1000))

    def burst() -> None:
        for ordinal in range(1, 201):
            for number in (0, 1):
                gate.feed.mark("c", number, [Trip(0, ordinal, [(-1000 * ordinal, 100)])])

    with GateConnection("127.0.0.1", gate.port, "c") as connection:
        assert connection.wait_connected(TIMEOUT_S)
        producers = [producer_of(connection, number)[0] for number in (0, 1)]
        opened(gate, 0, 1)
        threads = [threading.Thread(target=compute) for _ in range(2)]
        for thread in threads:
            thread.start()
        gate.do(burst)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 400, "400 receipts")
        is_over.set()
        for producer, thread in zip(producers, threads, strict=True):
            assert producer.is_throttled()
            producer.close(0)
            thread.join()


def test_a_connection_that_is_not_enabled_is_never_told_and_its_reads_go_off(gate: MachineGate) -> None:
    settings = ClientSettings.of({"producers": {0: "t0"}, "enabled": False})
    with (
        GateConnection("127.0.0.1", gate.port, "c", enabled=False) as connection,
        connection.producer(ToldLibrary(), settings) as producer,
    ):
        assert connection.wait_connected(TIMEOUT_S)
        opened(gate, 0)
        gate.mark("c", producer=0)

        assert (gate.reads("c"), producer.is_throttled()) == ("off", False)
        assert gate.count("headgate.broker.throttle.fallback.count{cause=no_support}") == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_settings_that_do_not_fit_the_connection_are_refused(gate: MachineGate, enabled: bool) -> None:
    settings = ClientSettings.of({"producers": {0: "t0"}, "enabled": not enabled})
    with (
        GateConnection("127.0.0.1", gate.port, "c", enabled=enabled) as connection,
        pytest.raises(InvalidArgument, match="enabled"),
    ):
        connection.producer(ToldLibrary(), settings)


def test_ids_of_a_producer_that_could_not_be_made_are_there_for_the_next_try(gate: MachineGate) -> None:
    settings = ClientSettings.of({"producers": {0: "t0"}})
    with GateConnection("127.0.0.1", gate.port, "c") as connection:
        with pytest.raises(TypeError, match="conection"):
            connection.producer(ToldLibrary(), settings, conection="c")
        connection.producer(ToldLibrary(), settings, connection="c").close()


def test_what_listens_but_does_not_greet_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_connection, "ANSWER_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        connections = []
        with GateConnection("127.0.0.1", mute.getsockname()[1], "c") as connection:
            mute.settimeout(TIMEOUT_S)
            connections += [mute.accept()[0] for _ in range(2)]
            assert not connection.wait_connected(0)
        for accepted in connections:
            accepted.close()
