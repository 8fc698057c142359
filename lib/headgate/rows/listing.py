"""The files at a path. Nothing heavy is imported here: what is wrong with a path is said at once."""

from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from headgate.errors import InputError

STDIN = "-"
FORMATS = ("json", "csv", "parquet", "delta")
"""Of an input that is a path."""
_MIB = 2**20


def files_at(path: str) -> Iterator[Path]:
    """The files at a path or pattern; those with hidden names are no input."""
    for place in map(Path, [path] if Path(path).exists() else sorted(glob(path))):  # noqa: PTH207  as the user wrote it
        if place.is_file():
            yield place
        else:
            yield from (file for file in sorted(place.rglob("*")) if file.is_file() and not _is_hidden(file, place))


def check_size(place: str, path: str, format_: str, most_mib: Mapping[str, int], instead: str) -> None:
    """Raise InputError for an input that is too large for one process.

    place: how its path was given, for the message. most_mib: by format. instead: the way on.
    """
    size = sum(file.stat().st_size for file in files_at(path))
    if size > most_mib[format_] * _MIB:
        raise InputError(
            f"{place}: {path} has {size / _MIB:,.0f} MiB; allowed are up to {most_mib[format_]:,} MiB of {format_} in "
            f"one process; {instead}"
        )


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
