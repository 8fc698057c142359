"""SQL over Delta tables: the one way in which headgate reads rows of them outside Spark."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


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
