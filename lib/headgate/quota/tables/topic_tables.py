"""Where jobs say what topics used: a job of all brokers in its output, jobs of one broker each in a part of it."""

from pathlib import PurePath
from urllib.parse import quote

import pyarrow.fs as pafs
from deltalake import DeltaTable

from headgate.errors import TableError
from headgate.store_errors import remedy, said, unreadable
from headgate.stores import PATIENT, Patience, file_system

_NAME = "topic_usage"
BROKERS = "brokers"


def output_of(shared: str, broker: str) -> str:
    """Where the job of one broker has its own tables, below the output that jobs share; another one for every name.

    What a folder's name cannot hold is written as ~ and two digits: delta-rs takes % for an escape of its own.
    """
    name = quote(broker, safe="").replace("~", "%7E").replace("%", "~")
    return f"{shared}/{BROKERS}/{'~2E' + name[1:] if name.startswith('.') else name}"


def topic_tables(output: str | PurePath, name: str = _NAME, patience: Patience | None = None) -> list[str]:
    """The tables of that name of an output, of all its jobs that have one. Raises TableError where none can be read."""
    outputs = [str(output), *folders_of(f"{output}/{BROKERS}", patience or PATIENT)]
    return [table for table in (f"{one}/{name}" for one in outputs) if is_table(table, patience)]


def is_table(place: str, patience: Patience | None = None) -> bool:
    """Whether a Delta table is there. Raises TableError where that cannot be read."""
    try:
        return bool(DeltaTable.is_deltatable(place, patience and patience.of_delta))
    except OSError as error:
        raise unreadable(place, error) from error


def folders_of(folder: str, patience: Patience = PATIENT) -> list[str]:
    """The folders right in a folder, none if it is not there. Raises TableError where it cannot be read."""
    try:
        files, root = file_system(folder, patience)
        found = files.get_file_info(pafs.FileSelector(root, allow_not_found=True))
    except (OSError, ValueError) as error:
        otherwise = "correct the output, or see to it that it can be read"
        raise TableError(f"the folder {folder} cannot be read: {said(error)}; {remedy(error, otherwise)}") from error
    return sorted(f"{folder}/{one.base_name}" for one in found if one.type is pafs.FileType.Directory)
