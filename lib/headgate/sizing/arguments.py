"""The options of a sweep, of the command and of the job. Nothing heavy is imported here: `--help` is quick."""

import argparse

from headgate.core.cache.traces.workload import Family, Sizes
from headgate.rows.listing import FORMATS
from headgate.sizing.lags import Lag, lags_of

DEFAULT_OUTPUT = "output/cache-sweep"
DESCRIPTION = """Which entry cache would this traffic have needed? Sizes, policies and keys side by side over one trace.

A trace of cache events, or made-up traffic, goes through every combination of --grid, beside the conf that broker.conf
in --conf-dir has now. Tables and an HTML report: docs/sizing.md. Without --input: made-up traffic.
"""
MADE_UP = {"family": Family.MIXED.value, "seeds": [1], "sizes": Sizes.EQUAL.value, "scale": 1}
"""Options of made-up traffic, with their defaults."""


def _lags(text: str) -> tuple[Lag, ...]:
    """Raises argparse's error."""
    try:
        return lags_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: times with a unit of ms, s, m or h, joined by commas, each once, as 0s,5s,10m"
        ) from None


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `sizing.asked.asked` takes."""
    parser.add_argument("--input", metavar="PATH", help="cache events: files, folder or Delta table")
    parser.add_argument("--format", choices=FORMATS, help="of --input; default by the names of its files, else json")
    parser.add_argument(
        "--output", metavar="DIR", help=f"new folder; default {DEFAULT_OUTPUT}, made anew if there is no --input"
    )
    parser.add_argument("--grid", default="conf/cache-sweep.toml", metavar="FILE", help="default conf/cache-sweep.toml")
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help="with the broker.conf of now; default conf")
    parser.add_argument(
        "--sample", type=int, default=1, metavar="N", help="one entry in N, in caches N times smaller; default 1: all"
    )
    made_up = parser.add_argument_group("made-up traffic, without --input")
    made_up.add_argument("--family", choices=tuple(map(str, Family)), help="default mixed")
    made_up.add_argument("--seeds", type=int, nargs="+", metavar="S", help="a broker each; default 1")
    made_up.add_argument("--sizes", choices=tuple(map(str, Sizes)), help="of entries; default equal")
    made_up.add_argument("--scale", type=int, metavar="N", help="N times the topics; default 1")
    parser.set_defaults(assume_lag=(), **MADE_UP)


def add_assumed_lags(parser: argparse.ArgumentParser) -> None:
    """Add --assume-lag, which the command alone has."""
    parser.add_argument(
        "--assume-lag",
        type=_lags,
        default=(),
        metavar="LAGS",
        help="--input has publishes alone, as the throttle job takes them, which cursors read so far behind: 0s,5s,10m",
    )
