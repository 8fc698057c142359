"""rg_usage as brokers exchange it: a cut is appended in one commit and once, readers get what is new by version.

resource-groups 5.2, 13.4.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import Transaction

from headgate.errors import TableError
from headgate.quota.tables.delta import COMMIT_RETRIES, AddedFile, Table, nullable
from headgate.quota.tables.hourly_files import read_file, write_files
from headgate.quota.tables.schemas import USAGE
from headgate.quota.tables.usage_rows import HEARTBEAT_SHARD, SentReport, hour_of, usage_table

_ORDER = ("broker_id", "incarnation", "seq", "group_id", "class")


class UsageWriter:
    """Every cut is in the table once, whole or not at all, however often its append is tried.

    The rows of a cut and its heartbeat are one commit. Cuts of several brokers may share a commit.
    """

    def __init__(self, table: Table, epoch_ms: int) -> None:
        self._table = table
        self._epoch_ms = epoch_ms

    def append(self, sent: Sequence[SentReport], shards: Mapping[int, int]) -> bool:
        """Append cuts, those of a broker in the order of their seq; False if all of them were there already.

        shards: of every group in the cuts. After a TableError the same cuts are to be appended again, with the same
        seqs, before any later one. Source: resource-groups 5.2, 10.
        """
        self._table.refresh()
        due = self._missing(sent)
        if not due:
            return False
        newest = {one.sender.application: one.cut.seq for one in due}
        rows = usage_table(due, shards, self._epoch_ms)
        stem = f"cut-{due[0].sender.broker_id}-{due[0].sender.incarnation}-{due[0].cut.seq}"
        done = self._table.commit_pinned(
            write_files(self._table, rows, stem),
            [Transaction(application, seq) for application, seq in newest.items()],
            retries=COMMIT_RETRIES,
        )
        if not done:
            self._table.refresh()
            if self._missing(due):
                raise TableError(
                    f"the table {self._table.location} cannot be written: {COMMIT_RETRIES} other writers came before; "
                    "append the same cuts again"
                )
        return True

    def _missing(self, sent: Sequence[SentReport]) -> list[SentReport]:
        """Those that are not in the table as of its last `refresh`; each sender is looked up once."""
        done = {one: self._table.transaction_version(one) for one in {one.sender.application for one in sent}}
        newest = {application: -1 if version is None else version for application, version in done.items()}
        return [one for one in sent if one.cut.seq > newest[one.sender.application]]


@dataclass(frozen=True)
class NewUsage:
    """Rows that a reader had not read, in table order, and the version they go up to.

    whole: all rows of the last epochs instead, since the reader was new or too far behind; it may know some of them.
    """

    rows: pa.Table
    version: int
    whole: bool = False


class UsageReader:
    """Every row is handed out once, in table order; more than once only where a read is `whole`.

    A row that was read counts as read only when `read` has returned: after a TableError the next one begins where the
    last one ended.

    kept_epochs: how far back a whole read goes: to the newest row of everybody, however long rows are suppressed.
    version: up to which everything was read before, None: nothing. Source: resource-groups 13.4.
    """

    def __init__(self, table: Table, epoch_ms: int, kept_epochs: int, version: int | None = None) -> None:
        self._table = table
        self._epoch_ms = epoch_ms
        self._kept_epochs = kept_epochs
        self._shards: frozenset[int] | None = None
        self.version = version

    def read(self, now_ms: int, shards: Collection[int] | None = None) -> NewUsage:
        """What was appended since the last read. now_ms: the reader's clock, in event time.

        shards: of the groups that the reader holds, None for all; heartbeats are always read. A shard that was not read
        before makes the read a whole one.
        """
        wanted = None if shards is None else frozenset((*shards, HEARTBEAT_SHARD))
        newest = self._table.refresh()
        known = self._shards is None or (wanted is not None and wanted <= self._shards)
        rows = None
        if self.version is not None and self.version <= newest and known:
            rows = self._added(self.version, wanted)
        read = NewUsage(self._recent(now_ms, wanted) if rows is None else rows, newest, rows is None)
        self.version, self._shards = newest, wanted
        return read

    def _added(self, version: int, shards: frozenset[int] | None) -> pa.Table | None:
        """None where the log or a file is gone: a reader that is so far behind begins anew."""
        files = self._table.added_since(version)
        if files is None:
            return None
        try:
            parts = [read_file(self._table, file.path, file.partition) for file in files if _wanted(file, shards)]
        except FileNotFoundError:
            return None
        return pa.concat_tables([nullable(USAGE).empty_table(), *parts]).combine_chunks()

    def _recent(self, now_ms: int, shards: frozenset[int] | None) -> pa.Table:
        epoch = now_ms // self._epoch_ms - self._kept_epochs
        where = f"hour >= {hour_of(epoch, self._epoch_ms)} AND epoch >= {epoch}"
        if shards is not None:
            where += f" AND shard IN ({', '.join(map(str, sorted(shards)))})"
        return self._table.select(where).sort_by([(name, "ascending") for name in _ORDER])

    def earlier(self, lives: Mapping[int, int], now_ms: int) -> pa.Table:
        """What still holds of brokers from before a whole read at `now_ms`: the newest row of each group and class.

        Of each kind, since a leave takes back what was said before it, and nothing after it. lives: incarnation by id.
        """
        where = " OR ".join(f"broker_id = {id_} AND incarnation = {life}" for id_, life in sorted(lives.items()))
        if not where:
            return nullable(USAGE).empty_table()
        before = f"epoch < {now_ms // self._epoch_ms - self._kept_epochs} AND ({where})"
        rows = self._table.newest(before, ("broker_id", "group_id", "class", "kind = 2"), "epoch DESC, seq DESC")
        return rows.sort_by([(name, "ascending") for name in _ORDER])


def _wanted(file: AddedFile, shards: frozenset[int] | None) -> bool:
    shard = file.partition["shard"]
    return shards is None or shard is None or int(shard) in shards
