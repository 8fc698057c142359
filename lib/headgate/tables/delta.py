"""Delta tables under an output folder, written and read without Spark."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from headgate.arrow.runs import TIMES, in_full
from headgate.arrow.topic_names import named_rows, named_schema
from headgate.errors import TableError
from headgate.store_errors import remedy, said, unreadable
from headgate.stores import Patience
from headgate.tables.query import (
    LOG_CLEANING,
    LOG_MINUTES,
    Followed,
    after_commit,
    has_transaction,
    query,
    short_log,
)
from headgate.tables.retention import RULES, Kept
from headgate.tables.sums import Sums
from headgate.tables.upkeep import keep_up, tidying

MOST_FAILURES = 5
_ATTEMPTS = 5

FOLLOWED_LOG_MINUTES = 6 * 60
FOLLOWED = short_log(FOLLOWED_LOG_MINUTES)
_FED = short_log(LOG_MINUTES) | {LOG_CLEANING: "false"}
"""A feed cleans the log, once it has the rows (spark/feed.py)."""
PROPERTIES: dict[str, dict[str, str]] = {
    "control": _FED | {"delta.appendOnly": "true"},
    "cache_control": _FED,
    "protocol_ticks": _FED,
    "marks": FOLLOWED,
}
"""Of tables that streams read as rows are appended; others have short_log(LOG_MINUTES).

A stream needs the entries of the log that it has not read, so of `marks` the log reaches back for as long as a job that
follows it may stand still. `control` refuses changes: the job would never hear of a row that is changed or deleted.
"""


class Tables:
    """Tables of a job in its output folder. An append is atomic; repeated with the same transaction it is done once.

    A transaction is an application id and a version that grows with each append to a table: the id of a streaming query
    and its batch. Tables are created on construction, so that readers find them before the first row. Where rows have a
    topic, the table has its tenant and namespace as well (arrow.topic_names.named_schema). kept_hours: rows that
    are older than the newest one by more are deleted as RULES has it; 0: never. patience: for an output on a store.
    """

    def __init__(
        self,
        output: str | PurePath,
        schemas: Mapping[str, pa.Schema],
        kept_hours: int = 0,
        patience: Patience | None = None,
    ) -> None:
        self._given = schemas
        self._kept = {name: Kept(RULES[name], kept_hours) for name in schemas if name in RULES and kept_hours}
        self._schemas = {name: named_schema(schema) for name, schema in schemas.items()}
        self._tables = {
            name: Followed(
                self._opened(f"{output}/{name}", schema, PROPERTIES.get(name) or short_log(LOG_MINUTES), patience),
                patience,
            )
            for name, schema in self._schemas.items()
        }

    @staticmethod
    def _opened(path: str, schema: pa.Schema, properties: Mapping[str, str], patience: Patience | None) -> DeltaTable:
        """Raises TableError if no table can be there, or one with other columns is."""
        otherwise = "give an --output to write to: a new folder, or that of an earlier run with its whole _delta_log"
        try:
            table = DeltaTable.create(
                path,
                schema=schema,
                mode="ignore",
                configuration=dict(properties),
                storage_options=patience and patience.of_delta,
            )
            found = pa.schema(table.schema().to_arrow())
            if found != schema == named_schema(found):  # of an earlier version
                table.alter.add_columns(Schema.from_arrow(schema).fields[len(found) :])
                found = schema
        except (DeltaError, OSError) as error:
            raise TableError(f"the table {path} cannot be opened: {said(error)}; {remedy(error, otherwise)}") from error
        if found != schema:
            raise TableError(
                f"the table {path} has the columns {', '.join(found.names)}, which are not those of headgate; "
                f"{otherwise}"
            )
        return table

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool:
        """Append `rows`; False, and nothing is written, if this transaction was there already or there are no rows.

        Equal rows may be one (arrow.runs): arrow.runs.AT_ONCE of them are made at a time.
        """
        return len(rows) > 0 and self._append(name, rows, (application, version))

    def extend(self, name: str, rows: pa.Table, transaction: tuple[str, int] | None = None) -> None:
        """Append `rows`, once under a transaction, else whatever was appended before; others may append, too.

        Raises TableError.
        """
        with self._written(name, ", and start again, which goes on where it stopped"):
            self._append(name, rows, transaction)

    def append_control(self, rows: list[dict[str, Any]], transaction: tuple[str, int] | None = None) -> None:
        """`extend` the table `control`; without rows nothing is written. Raises TableError."""
        if rows:
            self.extend("control", pa.Table.from_pylist(rows, self._given["control"]), transaction)

    def version(self, name: str) -> int:
        """Of the table as it is now."""
        with self._read(name):
            version: int = self._current(name).version()
        return version

    @contextmanager
    def _read(self, name: str) -> Iterator[None]:
        """Turn what fails inside into a TableError: a query raises anything."""
        try:
            yield
        except Exception as error:
            raise unreadable(self._tables[name].table.table_uri, error) from error

    def append_to(self, name: str, rows: pa.Table, version: int) -> bool:
        """Append to the table as of a version; False, and nothing is written, if somebody wrote since.

        Raises TableError.
        """
        with self._written(name):
            table = self._current(name)
            if table.version() != version:
                return False
            try:
                self._commit(name, table, rows, CommitProperties(max_commit_retries=0))
            except CommitFailedError:
                return False
        return True

    @contextmanager
    def _written(self, name: str, more: str = "") -> Iterator[None]:
        """Turn what fails inside into a TableError. more: what to do besides."""
        try:
            yield
        except (DeltaError, OSError) as error:
            raise TableError(
                f"rows cannot be appended to the table {self._tables[name].table.table_uri}: "
                f"{said(error)}; {remedy(error, 'see to it that it can be written')}{more}"
            ) from error

    def _append(self, name: str, rows: pa.Table, transaction: tuple[str, int] | None) -> bool:
        """A commit that fails wrote nothing; it does so too where old rows were deleted meanwhile."""
        transactions = [] if transaction is None else [Transaction(*transaction)]
        for attempt in range(1, _ATTEMPTS + 1):
            table = self._current(name)
            if transaction is not None and has_transaction(table, *transaction):
                return False
            try:
                self._commit(name, table, rows, CommitProperties(app_transactions=transactions, max_commit_retries=50))
            except CommitFailedError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        return True

    def _commit(self, name: str, table: DeltaTable, rows: pa.Table, properties: CommitProperties) -> None:
        before = table.version()
        write_deltalake(
            table,
            self._in_pieces(name, rows) if TIMES in rows.column_names else self._whole(name, rows),
            mode="append",
            commit_properties=properties,
            post_commithook_properties=after_commit(table),
        )
        with tidying(table.table_uri):
            keep_up(table, before, self._kept.get(name))

    def _in_pieces(self, name: str, rows: pa.Table) -> pa.RecordBatchReader:
        batches = (batch for some in in_full(rows) for batch in self._whole(name, some).to_batches())
        return pa.RecordBatchReader.from_batches(self._schemas[name], batches)

    def _whole(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows with all columns of the table."""
        schema = self._schemas[name]
        return rows if rows.schema == schema else named_rows(rows).cast(schema)

    def read(self, name: str, columns: Iterable[str] | None = None) -> pa.Table:
        """The rows of the table as it is now, in any order."""
        wanted = self._schemas[name].names if columns is None else list(columns)
        selected = ", ".join(f'"{column}"' for column in wanted)
        sql = f"SELECT {selected} FROM {name}"  # noqa: S608  names of our own schemas
        rows = query(sql, {name: self._current(name)})
        return rows.cast(pa.schema([self._schemas[name].field(column) for column in wanted]))

    def select(self, name: str, sql: str) -> pa.Table:
        """The result of `sql` over the table as it is now, which it calls t."""
        with self._read(name):
            return query(sql, {"t": self._current(name)})

    def totals(self, sums: Sums) -> pa.Table:
        """Sums over a table, for what would not fit into memory as rows."""
        found = query(sums.sql, {sums.table: self._current(sums.table)})
        schema = self._schemas[sums.table]
        return found.cast(pa.schema([(name, sums.type_of(name, schema)) for name in found.column_names]))

    def columns(self, name: str) -> list[str]:
        return list(self._schemas[name].names)

    def is_empty(self, name: str) -> bool:
        return not self._current(name).file_uris()

    def are_strange_to(self, application: str, *names: str) -> bool:
        """Whether no transaction of the application is in any of these tables."""
        return all(self._current(name).transaction_version(application) is None for name in names)

    def _current(self, name: str) -> DeltaTable:
        return self._tables[name].refresh()


class PatientAppend:
    """An append of rows that can be left out, whose failures may pass: the MOST_FAILURES-th in a row is raised."""

    def __init__(self, append: Callable[[list[dict[str, Any]]], None]) -> None:
        self._append = append
        self._failures = 0

    def __call__(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        try:
            self._append(rows)
        except TableError as error:
            self._failures += 1
            if self._failures == MOST_FAILURES:
                raise TableError(f"{MOST_FAILURES} times in a row: {error}") from error
        else:
            self._failures = 0
