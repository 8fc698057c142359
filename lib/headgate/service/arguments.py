"""The arguments of `headgate serve`. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.options import add_metrics_port, port

PORT = 8085


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what it takes."""
    parser.add_argument("output", metavar="OUTPUT", help="a job's --output; the job may start later")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; default: 127.0.0.1")
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help=f"default: {PORT}; 0: any that is free")
    add_metrics_port(parser)
    parser.add_argument("--conf-dir", metavar="DIR", help="the job's, if its broker.conf has keys of resource groups")
    parser.add_argument("--token-file", metavar="FILE", help="tokens of administrators, one a line")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate in PEM, with those between it and its root")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
