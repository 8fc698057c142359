"""How large an input may be for one machine's memory and patience."""

from collections.abc import Iterable
from pathlib import Path

from headgate.errors import InputError

_MIB = 2**20
MOST_MIB = {"json": 2048, "csv": 1024, "parquet": 256, "delta": 256}
"""About ten million rows, which take 2 GB of memory."""


def check_size(path: str, format_: str, files: Iterable[str], command: str, job: str) -> None:
    """Raise InputError for an input that is too large, with the job to use instead.

    files: of the input, or the folder of a Delta table. command: what it is too large for. job: the file of the job.
    """
    size = sum(_bytes(Path(file)) for file in files)
    if size > MOST_MIB[format_] * _MIB:
        raise InputError(
            f"--input: {path} has {size / _MIB:,.0f} MiB; allowed for {command} are up to {MOST_MIB[format_]:,} MiB of "
            f"{format_}; use the job, which several machines share: ./spark-submit.sh {job} with the same options"
        )


def _bytes(place: Path) -> int:
    """Of a file, or of all files of a folder."""
    if place.is_dir():
        return sum(file.stat().st_size for file in place.rglob("*.parquet"))
    return place.stat().st_size if place.exists() else 0
