"""The options of a replay, of the command and of the job. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.options import add_strict
from headgate.rows.listing import FORMATS

DEFAULT_OUTPUT = "output/replay"
DESCRIPTION = """What would these limits do to recorded traffic, and what would others do instead?

The trace goes through the rules of the throttle job in event time, once for each --conf-dir, with brokers that share
quotas as they do live. Tables and an HTML report compare the folders: docs/replay.md. Without --input: a bundled trace.
"""


def add_replay_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `replay.asked.asked` takes."""
    parser.add_argument("--input", metavar="PATH", help="files, folder or Delta table")
    parser.add_argument(
        "--format", choices=FORMATS, help="default: by the names of the files, else as headgate.toml says"
    )
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help=f"new folder; default {DEFAULT_OUTPUT}")
    parser.add_argument("--conf-dir", action="append", metavar="DIR", help="one for each conf to try; default conf")
    add_strict(parser)
    parser.add_argument(
        "--traffic",
        choices=("offered", "admitted"),
        default="offered",
        help="offered (default): rows are what clients wanted; admitted: what brokers let in, as live",
    )
    parser.add_argument(
        "--delay-ms",
        type=int,
        metavar="MS",
        help="from the end of an epoch until the shares that follow from it hold; default: an interval of the trigger",
    )
