"""The arguments of `headgate try`. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.options import add_strict
from headgate.rows.listing import FORMATS


def add_try_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `command.run` takes."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="traffic: a file, a folder of files, a pattern, a Delta table, or - for stdin; without it a bundled trace",
    )
    parser.add_argument(
        "--conf-dir",
        action="append",
        metavar="DIR",
        help="the limits to try; several are compared side by side; default conf",
    )
    parser.add_argument("--format", choices=FORMATS, help="default: by the names of the files")
    parser.add_argument(
        "--traffic",
        choices=("offered", "admitted"),
        default="offered",
        help="offered: rows are what clients want to send; admitted: rows are what brokers let in, as the throttle job "
        "has it by default; default offered, as for headgate replay",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="a new folder to keep the tables in; several confs: one below it each"
    )
    add_strict(parser)
    parser.add_argument("--watch", action="store_true", help="run again whenever a conf file is saved, until Ctrl-C")
    parser.add_argument(
        "--recommend",
        metavar="DIR",
        help="find the smallest limits of topics and tenants that will do, and write them to a new conf folder",
    )
    parser.add_argument(
        "--max-waiting-percent",
        type=float,
        metavar="X",
        help="with --recommend: at most X percent of a topic's or tenant's publishes may wait longer; default 1",
    )
    parser.add_argument(
        "--max-wait-ms", type=int, metavar="MS", help="with --recommend: longer than so many milliseconds; default 1000"
    )
