"""Arguments of `headgate gate`, which need no network to be understood."""

import argparse

from headgate.options import add_metrics_port

CONTROL_PORT = 6654
POLL_MS = 200


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what follows `headgate gate`."""
    modes = parser.add_subparsers(metavar="MODE", dest="mode", required=True)
    machine = modes.add_parser("machine", help="decide what clients are told, as limiters say what happens")
    machine.add_argument("--control-port", type=int, default=CONTROL_PORT, metavar="N", help=_of_control())
    machine.add_argument("--conf-dir", metavar="DIR", help="headgate.toml and broker.conf; without, their defaults")
    _common(machine)
    table = modes.add_parser("table", help="send what a job jobs/protocol.py has decided")
    table.add_argument("output", metavar="OUTPUT", help="the job's --output, with the table throttle_decisions")
    table.add_argument("--poll-ms", type=int, default=POLL_MS, metavar="N", help=f"default {POLL_MS}")
    table.add_argument("--receipts", metavar="TABLE", help="Delta table that receipts go to: the job's --input")
    _common(table)


def _of_control() -> str:
    return f"of JSON lines, on loopback; 0 is any that is free; default {CONTROL_PORT}"


def _common(parser: argparse.ArgumentParser) -> None:
    """Options of GateSettings, by its keys."""
    parser.add_argument("--host", metavar="ADDRESS", help="default 127.0.0.1; another needs TLS and a token")
    parser.add_argument("--port", type=int, metavar="N", help="default 6653; 0 is any that is free")
    add_metrics_port(parser)
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its key, PEM")
    parser.add_argument("--token-file", metavar="FILE", help="what clients have to show")
    parser.add_argument("--max-frame-bytes", type=int, metavar="N", help="default 16384")
    parser.add_argument("--handshake-timeout-ms", type=int, metavar="N", help="default 3000; TLS included")
    parser.add_argument("--idle-timeout-ms", type=int, metavar="N", help="default 60000; a PING is sent at half of it")
    parser.add_argument("--max-connections", type=int, metavar="N", help="default 2000, of clients that have joined")
    parser.add_argument("--max-handshakes", type=int, metavar="N", help="default 250, of those that have not, in all")
    parser.add_argument("--max-handshakes-per-address", type=int, metavar="N", help="default 50; IPv6: by /64")
    parser.add_argument("--write-buffer-bytes", type=int, metavar="N", help="default 65536, of each connection")
