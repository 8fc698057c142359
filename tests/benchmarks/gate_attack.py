"""A gate under attack: half-open connections, then half TLS handshakes, from one address; honest clients from another.

    python tests/benchmarks/gate_attack.py [--half-open 2100] [--half-tls 1500] [--seconds 12] [--from 127.0.0.2]

The gate is a process of `headgate gate machine` with TLS and a token, and default limits. The attacker opens so many
connections at once and holds them: the first kind sends nothing, the second a ClientHello and no more. What the gate
closes is opened anew, up to 1,000 a second. Meanwhile an honest client connects five times a second and shows the
token. Its time is from the call of connect until CONNECTED is there.
"""

import argparse
import json
import multiprocessing
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from _bench import Results, parser

from headgate.gate.command import allow_descriptors
from headgate.wire import Frame, FrameReader, decode_command, pulsar_commands
from headgate.wire.throttle_pb2 import BaseCommand

LIB = Path(__file__).parents[2] / "lib"
TOKEN = "s3cret"
EVERY_S = 0.2
PATIENCE_S = 15.0
TURN_S = 0.1
ANEW_A_TURN = 100
SETTLE_S = 15.0
"""After an attack: longer than any handshake may take."""
MS = 1000.0
MIB = 1024.0


class Honest(NamedTuple):
    """times_s: of those that were let in. refused: those that were not, within PATIENCE_S."""

    times_s: list[float]
    refused: int


class Running(NamedTuple):
    """A gate: its process and ports."""

    process: subprocess.Popen[str]
    port: int
    control: int

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / MIB

    def refused(self) -> int:
        with socket.create_connection(("127.0.0.1", self.control)) as limiter, limiter.makefile("rb") as lines:
            limiter.sendall(json.dumps({"token": TOKEN}).encode() + b'\n{"kind": "counts"}\n')
            lines.readline()
            counts = json.loads(lines.readline())
        return sum(count for name, count in counts.items() if name.startswith("headgate.gate.connection.refused"))


@contextmanager
def gate_of(folder: Path) -> Iterator[Running]:
    pair = (folder / "cert.pem", folder / "key.pem")
    making = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost")
    names = ("-addext", "subjectAltName=DNS:localhost", "-out", str(pair[0]), "-keyout", str(pair[1]))
    subprocess.run([*making, *names], check=True, capture_output=True)
    (folder / "token").write_text(TOKEN)
    options = ("--tls-cert", str(pair[0]), "--tls-key", str(pair[1]), "--token-file", str(folder / "token"))
    command = [sys.executable, "-m", "headgate", "gate", "machine", "--port", "0", "--control-port", "0", *options]
    environment = os.environ | {"PYTHONPATH": str(LIB)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port, control = map(int, re.findall(r"port (\d+)", process.stdout.readline()))
            yield Running(process, port, control)
        finally:
            process.terminate()
            print(process.communicate()[0])


def client_hello() -> bytes:
    """What a client sends first."""
    context, sent = ssl.create_default_context(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


def attack(number: int, first: bytes, source: str, port: int, stop: Event) -> None:
    """The attacker's process: `number` connections that say `first` and no more, until `stop`."""
    allow_descriptors(number)
    held: list[socket.socket] = []
    is_first = True
    while not stop.is_set():
        held = [one for one in held if _is_open(one)]
        for _ in range(number if is_first else min(ANEW_A_TURN, number - len(held))):
            one = socket.socket()
            one.settimeout(PATIENCE_S)
            one.bind((source, 0))
            with suppress(OSError):
                one.connect(("127.0.0.1", port))
                one.sendall(first)
                held.append(one)
        is_first = False
        stop.wait(TURN_S)


def _is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


def honest(port: int, trust: ssl.SSLContext, seconds: float) -> Honest:
    """Clients that come one after the other and show the token."""
    times_s, refused, number = [], 0, 0
    end_s = time.monotonic() + seconds
    while (start_s := time.monotonic()) < end_s:
        number += 1
        try:
            _connect(port, trust, f"honest-{number}")
            times_s.append(time.monotonic() - start_s)
        except OSError:
            refused += 1
        time.sleep(max(0.0, start_s + EVERY_S - time.monotonic()))
    return Honest(times_s, refused)


def _connect(port: int, trust: ssl.SSLContext, name: str) -> None:
    said = pulsar_commands.connect("honest", supports_throttle_producer=True, connection=name, token=TOKEN)
    frames = FrameReader()
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    with trust.wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(Frame(said).encode())
        while received := client.recv(65536):
            for frame in frames.feed(received):
                if isinstance(frame, Frame) and decode_command(frame.command).type == BaseCommand.CONNECTED:
                    return
    raise ConnectionError("refused")


class Attacked(NamedTuple):
    """What one attack did. Memory in MiB: before it, the most during it, and SETTLE_S after it."""

    clients: Honest
    before_mib: float
    most_mib: float
    after_mib: float
    refused: int


def under(gate: Running, trust: ssl.SSLContext, number: int, first: bytes, options: argparse.Namespace) -> Attacked:
    before_mib, refused = gate.memory_mib(), gate.refused()
    context: Any = multiprocessing.get_context("spawn")
    stop = context.Event()
    attacker = context.Process(target=attack, args=(number, first, options.source, gate.port, stop))
    attacker.start()
    most_mib, clients = 0.0, Honest([], 0)
    end_s = time.monotonic() + options.seconds
    while time.monotonic() < end_s:
        some = honest(gate.port, trust, 1)
        clients = Honest(clients.times_s + some.times_s, clients.refused + some.refused)
        most_mib = max(most_mib, gate.memory_mib())
    stop.set()
    attacker.join()
    time.sleep(SETTLE_S)
    return Attacked(clients, before_mib, most_mib, gate.memory_mib(), gate.refused() - refused)


def report(results: Results, name: str, found: Attacked) -> list[str]:
    times_ms = sorted(time_s * MS for time_s in found.clients.times_s) or [PATIENCE_S * MS]
    results.measure(f"{name}: honest clients connect in", "ms", times_ms)
    results.measure(f"{name}: memory before, during, after", "MiB", [found.before_mib, found.most_mib, found.after_mib])
    results.check(f"{name}: all honest clients were let in", passed=not found.clients.refused)
    results.target(f"{name}: the longest", "ms", [times_ms[-1]], at_most=1000)
    results.target(f"{name}: memory that was not given back", "MiB", [found.after_mib - found.before_mib], at_most=32)
    cells = [f"{len(found.clients.times_s)}", f"{found.clients.refused}", f"{times_ms[len(times_ms) // 2]:.0f}"]
    memory = [f"{one:.0f}" for one in (found.before_mib, found.most_mib, found.after_mib)]
    return [name, *cells, f"{times_ms[-1]:.0f}", f"{found.refused:,}", *memory]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--half-open", type=int, default=2100, metavar="N")
    options.add_argument("--half-tls", type=int, default=1500, metavar="N")
    options.add_argument("--seconds", type=float, default=12.0, metavar="S", help="of each attack")
    options.add_argument("--from", dest="source", default="127.0.0.2", metavar="ADDRESS", help="the attacker's")
    arguments = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        gate_of(Path(folder)) as gate,
        Results("gate_attack", "The gate under attack", about=(__doc__ or "").split("\n\n")[2]) as results,
    ):
        trust = ssl.create_default_context(cafile=Path(folder) / "cert.pem")
        honest(gate.port, trust, 2)
        attacks = {"half-open": (arguments.half_open, b""), "half TLS": (arguments.half_tls, client_hello())}
        rows = [
            report(results, f"{number:,} {name}", under(gate, trust, number, first, arguments))
            for name, (number, first) in attacks.items()
        ]
        columns = ("attack", "let in", "not", "median ms", "longest ms", "refused", "MiB before", "during", "after")
        results.table("Honest clients, connections that were refused, and the gate's memory:", columns, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
