"""Sums over a table of a job: the same from Delta tables, and from rows that are on their way and kept nowhere."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

ROWS = "rows"
LOWEST = "lowest_"
"""Begins the names of columns with the smallest value of others."""


class Made(NamedTuple):
    """A column that the table does not have, of text unless `type` says otherwise: `sql` and `of` say the same."""

    name: str
    sql: str
    of: Callable[[pa.Table], pa.ChunkedArray]
    type: pa.DataType = pa.string()


def replaced(name: str, column: str, pattern: str, replacement: str) -> Made:
    """A column of text with every match of `pattern` in it replaced."""
    return Made(
        name,
        f"regexp_replace(\"{column}\", '{pattern}', '{replacement}', 'g')",
        lambda rows: pc.replace_substring_regex(rows[column], pattern, replacement),
    )


class Sums(NamedTuple):
    """The rows of `table` put together by the columns `by`: one row for each combination of their values.

    The result has the columns `by`, `totals` (summed up), `highest` (the largest value), `lowest` (the smallest one, as
    LOWEST and the name) and `rows`, how many there are. A null adds nothing; where all are null the sum is null.
    where: columns, and the values that rows must have there. nonzero: columns, of which one at least is not 0.
    made: columns that the table does not have.
    """

    table: str
    by: tuple[str, ...]
    totals: tuple[str, ...] = ()
    highest: tuple[str, ...] = ()
    lowest: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    nonzero: tuple[str, ...] = ()
    made: tuple[Made, ...] = ()

    @property
    def sql(self) -> str:
        """As a query of the table."""
        columns = [
            *(f'"{name}"' for name in self.by),
            *(f'sum("{name}") AS "{name}"' for name in self.totals),
            *(f'max("{name}") AS "{name}"' for name in self.highest),
            *(f'min("{name}") AS "{LOWEST}{name}"' for name in self.lowest),
            f'count(*) AS "{ROWS}"',
        ]
        conditions = [f'"{name}" IN ({", ".join(map(repr, values))})' for name, values in self.where]
        if self.nonzero:
            conditions.append("(" + " OR ".join(f'"{name}" <> 0' for name in self.nonzero) + ")")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        by, source = ", ".join(f'"{name}"' for name in self.by), self.table
        if self.made:
            made = ", ".join(f'{one.sql} AS "{one.name}"' for one in self.made)
            source = f"(SELECT *, {made} FROM {source})"  # noqa: S608  names of our own
        return f"SELECT {', '.join(columns)} FROM {source}{where} GROUP BY {by}"  # noqa: S608  names of our own

    def of(self, rows: pa.Table) -> pa.Table:
        """Of rows of the table."""
        for name, values in self.where:
            rows = rows.filter(pc.is_in(rows[name], pa.array(values, pa.string())))
        if self.nonzero:
            counts = [pc.fill_null(pc.not_equal(rows[name], 0), False) for name in self.nonzero]
            rows = rows.filter(reduce(pc.or_, counts))
        for one in self.made:
            rows = rows.append_column(one.name, one.of(rows))
        return self._grouped(rows, "", [([], "count_all")])

    def together(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Of results for parts of the rows, at least one: the result for all of them."""
        return self._grouped(pa.concat_tables(parts), LOWEST, [(ROWS, "sum")])

    def type_of(self, name: str, table: pa.Schema) -> pa.DataType:
        """Of a column of the result, for the schema of the table."""
        for one in self.made:
            if name == one.name:
                return one.type
        return pa.int64() if name == ROWS else table.field(name.removeprefix(LOWEST)).type

    def _grouped(self, rows: pa.Table, lowest: str, count: list[tuple[str | list[str], str]]) -> pa.Table:
        """lowest: begins the names of the columns with the smallest values in `rows`."""
        of_columns = [
            *((name, "sum") for name in self.totals),
            *((name, "max") for name in self.highest),
            *((lowest + name, "min") for name in self.lowest),
        ]
        grouped = rows.group_by(list(self.by), use_threads=False).aggregate([*of_columns, *count])
        return grouped.rename_columns(
            [*self.by, *self.totals, *self.highest, *(LOWEST + name for name in self.lowest), ROWS]
        )


class Summed(Protocol):
    """Where sums come from."""

    def totals(self, sums: Sums) -> pa.Table: ...
