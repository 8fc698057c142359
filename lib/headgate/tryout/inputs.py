"""The input and the output of a trial: is it there, in which format, and is it small enough for one process."""

import shlex
from typing import NamedTuple

from headgate.rows.listing import STDIN, check_size, size_at

MOST_MIB = {"json": 40 * 1024, "csv": 20 * 1024, "parquet": 5 * 1024, "delta": 5 * 1024}
"""About a hundred million publishes each, which take ten minutes or more."""


class Source(NamedTuple):
    """Where the rows come from. is_demo: the bundled trace, of which each file is a batch. place: how the path was
    given, where it is a copy of what is on a store.
    """

    path: str
    format: str
    is_demo: bool = False
    place: str | None = None


def check_patience(path: str, format_: str, place: str) -> None:
    """Raise InputError for a trace that takes one process too long, with the command that fits it.

    place: how the path was given.
    """
    if path != STDIN:
        job = f"./spark-submit.sh jobs/throttle.py --input {shlex.quote(place)} --format {format_} --output DIR --once"
        check_size(
            f"PATH: {place}",
            size_at(path, format_),
            format_,
            MOST_MIB,
            f"run the job, which uses several cores and machines: {job}",
        )
