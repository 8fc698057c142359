"""Sums over a table of a job: the same from Delta tables, and from rows that are on their way and kept nowhere."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

ROWS = "rows"


class Sums(NamedTuple):
    """The rows of `table` put together by the columns `by`: one row for each combination of their values.

    The result has the columns `by`, `totals` (summed up), `highest` (the largest value) and `rows`, how many there are.
    A null adds nothing; where all are null the sum is null. where: columns, and the values that rows must have there.
    """

    table: str
    by: tuple[str, ...]
    totals: tuple[str, ...] = ()
    highest: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def sql(self) -> str:
        """As a query of the table."""
        columns = [
            *(f'"{name}"' for name in self.by),
            *(f'sum("{name}") AS "{name}"' for name in self.totals),
            *(f'max("{name}") AS "{name}"' for name in self.highest),
            f'count(*) AS "{ROWS}"',
        ]
        conditions = [f'"{name}" IN ({", ".join(map(repr, values))})' for name, values in self.where]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        by = ", ".join(f'"{name}"' for name in self.by)
        return f"SELECT {', '.join(columns)} FROM {self.table}{where} GROUP BY {by}"  # noqa: S608  names of our own

    def of(self, rows: pa.Table) -> pa.Table:
        """Of rows of the table."""
        for name, values in self.where:
            rows = rows.filter(pc.is_in(rows[name], pa.array(values, pa.string())))
        return self._grouped(rows, [([], "count_all")])

    def together(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Of results for parts of the rows, at least one: the result for all of them."""
        return self._grouped(pa.concat_tables(parts), [(ROWS, "sum")])

    def _grouped(self, rows: pa.Table, count: list[tuple[str | list[str], str]]) -> pa.Table:
        of_columns = [*((name, "sum") for name in self.totals), *((name, "max") for name in self.highest)]
        grouped = rows.group_by(list(self.by), use_threads=False).aggregate([*of_columns, *count])
        return grouped.rename_columns([*self.by, *self.totals, *self.highest, ROWS])


class Summed(Protocol):
    """Where sums come from."""

    def totals(self, sums: Sums) -> pa.Table: ...
