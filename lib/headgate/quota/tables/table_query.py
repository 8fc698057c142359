"""SQL over one table of resource groups, as of its last refresh."""

from typing import Any

import pyarrow as pa

from headgate.quota.tables.delta import Table
from headgate.store_errors import unreadable
from headgate.tables.query import query


def rows_of(table: Table, sql: str) -> list[dict[str, Any]]:
    """The rows that a query over `table`, which it calls t, gives. Raises TableError where the table cannot be read."""
    rows: list[dict[str, Any]] = arrow_of(table, sql).to_pylist()
    return rows


def arrow_of(table: Table, sql: str) -> pa.Table:
    """The same in Arrow."""
    try:
        return query(sql, {"t": table.delta})
    except Exception as error:  # query raises no other
        raise unreadable(table.location, error) from error
