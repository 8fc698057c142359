"""One SQL query over the tables of an output folder, through delta-rs: no Spark, no JVM."""

import re
import sys

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from headgate.errors import TableError
from headgate.report.screen import plain
from headgate.report.tables_command import elsewhere, found_tables, listed, opened
from headgate.tables import query as delta_query

SHOWN_ROWS = 1000
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
UNBOUNDED = 1_000_000
_QUERY = re.compile(
    r"(?:\s|--[^\r\n]*\r?\n)*(?:EXPLAIN\s+(?:ANALYZE\s+)?(?:VERBOSE\s+)?(?:FORMAT\s+\w+\s+)?)?(?:\(\s*)*"
    r"(?:SELECT|WITH|VALUES|FROM|DESCRIBE|DESC)\b",
    re.IGNORECASE,
)
"""How a query begins. The engine takes one statement at a time, but writes files for COPY, also behind EXPLAIN ANALYZE.

Its parser cannot be asked without running the statement. No comment like this /* */: they nest, which no pattern sees.
"""


def query(output: str, sql: str) -> pa.Table:
    """Run `sql` on the tables under `output`. Those alone whose names stand in it are opened: a damaged one stops no
    other query.

    Raises TableError where there is none, for what is no query, and for SQL that cannot be run.
    """
    if _SHOW_TABLES.fullmatch(sql):
        return listed(output)
    if not _QUERY.match(sql):
        raise TableError(
            f"got {sql.strip()[:60]!r}; allowed is one query, which changes nothing: it begins with SELECT, WITH, "
            "VALUES, FROM, DESCRIBE or EXPLAIN, behind comments of the form -- if any, or is SHOW TABLES"
        )
    found = found_tables(output)
    tables = {name: opened(f"{output}/{name}") for name in found if _names(sql, name)}
    try:
        return delta_query.query(sql, tables)
    except Exception as error:  # delta_query raises no other
        said = str(error).rstrip(".")
        here = f"Tables here: {', '.join(found)}{elsewhere(output)}"
        raise TableError(f"the query cannot be run: {said}. {here}") from error


def _names(sql: str, table: str) -> bool:
    """Whether the table's name stands in a query, as a table or otherwise."""
    return re.search(rf"(?<!\w){re.escape(table)}(?!\w)", sql, re.IGNORECASE) is not None


def print_rows(rows: pa.Table) -> None:
    """Print rows as a table: folded to the width of a terminal, one line a row anywhere else."""
    table = Table(box=None, pad_edge=False)
    for name in rows.column_names:
        table.add_column(name, overflow="fold")
    for row in rows.slice(0, SHOWN_ROWS).to_pylist():
        table.add_row(*("" if value is None else plain(str(value)) for value in row.values()))
    console = Console(
        highlight=False,
        markup=False,  # values may hold brackets and colons
        emoji=False,
        width=None if sys.stdout.isatty() else UNBOUNDED,
    )
    console.print(table)
    if len(rows) > SHOWN_ROWS:
        console.print(f"{SHOWN_ROWS} of {len(rows)} rows shown")
