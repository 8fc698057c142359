"""What becomes of rg_usage and rg_limits: closed hours are sorted files, open ones have few, old ones go.

resource-groups 5.2, 13.4.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import RemoveAction

from headgate.core.numbers import HOUR_MS
from headgate.quota.tables.delta import COMMIT_RETRIES, Table, told
from headgate.quota.tables.hourly_files import COMPACTED, MERGED, read_file, write_files
from headgate.tables.query import after_commit

COMPACTION = "headgate-compaction"
"""How application ids of compactions begin, one an hour: of two of the same hour at once Delta refuses one."""
LATE_FILES = 100
"""So many files that came after an hour was compacted make it due once more: of jobs that caught up."""
LOOSE_FILES = 200
"""So many files of an open hour are joined: a commit costs more with every file that the table has."""
CLOSED_AFTER_MS = 60_000
"""An hour is closed so long after its end: what its brokers sent is in then."""


@dataclass(frozen=True)
class Kept:
    """What was done: closed hours compacted, hours removed, open hours whose files were joined."""

    compacted: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()


def join_files(table: Table) -> bool:
    """Join the files of a table of which each change is one, once there are LOOSE_FILES; False if somebody wrote then.

    No row changes. Old files stay for as long as the table's property says, for questions about the past.
    """
    table.refresh()
    if len(table.delta.file_uris()) < LOOSE_FILES:
        return False
    with told(table, "written"):
        try:
            table.delta.optimize.compact(
                commit_properties=CommitProperties(max_commit_retries=0),  # else rows could be there twice
                post_commithook_properties=after_commit(table.delta),
            )
        except CommitFailedError:
            return False
        table.delta.vacuum(dry_run=False, full=True)
    return True


@dataclass(frozen=True)
class _File:
    partition: tuple[int, ...]
    path: str
    size: int

    @property
    def is_compacted(self) -> bool:
        return self.path.rpartition("/")[2].startswith(COMPACTED)

    @property
    def is_loose(self) -> bool:
        """Whether it is as it was appended."""
        return not self.path.rpartition("/")[2].startswith((COMPACTED, MERGED))


class HourlyUpkeep:
    """Any number of processes may keep up one table, while brokers write and read it.

    No row changes, and readers by version see none twice. sorted_by: columns. retention_hours: how long rows stay,
    None: for ever. kept_hours: how long files stay that no version of now has, for readers that are behind and for
    questions about the past. Raises TableError where the table cannot be read or written.
    """

    def __init__(
        self, table: Table, *, sorted_by: Sequence[str], retention_hours: int | None = None, kept_hours: int
    ) -> None:
        self._table = table
        self._order = [(name, "ascending") for name in sorted_by]
        self._retention_hours = retention_hours
        self._kept_hours = kept_hours

    def run(self, now_ms: int) -> Kept:
        """Compact each closed hour, join files of open ones, remove hours that are too old and files nobody needs.

        now_ms: in event time.
        """
        self._table.refresh()
        oldest = 0 if self._retention_hours is None else now_ms // HOUR_MS - self._retention_hours
        hours = self._hours()
        removed = tuple(hour for hour in hours if hour < oldest)
        if removed and not self._remove(oldest):
            removed = ()
        open_from = (now_ms - CLOSED_AFTER_MS) // HOUR_MS
        due = [hour for hour in hours if oldest <= hour < open_from and not _is_done(hours[hour])]
        compacted = tuple(hour for hour in due if self._join(hour, hours[hour], COMPACTED))
        loose = {hour: [file for file in hours[hour] if file.is_loose] for hour in hours if hour >= open_from}
        many = [hour for hour, files in loose.items() if len(files) >= LOOSE_FILES]
        joined = tuple(hour for hour in many if self._join(hour, loose[hour], MERGED))
        if removed or compacted:
            self._vacuum()
        return Kept(compacted, removed, joined)

    def _hours(self) -> dict[int, list[_File]]:
        with told(self._table, "read"):
            actions = pa.table(self._table.delta.get_add_actions(flatten=True))
        hours: dict[int, list[_File]] = {}
        columns = [f"partition.{name}" for name in self._table.spec.partition_by]
        for row in actions.select([*columns, "path", "size_bytes"]).to_pylist():
            file = _File(tuple(row[name] for name in columns), row["path"], row["size_bytes"])
            hours.setdefault(row["partition.hour"], []).append(file)
        return dict(sorted(hours.items()))

    def _join(self, hour: int, files: Iterable[_File], names: str) -> bool:
        """Put one sorted file a partition in the place of these of an hour, in one commit; False if another did.

        names: how the names of the new files begin.
        """
        by_partition: dict[tuple[int, ...], list[_File]] = {}
        for file in files:
            by_partition.setdefault(file.partition, []).append(file)
        actions: list[object] = []
        at_ms = time.time_ns() // 1_000_000
        for values, parts in sorted(by_partition.items()):
            partition = dict(zip(self._table.spec.partition_by, map(str, values), strict=True))
            try:
                rows = pa.concat_tables([read_file(self._table, file.path, partition) for file in parts])
            except FileNotFoundError:
                return False
            actions += write_files(self._table, rows.sort_by(self._order), names.rstrip("-"), data_change=False)
            actions += [_replaced(file, partition, at_ms) for file in parts]
        # delta-rs lets two replace the same files, whose rows were there twice then; it refuses the same application.
        return self._table.commit_pinned(
            actions, [Transaction(f"{COMPACTION}-{hour}", self._table.version)], retries=COMMIT_RETRIES
        )

    def _remove(self, oldest: int) -> bool:
        """Drop the hours before `oldest`; False if somebody else did."""
        with told(self._table, "written"):
            try:
                self._table.delta.delete(
                    f"hour < {oldest}", commit_properties=CommitProperties(max_commit_retries=COMMIT_RETRIES)
                )
            except CommitFailedError:
                return False
        return True

    def _vacuum(self) -> None:
        self._table.refresh()
        with told(self._table, "written"):
            self._table.delta.vacuum(self._kept_hours, dry_run=False, enforce_retention_duration=False, full=True)


def _is_done(files: Iterable[_File]) -> bool:
    compacted = [file.is_compacted for file in files]
    return any(compacted) and compacted.count(False) < LATE_FILES


def _replaced(file: _File, partition: Mapping[str, str | None], at_ms: int) -> RemoveAction:
    return RemoveAction(file.path, False, at_ms, file.size, dict(partition))
