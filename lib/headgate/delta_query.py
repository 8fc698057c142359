"""Delta tables outside Spark: followed as they grow, and read with SQL, the one way in which rows are read there."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

REOPENED_AFTER = 10
"""Commits. As many lie between two checkpoints (CHECKPOINTS), so what is opened anew has few to read."""
CHECKPOINTS = {"delta.checkpointInterval": str(REOPENED_AFTER)}
"""Properties of tables that get a commit with every batch."""


class Followed:
    """A Delta table as of the last `refresh`, or of an own commit: `table`.

    delta-rs keeps what it reads of each commit, and every later commit pays for it, so the table is opened anew every
    REOPENED_AFTER commits.
    """

    def __init__(self, table: DeltaTable) -> None:
        self.table = table
        self._opened = table.version()

    def refresh(self) -> DeltaTable:
        """Take in what was written since, and return `table`. Raises DeltaError and OSError."""
        self.table.update_incremental()
        if self.table.version() - self._opened >= REOPENED_AFTER:
            self.table = DeltaTable(self.table.table_uri)
            self._opened = self.table.version()
        return self.table


def query(sql: str, tables: Mapping[str, DeltaTable]) -> pa.Table:
    """The result of `sql` over tables as they are loaded, in any order unless it says one.

    All Rust: `DeltaTable.to_pyarrow_table` and `to_pyarrow_dataset` read with threads of pyarrow's own through a file
    system in Python. They may still be busy when the interpreter ends, and then abort the process.

    What fails while the query runs is raised as a plain Exception.
    """
    builder = QueryBuilder()
    for name, table in tables.items():
        builder.register(name, table)
    return pa.table(builder.execute(sql).read_all())


def newest(columns: str, keys: Sequence[str], order: str, where: str) -> str:
    """SQL for the first row of each of `keys` in this order, of a table called t. All are expressions of SQL."""
    place = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) AS place"
    return f"SELECT {columns} FROM (SELECT *, {place} FROM t WHERE {where}) WHERE place = 1"  # noqa: S608  names of our own, numbers
