"""The command line's view of a CacheTrace, beside the options of other traces, of which it takes some."""

import argparse
from collections.abc import Iterator
from dataclasses import fields

from headgate.cache.trace import CacheTrace
from headgate.core.cache.traces.workload import Family, Sizes
from headgate.errors import ConfError
from headgate.trace.spec import TraceSpec

_OWN = ("sizes", "scale")
_TAKEN = ("seed", *_OWN, "brokers", "files", "start")


def add_cache_options(parser: argparse.ArgumentParser) -> None:
    """Add --cache, and the options that only cache events have."""
    group = parser.add_argument_group("cache events", "with --seed (default 1), --brokers (1), --files and --start")
    group.add_argument(
        "--cache", choices=list(map(str, Family)), metavar="FAMILY", help=f"{', '.join(Family)}; docs/traces.md"
    )
    group.add_argument(
        "--sizes", choices=list(map(str, Sizes)), help="of entries: equal, all 1024 bytes, or skewed, many small"
    )
    group.add_argument("--scale", type=int, help="times as many topics")


def cache_trace_from(options: argparse.Namespace) -> CacheTrace:
    """The trace that parsed options ask for. Raises ConfError with all that does not go with --cache."""
    if wrong := list(_wrong(options)):
        raise ConfError(wrong)
    given = {name: getattr(options, name) for name in _TAKEN if getattr(options, name) is not None}
    return CacheTrace(family=options.cache, **given)


def check_without_cache(options: argparse.Namespace) -> None:
    """Raise ConfError for every option that only cache events have; for other traces, without --cache."""
    given = [(name, getattr(options, name)) for name in _OWN if getattr(options, name) is not None]
    if given:
        raise ConfError(
            [
                f"{name}: got {value} without --cache; allowed with it alone; leave it out, or give --cache"
                for name, value in given
            ]
        )


def _wrong(options: argparse.Namespace) -> Iterator[str]:
    others = [field.name for field in fields(TraceSpec) if field.name not in _TAKEN]
    for name in (*others, "rate"):
        if getattr(options, name) is not None:
            taken = ", ".join(f"--{option}" for option in _TAKEN)
            yield f"{name}: got {getattr(options, name)} with --cache; allowed: {taken}; leave it out"
    for name in ("brokers", "files"):
        number = getattr(options, name)
        if number is not None and number < 1:
            yield f"{name}: got {number}; allowed: an integer from 1; correct it"
    if options.format == "kafka":
        yield "format: got kafka with --cache; allowed: json, csv, parquet, delta; write files, and send their lines"
