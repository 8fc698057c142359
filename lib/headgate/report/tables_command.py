"""`headgate tables`: which tables an output has, how many rows, and of which times."""

from collections.abc import Iterator

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.errors import TableError
from headgate.quota.tables.schemas import EPOCH_PROPERTY
from headgate.quota.tables.topic_tables import BROKERS, folders_of
from headgate.store_errors import unreadable
from headgate.stores import is_there
from headgate.tables import query as delta_query

COLUMNS = pa.schema([("table", pa.string()), ("rows", pa.int64()), ("first", pa.string()), ("last", pa.string())])
_TIMES = ("event_time", "second", "effective_time", "written_at")
"""Columns of time: the first of them that a table has tells what its rows are of."""
_ENDS = (("min", "first"), ("max", "last"))


def found_tables(output: str) -> list[str]:
    """The names of the Delta tables right under a folder. Raises TableError where there is none."""
    found = [place.rpartition("/")[2] for place in folders_of(output) if is_there(f"{place}/_delta_log")]
    if not found:
        raise TableError(f"no Delta table is under {output}: give the --output of a job{elsewhere(output)}")
    return found


def opened(place: str) -> DeltaTable:
    """The table there. Raises TableError where it cannot be read."""
    try:
        return DeltaTable(place)
    except (DeltaError, OSError) as error:
        raise unreadable(place, error) from error


def elsewhere(output: str) -> str:
    """Where jobs of one broker have their own tables, if there are any."""
    parts = folders_of(f"{output}/{BROKERS}")
    return f". Jobs of one broker have tables of their own under {', '.join(parts)}" if parts else ""


def listed(output: str) -> pa.Table:
    """COLUMNS: a row for each table. Times are event times where the table has any, else those of writing."""
    return pa.Table.from_pylist(list(_rows(output)), COLUMNS)


def _rows(output: str) -> Iterator[dict[str, object]]:
    for name in found_tables(output):
        table = opened(f"{output}/{name}")
        try:
            times = "".join(f", {end}({time}) AS {name}" for time in _time(table) for end, name in _ENDS)
            (row,) = delta_query.query(f"SELECT count(*) AS rows{times} FROM t", {"t": table}).to_pylist()  # noqa: S608
        except Exception as error:  # a query raises any
            raise unreadable(f"{output}/{name}", error) from error
        yield {
            "table": name,
            "rows": row["rows"],
            **{end: f"{row[end]:%Y-%m-%dT%H:%M:%SZ}" for _, end in _ENDS if row.get(end) is not None},
        }


def _time(table: DeltaTable) -> Iterator[str]:
    """An expression of SQL for the time that a row is of; none where rows have no time."""
    columns = {field.name for field in table.schema().fields}
    epoch_ms = table.metadata().configuration.get(EPOCH_PROPERTY, "")
    if "epoch" in columns and epoch_ms.isdigit():
        yield f"to_timestamp_millis(epoch * {epoch_ms})"
    else:
        yield from [column for column in _TIMES if column in columns][:1]
