"""Are the files of an input what they are read as, with the columns that no row can do without? Asked before anything
is started.
"""

import csv
import gzip
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from headgate.errors import InputError
from headgate.rows.listing import COMPRESSED, STDIN, files_at, is_delta, original

OF_ALL_ROWS = ("event_time", "seq", "broker", "kind")
MOST_FILES = 20
_MOST_CHARACTERS = 1 << 16


def check_headers(path: str, format_: str, option: str, place: str | None = None) -> None:
    """Raise InputError where every file lacks one of OF_ALL_ROWS, so that all rows would be dead letters, and for a
    Delta table that would be read file by file: deleted rows are in its files, too.

    option: how the path was given, for the message. place: of what it is a copy (listing.original). Columns are asked
    of CSV and Parquet on this machine, of the first MOST_FILES files; one that cannot be read, and one among others
    that have the columns, is told of as it is read.
    """
    if path == STDIN or "://" in path:
        return
    if format_ != "delta" and is_delta(path):
        raise InputError(
            f"{option}: {place or path} is a Delta table, which would be read as {format_}, with rows that were "
            "deleted from it; give --format delta"
        )
    if format_ not in {"csv", "parquet"}:
        return
    first: tuple[Path, Sequence[str]] | None = None
    for file in islice(files_at(path), MOST_FILES):
        names = _csv_names(file) if format_ == "csv" else _parquet_names(file)
        if names is None or set(OF_ALL_ROWS) <= set(names):
            return
        first = first or (file, names)
    if first is not None:
        file, names = first
        missing = [name for name in OF_ALL_ROWS if name not in names]
        noun = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{option}: {original(file, path, place)}: {noun} missing: {', '.join(missing)}; found: "
            f"{', '.join(names)}; every row would be a dead letter; rename or add what is missing "
            "(docs/tables.md#input)"
        )


def _csv_names(file: Path) -> Sequence[str] | None:
    """The first line that is not blank; None where that cannot be read here."""
    ending = file.suffix.lower()
    if ending in COMPRESSED and ending != ".gz":
        return None
    try:
        with gzip.open(file, "rt", encoding="utf-8") if ending == ".gz" else file.open(encoding="utf-8") as lines:
            for line in islice(iter(lambda: lines.readline(_MOST_CHARACTERS), ""), 100):
                if line.strip():
                    return [name.strip() for name in next(csv.reader([line.removeprefix("\ufeff")]))]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        return None
    return None


def _parquet_names(file: Path) -> Sequence[str] | None:
    """In lower case, as rows are read; None for a file that is none."""
    import pyarrow as pa  # noqa: PLC0415  heavy
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return [name.lower() for name in pq.read_schema(file).names]
    except (OSError, pa.ArrowException):
        return None
