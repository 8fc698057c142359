"""Delta tables outside Spark: followed as they grow, and read with SQL, the one way in which rows are read there."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable, PostCommitHookProperties, QueryBuilder

from headgate.arrow.schemas import TIMESTAMP
from headgate.stores import PATIENT, Patience, content_of, file_system_of

REOPENED_AFTER = 10
"""Commits. As many lie between two checkpoints (CHECKPOINTS), so what is opened anew has few to read."""
CLEANED_EVERY = 100
"""Commits. Between two of them no commit looks for entries of the log that are too old."""
CHECKPOINTS = {"delta.checkpointInterval": str(REOPENED_AFTER)}
LOG_MINUTES = 10
"""How long entries of a log stay that gets one with every batch; a reader that is further behind reads anew. Of tables
that streams follow they stay for longer. Checkpoints of both name what was replaced in so many minutes.
"""
LOG_RETENTION = "delta.logRetentionDuration"
LOG_CLEANING = "delta.enableExpiredLogCleanup"


def short_log(minutes: int) -> dict[str, str]:
    """Properties of a table that gets a commit with every batch.

    minutes: how long an entry of its log stays. A commit lists the whole log, so what it costs grows with the number of
    entries. Each checkpoint has the files that were replaced in the last LOG_MINUTES, as every file is in time.
    """
    return CHECKPOINTS | {
        LOG_RETENTION: f"interval {minutes} minutes",
        "delta.deletedFileRetentionDuration": f"interval {LOG_MINUTES} minutes",
    }


def has_transaction(table: DeltaTable, application: str, version: int) -> bool:
    """Whether that transaction, or a later one of its application, is in the table as it was read last."""
    done = table.transaction_version(application)
    return done is not None and done >= version


def after_commit(table: DeltaTable) -> PostCommitHookProperties:
    """What delta-rs does after the next commit: it cleans the log every CLEANED_EVERY commits, if the table is set so.

    By default it does so after every commit, and looking for old entries is most of what a commit costs then.
    """
    is_due = (table.version() + 1) % CLEANED_EVERY == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if is_due else False)


Entry = tuple[int, int]
"""Of a log: time of writing (ns) and size. It is never written again."""


class Followed:
    """A Delta table as of the last `refresh`, or of an own commit: `table`.

    delta-rs keeps what it reads of each commit, and every later commit pays for it, so the table is opened anew every
    REOPENED_AFTER commits. It lists the whole log to find what is new, so it is asked only if there is something.

    patience: for the store that the table is on; what it is opened with the first time is the caller's.
    """

    def __init__(self, table: DeltaTable, patience: Patience | None = None) -> None:
        self._files, root = file_system_of(table.table_uri, patience or PATIENT)
        self._options = patience and patience.of_delta
        self._log = f"{root}/_delta_log"
        self._seen: tuple[int, Entry | None]
        self._take(table)

    def refresh(self) -> DeltaTable:
        """Take in what was written since, and return `table`. Raises DeltaError and OSError."""
        (this, following), version = self._entries(), self.table.version()
        if version == self._seen[0] and this != self._seen[1]:  # cleaned away, or of another table in its place
            self._take(DeltaTable(self.table.table_uri, storage_options=self._options))
        elif this is None or following is not None:
            self.table.update_incremental()
        if self.table.version() - self._opened >= REOPENED_AFTER:
            self._take(DeltaTable(self.table.table_uri, storage_options=self._options))
        if self.table.version() != self._seen[0]:
            self._seen = (self.table.version(), self._entries()[0])
        return self.table

    def _take(self, table: DeltaTable) -> None:
        self.table = table
        self._opened = table.version()
        self._seen = (self._opened, self._entries()[0])

    def _entries(self) -> list[Entry | None]:
        """Those of this version and the next, None where there is none: the log has no gaps, only a beginning."""
        version: int = self.table.version()
        found = self._files.get_file_info([f"{self._log}/{version + n:020d}.json" for n in (0, 1)])
        return [(one.mtime_ns, one.size) if one.type is pafs.FileType.File else None for one in found]


def query(sql: str, tables: Mapping[str, DeltaTable | Sequence[DeltaTable]]) -> pa.Table:
    """The result of `sql` over tables as they are loaded, in any order unless it says one. Several tables of one name
    are one table with the rows of all, whose columns go by their names. Text comes as strings, times are rounded down
    to microseconds, as Python has them.

    All Rust: `DeltaTable.to_pyarrow_table` and `to_pyarrow_dataset` read with threads of pyarrow's own through a file
    system in Python. They may still be busy when the interpreter ends, and then abort the process.

    What fails while the query runs is raised as a plain Exception.
    """
    builder = QueryBuilder()
    for name, found in tables.items():
        _register(builder, name, [found] if isinstance(found, DeltaTable) else found)
    return _in_arrow(builder.execute(sql))


def _register(builder: QueryBuilder, name: str, tables: Sequence[DeltaTable]) -> None:
    if len(tables) == 1:
        builder.register(name, tables[0])
        return
    parts = {f"part_{number}_of_{name}": table for number, table in enumerate(tables)}
    for part, table in parts.items():
        builder.register(part, table)
    union = " UNION ALL BY NAME ".join(f"SELECT * FROM {part}" for part in parts)  # noqa: S608  names of our own
    builder.execute(f"CREATE VIEW {name} AS {union}").read_all()


def _in_arrow(stream: Any) -> pa.Table:
    """What delta-rs gives. `pa.table` would import pandas first: half a second, and 25 MB.

    Views of strings, for which Arrow lacks most functions, become strings as they come: each batch of views keeps the
    pages alive that it was read from.
    """
    reader = pa.RecordBatchReader.from_stream(stream)
    schema = pa.schema([field.with_type(_plain(field.type)) for field in reader.schema])
    return pa.Table.from_batches([batch.cast(schema, safe=False) for batch in reader], schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    if type_ == pa.string_view():
        return pa.string()
    return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_


def rows_of_file(system: pafs.FileSystem, path: str, schema: pa.Schema) -> pa.Table:
    """The rows of a table's file with the columns of a schema, null where it lacks one."""
    file = pa.BufferReader(content_of(system, path))
    rows = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read(use_threads=False)
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def times_of(table: DeltaTable, column: str) -> tuple[int, int] | None:
    """The oldest and the newest time of a column, microseconds since 1970; None without rows.

    By the statistics in the log, which are up to 1 ms off; the rows are read only where a writer left none.
    """
    actions = _in_arrow(table.get_add_actions(flatten=True))
    names = [f"{end}.{column}" for end in ("min", "max")]
    stats = [_us(actions[name]) if name in actions.column_names else [None] for name in names]
    if len(actions) and any(None in of_end for of_end in stats):
        times = ", ".join(f"arrow_cast({end}({column}), 'Int64') AS {end}" for end in ("min", "max"))
        (row,) = query(f"SELECT {times} FROM t", {"t": table}).to_pylist()  # noqa: S608  names of our own
        stats = [[row["min"]], [row["max"]]]
    found = [one for of_end in stats for one in of_end if one is not None]
    return (min(found), max(found)) if found else None


def _us(values: pa.ChunkedArray) -> list[int | None]:
    """Whole microseconds as they are, times as such."""
    times = values if pa.types.is_integer(values.type) else values.cast(TIMESTAMP).cast(pa.int64())
    found: list[int | None] = times.to_pylist()
    return found


def text(value: str) -> str:
    """A string of SQL."""
    return "'" + value.replace("'", "''") + "'"


def newest(columns: str, keys: Sequence[str], order: str, where: str, table: str = "t") -> str:
    """SQL for the first row of each of `keys` in this order. All are expressions of SQL, `table` is a name."""
    place = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) AS place"
    return f"SELECT {columns} FROM (SELECT *, {place} FROM {table} WHERE {where}) WHERE place = 1"  # noqa: S608  names of our own, numbers


def increases(
    counters: Sequence[str], keys: Sequence[str], order: str, where: str, table: str, *, from_zero: bool
) -> str:
    """SQL for the rows of a table of counters in which each is how much it grew since the row before of its `keys`.

    They begin anew together: a row in which one is lower than in the row before counts whole. from_zero: so does the
    first row of its keys, which else has 0.
    """
    lags = ", ".join(f"lag({one}) OVER w AS {one}_before" for one in counters)
    of = f"{table} WHERE {where} WINDOW w AS (PARTITION BY {', '.join(keys)} ORDER BY {order})"
    is_anew = " OR ".join(f"{one} < {one}_before" for one in counters)
    grown = ", ".join(
        f"{one} - CASE WHEN {is_anew} THEN 0 ELSE coalesce({one}_before, {0 if from_zero else one}) END AS {one}"
        for one in counters
    )
    replaced = ", ".join(f"{one}, {one}_before" for one in counters)
    return f"SELECT * EXCEPT ({replaced}), {grown} FROM (SELECT *, {lags} FROM {of})"  # noqa: S608  names of our own
