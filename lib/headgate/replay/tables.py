"""The Delta tables of a replay: written once, by one process."""

from pathlib import PurePath

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from headgate.arrow.schemas import Waiting
from headgate.errors import TableError
from headgate.replay.schemas import TABLES
from headgate.store_errors import said
from headgate.tables.query import query

ROWS_AT_ONCE = 500_000


class ReplayTables:
    """Rows wait until there are ROWS_AT_ONCE of a table, or `flush`. The tables are there from the start on.

    Raises TableError where a table cannot be created, written or read.
    """

    def __init__(self, output: str | PurePath) -> None:
        self.output = str(output)
        self._waiting = Waiting()
        self._tables: dict[str, DeltaTable] = {}
        for name, schema in TABLES.items():
            try:
                self._tables[name] = DeltaTable.create(f"{output}/{name}", schema=schema)
            except (DeltaError, OSError) as error:
                raise self._failure(name, "created", error) from error

    def append(self, name: str, rows: pa.Table) -> None:
        """Take rows in; columns that they lack are null."""
        schema = TABLES[name]
        columns = [rows[one.name] if one.name in rows.column_names else pa.nulls(len(rows), one.type) for one in schema]
        if self._waiting.add(name, pa.table(columns, schema=schema)) >= ROWS_AT_ONCE:
            self._write(name)

    def flush(self) -> None:
        """Write what waits."""
        for name in self._waiting.names:
            self._write(name)

    def query(self, sql: str) -> pa.Table:
        """The result of a query of these tables as they were flushed."""
        try:
            return query(sql, self._tables)
        except Exception as error:  # query raises no other
            raise self._failure("", "read", error) from error

    def _write(self, name: str) -> None:
        rows = self._waiting.take(name)
        if not rows:
            return
        try:
            write_deltalake(self._tables[name], rows, mode="append")
            self._tables[name].update_incremental()
        except (DeltaError, OSError) as error:
            raise self._failure(name, "written", error) from error

    def _failure(self, name: str, done: str, error: Exception) -> TableError:
        return TableError(
            f"the table {self.output}/{name} cannot be {done}: {said(error)}; give an --output that can be written"
        )
