"""The input and the output of a trial: is it there, in which format, and is it small enough for one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headgate.errors import InputError
from headgate.rows.listing import COMPRESSED, STDIN, check_size, files_at, is_delta

SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet"}
MOST_MIB = {"json": 40 * 1024, "csv": 20 * 1024, "parquet": 5 * 1024, "delta": 5 * 1024}
"""About a hundred million publishes each, which take ten minutes or more."""


class Source(NamedTuple):
    """Where the rows come from. is_demo: the bundled trace, of which each file is a batch."""

    path: str
    format: str
    is_demo: bool = False


def check_new(output: str) -> None:
    """Return if tables can be kept there; nothing is made yet. Raises InputError."""
    folder = Path(output)
    if not output.strip():
        raise InputError(f"--output: got {output!r}; allowed: a new or an empty folder")
    try:
        is_taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise InputError(
            f"--output: {output} cannot be read: {error.strerror}; give a new or an empty folder"
        ) from error
    if is_taken:
        raise InputError(f"--output: got {output}, which is there and not empty; allowed: a new or an empty folder")


@contextmanager
def claimed(output: str | None) -> Iterator[None]:
    """While the block runs, no other run takes the folder `output`, which is made. Raises InputError where it cannot
    be made or written to, or another run has it. None: nothing to do.
    """
    if output is None:
        yield
        return
    claim = Path(output, ".running")
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
        claim.unlink(missing_ok=True)


def format_of(path: str) -> str:
    """The format that the names of the files say. Raises InputError where nothing is there, or they say none."""
    if path == STDIN:
        return "json"
    if is_delta(path):
        return "delta"
    endings = {_uncompressed(file).suffix for file in files_in(path)}
    formats = {SUFFIXES.get(ending.lower()) for ending in endings}
    (format_, *others) = formats
    if others or format_ is None:
        got = ", ".join(sorted(ending or "none" for ending in endings))
        raise InputError(
            f"PATH: the format of {path} cannot be told from the endings of its files; got {got}; allowed: one of "
            f"{', '.join(SUFFIXES)} for all of them; give --format json, csv or parquet"
        )
    return format_


def check_patience(path: str, format_: str) -> None:
    """Raise InputError for a trace that takes one process too long, with the command that fits it."""
    if path != STDIN:
        files_in(path)
        job = f"./spark-submit.sh jobs/throttle.py --input {path} --format {format_} --output DIR --once"
        check_size("PATH", path, format_, MOST_MIB, f"run the job, which uses several cores and machines: {job}")


def files_in(path: str) -> list[Path]:
    """The files at a path or pattern. Raises InputError without any."""
    files = files_at(path)
    if not files:
        got = "a folder without files" if Path(path).is_dir() else "nothing"
        raise InputError(f"PATH: {path}: got {got}; allowed: a file, a folder of files, a pattern or a Delta table")
    return files


def _uncompressed(file: Path) -> Path:
    return file.with_suffix("") if file.suffix.lower() in COMPRESSED else file
