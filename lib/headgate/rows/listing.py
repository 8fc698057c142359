"""The files at a path. Nothing heavy is imported here: what is wrong with a path is said at once."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import glob
from pathlib import Path

from headgate.errors import InputError
from headgate.folders import is_hidden
from headgate.stores import is_stored

STDIN = "-"
FORMATS = ("json", "csv", "parquet", "delta")
"""Of an input that is a path."""
TEXT_FORMATS = ("json", "csv")
SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet"}
COMPRESSED = (".gz", ".bz2", ".zst")
COMPRESSION = 10
"""How many times smaller text of rows is where it is compressed, about."""
_MIB = 2**20


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raises InputError for what the block cannot look at."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{error.filename or path}: cannot be read: {error.strerror}; give files and folders that can be read"
        ) from error


def files_at(path: str) -> list[Path]:
    """The files at a path or pattern, by name; those with hidden names are no input.

    Raises InputError where a folder cannot be listed.
    """
    with _readable(path):
        places = [Path(path)] if Path(path).exists() else list(map(Path, sorted(glob(path))))  # noqa: PTH207  as written
        return [file for place in places for file in ([place] if place.is_file() else _below(place))]


def format_of(path: str) -> str | None:
    """The format that the names of the files say; None where they say none, or several."""
    if path == STDIN:
        return "json"
    if is_delta(path):
        return "delta"
    formats = {SUFFIXES.get(ending.lower()) for ending in endings_of(path)}
    return formats.pop() if len(formats) == 1 else None


def endings_of(path: str) -> set[str]:
    """The endings of the names of the files, without those of compression."""
    return {_uncompressed(file).suffix for file in files_at(path)}


def original(file: Path, path: str, place: str | None) -> str:
    """Where a file is, as it is told. path: its own, or that of a folder above it. place: how that was given, where it
    is a copy of what is on a store (folders.copied).
    """
    if place is None or not is_stored(place):
        return str(file)
    return place if file == Path(path) else f"{place.rstrip('/')}/{file.relative_to(path).as_posix()}"


def found_files(path: str, place: str) -> list[Path]:
    """The files at a path or pattern. Raises InputError without any. place: how the path was given."""
    files = files_at(path)
    if not files:
        no_files = "a folder without files (those whose names begin with . or _ are no input)"
        got = no_files if Path(path).is_dir() else "nothing"
        raise InputError(
            f"{place}: got {got}; allowed: a file, a folder of files, a Delta table, or on a disk a pattern"
        )
    return files


def _uncompressed(file: Path) -> Path:
    return file.with_suffix("") if file.suffix.lower() in COMPRESSED else file


def is_delta(path: str) -> bool:
    """Whether a Delta table is there. Raises InputError where nobody can tell."""
    with _readable(path):
        return Path(path, "_delta_log").is_dir()


def check_delta(path: str, option: str, place: str) -> None:
    """Raise InputError where no Delta table is. option, place: how the path was given."""
    if not is_delta(path):
        raise InputError(f"{option}: no Delta table is at {place}; give the folder of one, or the right --format")


def _below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise error

    found = (Path(place, name) for place, _, names in os.walk(folder, onerror=refuse) for name in names)
    return sorted(file for file in found if file.is_file() and not is_hidden(file.relative_to(folder)))


def size_at(path: str, format_: str) -> int:
    """Bytes of an input, of compressed text about what they are without compression."""
    return _size_of_delta(path) if format_ == "delta" else sum(map(_text_bytes, files_at(path)))


def check_size(place: str, size: int, format_: str, most_mib: Mapping[str, int], instead: str) -> None:
    """Raise InputError for an input of so many bytes that it is too large for one process.

    place: how it was given, for the message. most_mib: by format. instead: the way on.
    """
    if size > most_mib[format_] * _MIB:
        raise InputError(
            f"{place} has {size / _MIB:,.0f} MiB; allowed are up to {most_mib[format_]:,} MiB of {format_} in "
            f"one process; {instead}"
        )


def _text_bytes(file: Path) -> int:
    """Of compressed text about what it is without compression."""
    return file.stat().st_size * (COMPRESSION if file.suffix.lower() in COMPRESSED else 1)


def _size_of_delta(path: str) -> int:
    """Bytes of the files that the table has now, 0 for a table that cannot be read: that is told as it is read."""
    from deltalake import DeltaTable  # noqa: PLC0415  heavy
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        added = DeltaTable(path).get_add_actions()
    except (DeltaError, OSError):
        return 0
    return sum(added["size_bytes"].to_pylist())
