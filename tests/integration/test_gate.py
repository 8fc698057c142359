"""The gate with real sockets on loopback: commands and receipts in frames, and clients that do what they should not."""

import gc
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gate_clients import TIMEOUT_S, Client, MachineGate, running, words_of
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.connection import HANG_UP_CHECK_MS
from headgate.gate.settings import GateSettings
from headgate.wire import Command, Frame, ThrottleProducer, pulsar_commands
from headgate.wire.throttle_pb2 import BaseCommand

WAIT_S = 0.5
BROKER = BrokerSettings.of({"throttleProducerReceiptWaitTimeMillis": 500})
"""Five times the default: the clients of these tests share their process with the gate, and the machine with others."""
IN_TIME = "headgate.broker.throttle.receipt.count{outcome=in_time}"
FALLBACKS = "headgate.broker.throttle.fallback.count{cause=no_receipt}"
QUICK = {"--port": 0, "--handshake-timeout-ms": 600, "--idle-timeout-ms": 1000, "--write-buffer-bytes": 2048}


def gate_of(**settings: object) -> MachineGate:
    options = {f"--{name.replace('_', '-')}": value for name, value in settings.items()}
    return MachineGate(GateSettings.of({"--port": 0} | options), BROKER)


@pytest.fixture
def gate() -> Iterator[MachineGate]:
    with running(gate_of()) as gate:
        yield gate


@pytest.fixture
def quick_gate() -> Iterator[MachineGate]:
    """One whose patience ends after 200 ms, or 400 ms of an open connection."""
    with running(MachineGate(GateSettings.of(QUICK), BROKER)) as gate:
        yield gate


def test_a_command_and_its_receipt_travel_as_frames_within_the_wait(gate: MachineGate) -> None:
    with gate.client("c") as client:
        gate.mark("c")
        assert client.told() == ThrottleProducer(1, 1, Reason.TopicProduceQuotaExceeded, 10_000)
        client.answer(1)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")

        assert (gate.phase("c"), gate.reads("c")) == ("C", "on")


def test_without_a_receipt_reads_go_off_after_the_wait_and_not_before(gate: MachineGate) -> None:
    with gate.client("c") as client:
        before_s = time.monotonic()
        gate.mark("c")
        gate.await_that(lambda: gate.feed.view("c")["reads"] == "off", "the end of reads")

        assert time.monotonic() - before_s >= WAIT_S - 0.001  # the gate counts whole milliseconds
        client.send(pulsar_commands.ping())
        assert client.told().request_id == 1
        assert client.hears_nothing_for(1.5 * WAIT_S)
        gate.unmark("c")
        heard = client.heard()
        assert heard is not None
        assert heard.type == BaseCommand.PONG


def test_a_client_without_the_flag_is_never_told_and_is_not_read_until_it_is_released(gate: MachineGate) -> None:
    with gate.client("c", supports=False) as client:
        gate.mark("c")
        client.send(pulsar_commands.ping())
        assert client.hears_nothing_for(WAIT_S / 2)
        gate.unmark("c")
        heard = client.heard()

        assert heard is not None
        assert heard.type == BaseCommand.PONG


def test_a_receipt_that_lies_in_the_socket_while_reads_are_off_is_in_time(gate: MachineGate) -> None:
    """Reads are off for longer than the wait; what other commands the client sent meanwhile is in its way, too."""
    with gate.client("c") as client:
        gate.mark("c", is_condition_set=True)
        assert client.told().request_id == 1
        for _ in range(2000):
            client.send(pulsar_commands.pong())
        client.answer(1)
        assert client.hears_nothing_for(1.5 * WAIT_S)
        assert gate.phase("c") == "W"
        gate.condition("c", is_set=False)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")

        assert (gate.count(FALLBACKS), gate.phase("c")) == (0, "C")


def test_the_connections_of_a_gate_are_throttled_apart(gate: MachineGate) -> None:
    with gate.client("a") as noisy, gate.client("b") as neighbour:
        gate.mark("a")
        gate.await_that(lambda: gate.feed.view("a")["reads"] == "off", "the end of reads")
        neighbour.round_trip()

        assert noisy.told().request_id == 1


def test_a_name_is_one_clients_at_a_time(gate: MachineGate) -> None:
    with gate.client("c") as client, Client(gate.port) as second:
        assert "another client" in words_of(second.greet("c"))
        assert second.heard() is None
        client.round_trip()
        client.socket.close()
        gate.await_that(lambda: gate.gate.connections == 0, "the end of the connection")
        with gate.client("c") as third:
            third.round_trip()


def test_a_client_that_hung_up_while_reads_were_off_lets_its_name_go(gate: MachineGate) -> None:
    with gate.client("c", supports=False) as client:
        gate.mark("c")
        client.socket.close()
        gate.await_that(lambda: gate.gate.connections == 0, f"the check that comes every {HANG_UP_CHECK_MS} ms")

        assert gate.ended() == {"the client hung up": 1}


def talks(gate: MachineGate, client: Client) -> None:
    """Speaks well at first."""
    gate.mark("good", ordinal=1)
    assert client.told().request_id == 1
    client.answer(1)
    gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")


def nothing(client: Client) -> None:
    """Connects and sends no byte."""


def half_a_greeting(client: Client) -> None:
    client.socket.sendall(Frame(pulsar_commands.connect("c", supports_throttle_producer=True)).encode()[:9])


def garbage(client: Client) -> None:
    client.socket.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def oversized(client: Client) -> None:
    client.greet("bad")
    client.socket.sendall((2**31).to_bytes(4) + b"x" * 1000)


def bad_commands(client: Client) -> None:
    client.greet("bad")
    client.socket.sendall(Frame(b"\xff").encode() * 100)


def silence(client: Client) -> None:
    client.greet("bad")


@pytest.mark.parametrize("misbehave", [nothing, half_a_greeting, garbage, oversized, bad_commands, silence])
def test_a_client_that_misbehaves_loses_its_connection_and_disturbs_nobody(
    misbehave: Callable[[Client], None], quick_gate: MachineGate
) -> None:
    with Client(quick_gate.port) as bad:
        misbehave(bad)
        with quick_gate.client("good") as good:
            talks(quick_gate, good)
            while bad.heard() is not None:
                good.round_trip()
            good.round_trip()

            assert quick_gate.count(FALLBACKS) == 0
            assert quick_gate.do(lambda: quick_gate.gate.connections) == 1


def test_a_client_that_sends_byte_by_byte_has_no_more_time_than_others(quick_gate: MachineGate) -> None:
    """Bytes that make no frame keep nothing alive; the gate closes while they still come."""
    with Client(quick_gate.port) as slow, quick_gate.client("good") as good:
        slow.greet("bad")
        started_s, sent = time.monotonic(), 0
        while not quick_gate.ended():
            with suppress(ConnectionError):
                slow.socket.sendall(b"\x00\x00\x0f\xff"[sent : sent + 1] or b"x")
            sent += 1
            good.round_trip()

        assert time.monotonic() - started_s < 30
        assert quick_gate.ended() == {"idle": 1}


def test_a_client_that_never_reads_loses_its_connection_at_the_bound(quick_gate: MachineGate) -> None:
    with Client(quick_gate.port, receive_buffer=2048) as deaf, quick_gate.client("good") as good:
        deaf.greet("bad")
        while not quick_gate.ended():
            with suppress(ConnectionError):
                deaf.socket.sendall(Frame(pulsar_commands.ping()).encode() * 500)
            good.round_trip()

        assert quick_gate.ended() == {"the client does not read": 1}
        talks(quick_gate, good)


def test_a_flood_of_one_client_does_not_make_the_receipts_of_others_late(gate: MachineGate) -> None:
    with gate.client("flood") as flood, gate.client("good") as good:
        pongs = Frame(pulsar_commands.pong()).encode() * 20_000
        for ordinal in range(1, 11):
            flood.socket.sendall(pongs)
            gate.mark("good", ordinal=ordinal, balance=-1000 * ordinal)
            good.answer(good.told().request_id)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 10, "ten receipts")

        assert gate.count(FALLBACKS) == 0


def test_a_gate_that_is_full_says_so_and_has_room_again() -> None:
    with running(gate_of(max_connections=2)) as gate, ExitStack() as stack:
        first, _ = (stack.enter_context(gate.client(name)) for name in "ab")
        with Client(gate.port) as third:
            assert "--max-connections 2 is reached" in words_of(third.heard())
            assert third.heard() is None
        first.socket.close()
        gate.await_that(lambda: gate.gate.connections == 1, "the end of the connection")
        with gate.client("c") as fourth:
            fourth.round_trip()


REFUSED = "headgate.gate.connection.refused.count{why=max_handshakes_per_address}"


FIRST_REFUSED = "refused 1 since the last such line, the last from 127.0.0.2: --max-handshakes-per-address 5 is reached"


def connected(port: int, source: str) -> socket.socket:
    one = socket.socket()
    one.settimeout(TIMEOUT_S)
    one.bind((source, 0))
    one.connect(("127.0.0.1", port))
    return one


def test_an_address_that_says_nothing_keeps_none_of_another_out(certificate: tuple[Path, Path]) -> None:
    """Those above the bound are closed before TLS begins, and lines count all of them."""
    cert, key = certificate
    trust = ssl.create_default_context(cafile=cert)
    with running(gate_of(tls_cert=cert, tls_key=key, max_handshakes_per_address=5)) as gate, ExitStack() as stack:
        mute = [stack.enter_context(connected(gate.port, "127.0.0.2")) for _ in range(20)]
        for refused in mute[5:]:
            assert refused.recv(1) == b""
        with Client(gate.port, trust) as client:
            client.greet("c")
            client.round_trip()

            assert gate.do(gate.counters.values)[REFUSED] == 15
            assert gate.said[0] == FIRST_REFUSED
        for one in mute[:5]:
            one.close()
        gate.await_that(lambda: gate.gate.connections == 0, "the end of handshakes")
        with (
            connected(gate.port, "127.0.0.2") as plain,
            trust.wrap_socket(plain, server_hostname="localhost") as client,
        ):
            assert client.version() is not None
    counts = [int(line.split()[1]) for line in gate.said]
    assert (counts[0], sum(counts)) == (1, 15)


def test_a_handshake_that_fails_leaves_nothing_to_the_collector(certificate: tuple[Path, Path]) -> None:
    """TLS holds 256 KiB of buffers for each."""
    cert, key = certificate
    with running(gate_of(tls_cert=cert, tls_key=key)) as gate, Client(gate.port) as plain:
        gc.collect()
        gc.disable()
        try:
            garbage(plain)
            assert_closed(plain.socket)
            gate.await_that(lambda: not any(isinstance(one, SSLProtocol) for one in gc.get_objects()), "their end")
        finally:
            gc.enable()


def test_who_has_shown_no_token_takes_no_place_of_a_client_that_has(tmp_path: Path) -> None:
    """Three places, and room for five on their way: clients get in until they are three."""
    (tmp_path / "token").write_text("s3cret")
    settings = {"token_file": tmp_path / "token", "max_connections": 3, "max_handshakes": 5}
    with running(gate_of(**settings)) as gate, ExitStack() as stack:
        strangers = [stack.enter_context(Client(gate.port)) for _ in range(4)]
        for name in "abc":
            stack.enter_context(gate.client(name, token="s3cret"))
        assert "no more places: --max-connections 3 is" in words_of(strangers[0].greet("d", token="s3cret"))
        assert gate.do(gate.feed.names) == ["a", "b", "c"]
        assert gate.said == [
            "refused 1 since the last such line, the last from 127.0.0.1: --max-connections 3 is reached"
        ]


def test_clients_that_are_there_at_the_stop_are_told_nothing_more_and_closed() -> None:
    gate = gate_of()
    with running(gate):
        client = gate.client("c")
        gate.mark("c")
    with client:
        assert client.told().request_id == 1
        assert client.heard() is None


def test_frames_and_pauses_of_reads_go_through_tls(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    trust = ssl.create_default_context(cafile=cert)
    with (
        running(gate_of(tls_cert=cert, tls_key=key, write_buffer_bytes=2048)) as gate,
        Client(gate.port, trust) as client,
    ):
        welcome = client.greet("c")
        assert isinstance(welcome, Command)
        gate.do(lambda: gate.feed.open("c", 1, "t"))
        gate.mark("c", is_condition_set=True)
        client.answer(client.told().request_id)
        assert client.hears_nothing_for(1.5 * WAIT_S)
        assert gate.phase("c") == "W"
        gate.condition("c", is_set=False)
        gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 1, "the receipt")

        assert gate.count(FALLBACKS) == 0


def test_receipts_that_come_together_go_through_tls(certificate: tuple[Path, Path]) -> None:
    """Each is a record of its own, and the gate reads several at once."""
    cert, key = certificate
    with running(gate_of(tls_cert=str(cert), tls_key=str(key))) as gate:
        tls = ssl.create_default_context(cafile=str(cert))
        with Client(gate.port, tls) as client:
            client.greet("c")
            for producer in range(1, 11):
                gate.do(lambda producer=producer: gate.feed.open("c", producer, f"t{producer}"))
                gate.mark("c", producer)
            for request_id in [client.told().request_id for _ in range(10)]:
                client.answer(request_id)
            gate.await_that(lambda: gate.feed.metrics.values().get(IN_TIME) == 10, "the receipts")

            assert gate.count(FALLBACKS) == 0


def test_who_does_not_speak_tls_disturbs_nobody_who_does(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    trust = ssl.create_default_context(cafile=cert)
    settings = {"--tls-cert": cert, "--tls-key": key} | QUICK
    gate = MachineGate(GateSettings.of(settings), BROKER)
    with running(gate), Client(gate.port) as mute, Client(gate.port) as plain:
        plain.send(pulsar_commands.connect("c", supports_throttle_producer=True, connection="c"))
        with Client(gate.port, trust) as client:
            client.greet("c")
            client.round_trip()
            for bad in (mute, plain):
                assert_closed(bad.socket)
            gate.await_that(lambda: gate.gate.connections <= 1, "the end of the others")


def assert_closed(bad: socket.socket) -> None:
    """At its end, whatever TLS sent before."""
    try:
        while bad.recv(1000):
            pass
    except ConnectionResetError:
        pass


@pytest.mark.parametrize("shown", [None, "wrong", "s3cret "])
def test_a_wrong_token_is_refused_and_the_right_one_is_not(shown: str | None, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with running(gate_of(token_file=token)) as gate, Client(gate.port) as stranger:
        assert "token" in words_of(stranger.greet("c", token=shown))
        assert stranger.heard() is None
        with gate.client("c", token="s3cret") as client:
            client.round_trip()
