"""Rows of plain values as Arrow tables."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """The rows, each with a value a column; timestamps may be whole numbers of their unit."""
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    arrays = [pa.array(values, column.type) for values, column in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
