"""Equal rows that follow each other, as one row with how many it stands for: on their way to a table, never in it."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import numbers
from headgate.core.kernels.columns import Ints

TIMES = "times"
"""The column with how many rows one stands for, null: for one. Without it, each is there once."""
AT_ONCE = 1 << 17
"""Rows that are made at a time: as many as of a file are read (rows.files.ROWS_AT_ONCE)."""


def with_times(rows: pa.Table, times: Ints) -> pa.Table:
    """The rows, each so many times."""
    return rows.append_column(TIMES, pa.array(times)) if (times > 1).any() else rows


def times_of(rows: pa.Table) -> Ints:
    """How many rows each one stands for."""
    return numbers(rows[TIMES].fill_null(1)) if TIMES in rows.column_names else np.ones(len(rows), np.int64)


def together(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of all, some of which may have TIMES."""
    return pa.concat_tables(parts, promote_options="default")


def in_full(rows: pa.Table) -> Iterator[pa.Table]:
    """Each row as often as it stands for, in their order; where that is more than once, AT_ONCE rows at a time."""
    if TIMES not in rows.column_names:
        yield rows
        return
    ends = np.cumsum(times_of(rows))
    total, rows = int(ends[-1:].sum()), rows.drop_columns(TIMES)
    for first in range(0, total, AT_ONCE):
        wanted = np.arange(first, min(first + AT_ONCE, total))
        yield rows.take(pa.array(np.searchsorted(ends, wanted, side="right")))
