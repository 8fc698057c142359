"""The input and the output of a trial: is it there, in which format, and is it small enough for one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headgate.errors import InputError
from headgate.places import RUNNING, TRIED
from headgate.rows.listing import STDIN, check_size

MOST_MIB = {"json": 40 * 1024, "csv": 20 * 1024, "parquet": 5 * 1024, "delta": 5 * 1024}
"""About a hundred million publishes each, which take ten minutes or more."""


class Source(NamedTuple):
    """Where the rows come from. is_demo: the bundled trace, of which each file is a batch."""

    path: str
    format: str
    is_demo: bool = False


@contextmanager
def claimed(output: str | None) -> Iterator[None]:
    """While the block runs, no other run takes the folder `output`, which is made. Raises InputError where it cannot
    be made or written to, or another run has it. None: nothing to do.
    """
    if output is None:
        yield
        return
    claim = Path(output, RUNNING)
    try:
        claim.parent.mkdir(parents=True, exist_ok=True)
        claim.touch(exist_ok=False)
    except FileExistsError as error:
        raise InputError(
            f"--output: {output} is a file, or another run writes there; give a new or an empty folder"
        ) from error
    except OSError as error:
        raise InputError(
            f"--output: {output} cannot be written: {error.strerror}; give a new or an empty folder"
        ) from error
    try:
        yield
    finally:
        if any(claim.parent.glob("**/_delta_log")):
            claim.replace(claim.with_name(TRIED))
        else:
            claim.unlink(missing_ok=True)


def check_patience(path: str, format_: str) -> None:
    """Raise InputError for a trace that takes one process too long, with the command that fits it."""
    if path != STDIN:
        job = f"./spark-submit.sh jobs/throttle.py --input {path} --format {format_} --output DIR --once"
        check_size("PATH", path, format_, MOST_MIB, f"run the job, which uses several cores and machines: {job}")
