"""How large an input may be for one machine's memory."""

from headgate.rows.listing import check_size

MOST_MIB = {"json": 2048, "csv": 1024, "parquet": 256, "delta": 256}
"""About ten million rows, which take 2 GB of memory."""


def check_memory(path: str, format_: str, job: str, place: str) -> None:
    """Raise InputError for an input that is too large, with the job to use instead: its file, as it is started.

    place: how the path was given.
    """
    instead = f"use the job, which several machines share: ./spark-submit.sh {job} with the same options"
    check_size(f"--input: {place}", path, format_, MOST_MIB, instead)
