"""`headgate gate` as a process: its first line, its control port, its refusals and its end."""

import signal
import socket
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gate_clients import TIMEOUT_S, Client
from gate_processes import COMMAND, ENVIRONMENT, Limiter, machine, started
from headgate.protocol.schemas import DECISIONS
from headgate.wire.throttle_pb2 import BaseCommand
from real_broker import free_ports

MARK = {
    "kind": "mark",
    "topic": "t",
    "trips": [{"reason": "TOPIC_PUBLISH_RATE", "ordinal": 1, "buckets": [{"balance": 0, "rate": 1}]}],
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with machine() as (process, (port, control)), Client(port) as client, Limiter(control) as limiter:
        client.greet("c")
        assert limiter.say(kind="connections") == {"connections": ["c"]}
        process.send_signal(number)
        said, errors = process.communicate(timeout=TIMEOUT_S)

        assert (process.returncode, errors) == (0, "")
        assert "gate: stopped" in said
        assert "headgate.gate.connection.ended.count{why=the gate stopped} 1" in said
        assert client.heard() is None


def test_limiters_drive_it_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("throttleProducerReceiptWaitTimeMillis=5000\n")
    (metrics,) = free_ports(1)
    with (
        machine("--conf-dir", str(tmp_path), "--metrics-port", str(metrics)) as (_, (port, control)),
        Client(port) as client,
        Limiter(control) as limiter,
    ):
        client.greet("c")
        assert limiter.say(kind="open", connection="c", producer_id=1, topic="t") == {"ok": True}
        assert limiter.say(connection="c", **MARK) == {"ok": True}
        assert client.told().pause_ms == 1000
        client.answer(1)
        client.round_trip()
        view = limiter.say(kind="probe", connection="c")

        assert (view["reads"], view["producers"][0]["topic"], view["producers"][0]["state"]) == ("on", "t", "C")
        assert view["producers"][0]["held"] == ["TOPIC_PUBLISH_RATE"]
        counts = limiter.say(kind="counts")
        assert counts["headgate.broker.throttle.receipt.count{outcome=in_time}"] == 1
        assert counts["headgate.broker.throttle.command.count{kind=start,reason=TOPIC_PUBLISH_RATE}"] == 1
        with urlopen(f"http://127.0.0.1:{metrics}/metrics") as told:
            start = 'headgate_broker_throttle_command_total{kind="start",reason="TOPIC_PUBLISH_RATE"} 1.0'
            assert start in told.read().decode()
        unmark = {"connection": "c", "kind": "unmark", "reason": "TOPIC_PUBLISH_RATE", "ordinal": 1}
        assert limiter.say(**unmark, topic="u") == {"error": "unknown_producer"}
        assert limiter.say(connection="x", **MARK) == {"error": "unknown_connection"}
        assert limiter.say(kind="probe", connection="x") == {"error": "unknown_connection"}
        assert "did you mean" in limiter.say(connection="c", kind="unmark", topics="t")["error"]
        assert "connection: got {}" in limiter.say(kind="probe", connection={})["error"]
        assert "no JSON" in limiter.say_line(b"{\n")["error"]
        assert "65536 bytes" in limiter.say_line(b"x" * 70_000)["error"]
        assert limiter.is_closed()
        client.round_trip()


def test_a_limiter_that_subscribed_hears_who_comes_and_goes_and_when_reads_pause() -> None:
    """First what still holds, then the answer, then what happens; one that never subscribed hears nothing."""
    with (
        machine() as (_, (port, control)),
        Client(port) as first,
        Limiter(control) as limiter,
        Limiter(control) as deaf,
    ):
        first.greet("a", supports=False)
        limiter.say(kind="open", connection="a", topic="t", producer="p", producer_id=1)
        limiter.say(connection="a", producer="p", **MARK)
        heard = [limiter.say(kind="subscribe"), limiter.hears(), limiter.hears()]
        with Client(port) as second:
            second.greet("b")
            heard.append(limiter.hears())
        heard += [limiter.hears()]
        limiter.say(kind="unmark", connection="a", topic="t", producer="p", reason="TOPIC_PUBLISH_RATE", ordinal=1)
        heard.append(limiter.hears())
        kept = [{name: value for name, value in row.items() if name not in ("at_ms", "off_ms")} for row in heard]

        assert kept[:3] == [
            {"event": "joined", "connection": "a", "supports_throttle": False},
            {"event": "reads_paused", "connection": "a", "cause": "no_support", "reason": "TOPIC_PUBLISH_RATE"}
            | {"topic": "t", "producer": "p"},
            {"ok": True},
        ]
        assert kept[3:5] == [
            {"event": "joined", "connection": "b", "supports_throttle": True},
            {"event": "left", "connection": "b"},
        ]
        assert deaf.say(kind="connections") == {"connections": ["a"]}


def test_limiters_show_the_token_as_well(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with machine("--token-file", str(token)) as (_, (_, control)), Limiter(control) as limiter:
        assert "token" in limiter.say(kind="connections")["error"]
        assert "token" in limiter.say(token="wrong")["error"]
        assert limiter.say(token="s3cret") == {"ok": True}
        assert limiter.say(kind="connections") == {"connections": []}


def test_the_conf_says_by_what_it_decides(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("throttleProducerReceiptWaitTimeMillis=0\n")
    conf = ("--conf-dir", str(tmp_path))
    with machine(*conf) as (_, (port, control)), Client(port) as client, Limiter(control) as limiter:
        client.greet("c")
        limiter.say(kind="open", connection="c", producer_id=1, topic="t")
        limiter.say(connection="c", **MARK)

        assert limiter.say(kind="probe", connection="c")["reads"] == "off"


def refused(*arguments: str) -> str:
    """What it says on its way out with status 2."""
    done = subprocess.run(
        [*COMMAND, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("option", ["--port", "--control-port"])
def test_a_port_in_use_is_said(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ports = {"--port": "0", "--control-port": "0"} | {option: port}
        said = refused("machine", *(part for pair in ports.items() for part in pair))

    assert option in said
    assert f"127.0.0.1 port {port}" in said
    assert "in use" in said


def test_any_address_without_tls_and_token_is_refused() -> None:
    said = refused("machine", "--host", "0.0.0.0")
    assert "--tls-cert and --tls-key: got none with --host 0.0.0.0" in said
    assert "--token-file: got none" in said


def test_more_connections_than_the_system_allows_are_refused() -> None:
    command = f"ulimit -n 200; exec {' '.join(COMMAND)} machine --port 0 --control-port 0 --max-connections 500"
    done = subprocess.run(
        ["bash", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 2
    assert "--max-handshakes: got 750 together" in done.stderr


def test_an_output_without_the_table_is_refused(tmp_path: Path) -> None:
    assert "jobs/protocol.py" in refused("table", str(tmp_path))


def test_places_that_libraries_would_take_for_others_are_refused(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path / "throttle_decisions"), schema=DECISIONS)
    assert "OUTPUT: got FILE:///tmp; " in refused("table", "FILE:///tmp")
    assert "--receipts: got file:in; " in refused("table", str(tmp_path), "--receipts", "file:in")


def test_it_sends_what_a_job_decided_and_what_is_in_force_after_a_restart(tmp_path: Path) -> None:
    location = str(tmp_path / "throttle_decisions")
    DeltaTable.create(location, schema=DECISIONS)
    command = {"connection": "c", "kind": "command", "producer_id": 1, "reason": 0, "at_ms": 0}
    for seq in (1, 2):
        row = command | {"seq": seq, "request_id": seq, "pause_for_millis": 2**62, "until_ms": 2**62}
        write_deltalake(location, pa.Table.from_pylist([row], DECISIONS), mode="append")
        with (
            started("table", str(tmp_path), "--port", "0", "--poll-ms", "10") as (process, (port,)),
            Client(port) as client,
        ):
            welcome = client.greet("c")
            assert welcome is not None
            assert welcome.type == BaseCommand.CONNECTED
            assert [client.told().request_id for _ in range(seq)] == list(range(1, seq + 1))
            process.terminate()
            said, _ = process.communicate(timeout=TIMEOUT_S)
            assert f"headgate.gate.command.count{{outcome=sent}} {seq}" in said


def test_two_gates_serve_one_table(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path / "throttle_decisions"), schema=DECISIONS)
    with started("table", str(tmp_path), "--port", "0"), started("table", str(tmp_path), "--port", "0"):
        assert sorted(one.name for one in tmp_path.iterdir()) == ["throttle_decisions"]
