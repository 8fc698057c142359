"""The arguments of `headgate demo`. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.options import port
from headgate.service.arguments import PORT


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what it takes."""
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help=f"of the page; default: {PORT}; 0: any")
