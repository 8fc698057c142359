"""One SQL query over the tables of an output folder, through delta-rs: no Spark, no JVM."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from rich.console import Console
from rich.table import Table

from headgate.errors import TableError
from headgate.throttle.tables import SCHEMAS

SHOWN_ROWS = 1000


def query(output: str, sql: str) -> pa.Table:
    """Run `sql` on the tables under `output`. Raises TableError where there is none, or for SQL that cannot be run."""
    builder = QueryBuilder()
    found = [name for name in SCHEMAS if (Path(output) / name / "_delta_log").is_dir()]
    if not found:
        raise TableError(f"no table is under {output}: give the --output of a job, which holds {', '.join(SCHEMAS)}")
    for name in found:
        builder.register(name, DeltaTable(f"{output}/{name}"))
    try:
        return pa.table(builder.execute(sql).read_all())
    except (DeltaError, OSError, ValueError) as error:
        raise TableError(f"the query cannot be run: {error}. Tables here: {', '.join(found)}") from error


def print_query(output: str, sql: str) -> None:
    rows = query(output, sql)
    table = Table(*rows.column_names, box=None, pad_edge=False)
    for row in rows.slice(0, SHOWN_ROWS).to_pylist():
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    console = Console(highlight=False)
    console.print(table)
    if len(rows) > SHOWN_ROWS:
        console.print(f"{SHOWN_ROWS} of {len(rows)} rows shown")
