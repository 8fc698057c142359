"""How large an input may be for one machine's memory. On a store it is looked at before it is brought here, but for
compressed text and Delta tables, of which only a copy shows it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.folders import copied
from headgate.rows.headers import check_headers
from headgate.rows.listing import check_size, size_at
from headgate.stores import is_stored

MOST_MIB = {"json": 2048, "csv": 1024, "parquet": 256, "delta": 256}
"""About ten million rows, which take 2 GB of memory."""


def check_memory(size: int, format_: str, job: str, place: str) -> None:
    """Raise InputError for an input of so many bytes that it is too large, with the job to use instead: its file, as it
    is started.

    place: how the input was given.
    """
    instead = f"use the job, which several machines share: ./spark-submit.sh {job} with the same options"
    check_size(f"--input: {place}", size, format_, MOST_MIB, instead)


@contextmanager
def here(place: str, format_: str, job: str) -> Iterator[str]:
    """The path of an input on this machine while the block runs: of a copy, where it is on a store.

    Raises InputError for an input that is too large (check_memory), or cannot be read as this format (check_headers).
    """

    def check(size: int) -> None:
        if format_ != "delta":  # whose folder has files that the table no longer has
            check_memory(size, format_, job, place)

    with copied(place, check) as path:
        check_memory(size_at(path, format_), format_, job, place)
        if is_stored(place):  # local input was checked with the options
            check_headers(path, format_, "--input", place)
        yield path
