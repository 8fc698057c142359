"""Sums of tables by place."""

from collections.abc import Sequence

import pyarrow as pa


def summed(table: pa.Table, by: Sequence[str], sums: Sequence[str], maxima: Sequence[str] = ()) -> pa.Table:
    """One row for each place of the columns `by`: these, then the sums and the maxima, under their old names."""
    wanted = [(name, "sum") for name in sums] + [(name, "max") for name in maxima]
    grouped = table.group_by(list(by), use_threads=False).aggregate(wanted)
    columns = {name: grouped[name] for name in by} | {name: grouped[f"{name}_{how}"] for name, how in wanted}
    return pa.table(columns)
