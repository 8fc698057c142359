"""What is done to a table from time to time: old rows go, small files are joined, replaced ones deleted."""

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from headgate.store_errors import said
from headgate.stores import file_system_of
from headgate.tables.query import LOG_RETENTION, after_commit, rows_of_file
from headgate.tables.retention import Deleted, Kept, delete_old, replace_files

LOG = logging.getLogger(__name__)
COMPACTED_EVERY, VACUUMED_EVERY = 100, 1000
"""Commits. A commit costs more with every file that the table has, a checkpoint with every file that it had of late."""
JOINING, JOIN_RETRIES = "headgate-joining", 15
_TOLD_EVERY_S = 3600
COMPACTED_BYTES = 16 << 20
"""Files of this size are left alone."""


class Totals:
    """What this process has deleted, by table."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._told: dict[str, tuple[float, int, int]] = {}

    def add(self, table: str, deleted: Deleted) -> None:
        """Count what went from a table, and say so at the first time, then once an hour: what went since."""
        with self._lock:
            self._rows[table] += deleted.rows
            self._files[table] += deleted.files
            told_s, rows, files = self._told.get(table, (-_TOLD_EVERY_S, 0, 0))
            if time.monotonic() - told_s < _TOLD_EVERY_S:
                return
            self._told[table] = time.monotonic(), self._rows[table], self._files[table]
            LOG.warning(
                "the table %s: %s old rows deleted, of %s files",
                table,
                self._rows[table] - rows,
                self._files[table] - files,
            )

    def taken(self) -> dict[str, Deleted]:
        """All of it so far."""
        with self._lock:
            return {table: Deleted(rows, self._files[table]) for table, rows in sorted(self._rows.items())}


DELETED = Totals()


@contextmanager
def tidying(uri: str) -> Iterator[None]:
    """What keep_up of a table raises is said, and no more: the rows are there."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  a query raises any
        LOG.warning("the table %s was not tidied, which is tried again: %s", uri, said(error))


def is_due(version: int, before: int) -> bool:
    """Whether it is time to keep up a table of this version. before: the version at which that was looked at last."""
    return version // COMPACTED_EVERY != before // COMPACTED_EVERY


def keep_up(table: DeltaTable, before: int, kept: Kept | None = None, *, in_order: bool = False) -> None:
    """After a commit on version `before`, every COMPACTED_EVERY commits: delete rows that are too old, join small
    files, and delete replaced ones.

    No other row changes, and streams that skip commits with changes hear of nothing. Where somebody else writes just
    then, nothing is deleted, and nothing is joined. Raises what a query does.

    in_order: of a table without partitions only the newest files are joined, so that its rows stay in the order in
    which they came; others may append meanwhile.
    """
    version = table.version()
    if not is_due(version, before):
        return
    if kept is not None:
        with suppress(CommitFailedError):
            deleted = delete_old(table, kept)
            if deleted.rows or deleted.files:
                DELETED.add(_name(table), deleted)
    with suppress(CommitFailedError):
        if in_order:
            _join_newest(table)
        else:
            _join(table)
    if version // VACUUMED_EVERY != before // VACUUMED_EVERY:
        table.vacuum(_read_hours(table), dry_run=False, full=True)


def _read_hours(table: DeltaTable) -> int | None:
    """How old a file has to be that is deleted: as old as the log, which a stream reads entry by entry. None: as the
    table's properties say.
    """
    log = re.fullmatch(r"interval (\d+) minutes", table.metadata().configuration.get(LOG_RETENTION, ""))
    return (int(log[1]) // 60 or None) if log else None


def _join(table: DeltaTable) -> None:
    """Join small files of any age, in any order, unless somebody else commits just then."""
    table.optimize.compact(
        target_size=COMPACTED_BYTES,
        max_concurrent_tasks=1,
        # Of two compactions of the same files delta-rs would refuse none, and rows would be there twice.
        commit_properties=CommitProperties(max_commit_retries=0),
        post_commithook_properties=after_commit(table),
    )


def _join_newest(table: DeltaTable) -> None:
    """Join those that are no larger than all that are newer, so that no row is written again and again."""
    columns = ("modification_time", "path", "size_bytes")
    files = pa.table(table.get_add_actions(flatten=True)).select(columns).to_pylist()
    newest: list[dict[str, Any]] = []
    newer_bytes = 0
    for file in sorted(files, key=lambda one: (one["modification_time"], one["path"]), reverse=True):
        if file["size_bytes"] >= COMPACTED_BYTES or (len(newest) > 1 and file["size_bytes"] > newer_bytes):
            break
        newest.append(file)
        newer_bytes += file["size_bytes"]
    if len(newest) > 1:
        newest.reverse()
        system, root = file_system_of(table.table_uri)
        schema = pa.schema(table.schema().to_arrow())
        rows = pa.concat_tables([rows_of_file(system, f"{root}/{file['path']}", schema) for file in newest])
        # Else delta-rs lets two joins of the same files through, and rows are there twice.
        once = Transaction(JOINING, table.version())
        properties = CommitProperties(app_transactions=[once], max_commit_retries=JOIN_RETRIES)
        replace_files(table, newest, rows, newest[0]["modification_time"], properties)


def _name(table: DeltaTable) -> str:
    name: str = table.table_uri.rstrip("/").rpartition("/")[2]
    return name
