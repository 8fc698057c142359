"""Where a local run puts its rows: Delta tables in few, large appends, or sums alone. After a crash it begins anew."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol

import pyarrow as pa

from headgate.arrow.runs import in_full
from headgate.arrow.schemas import Waiting
from headgate.arrow.topic_names import named_rows
from headgate.tables.delta import Tables
from headgate.tables.sums import Sums
from headgate.throttle.schemas import CONTROL
from headgate.throttle.tables import SCHEMAS

MOST_ROWS = 500_000
"""Rows of a table that wait, at most about."""


class LocalTables(Protocol):
    """Tables of a run that has one writer and takes each batch once. `flush` comes after the last row."""

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool: ...
    def append_control(self, rows: list[dict[str, Any]], transaction: tuple[str, int] | None = None) -> None: ...
    def totals(self, sums: Sums) -> pa.Table: ...
    def flush(self) -> None: ...


class BufferedTables(Tables):
    """Every row that was appended is in its Delta table after `flush`: one commit for about MOST_ROWS rows."""

    def __init__(self, output: str | PurePath, schemas: Mapping[str, pa.Schema]) -> None:
        super().__init__(output, schemas)
        self._waiting = Waiting()

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool:  # noqa: ARG002  one writer, once
        """Keep the rows for the next `flush`."""
        if len(rows):
            self.extend(name, rows)
        return len(rows) > 0

    def extend(self, name: str, rows: pa.Table, transaction: tuple[str, int] | None = None) -> None:  # noqa: ARG002
        """Keep the rows for the next `flush`."""
        for some in in_full(rows):
            if self._waiting.add(name, self._whole(name, some)) > MOST_ROWS:
                self._flush(name)

    def read(self, name: str, columns: Iterable[str] | None = None) -> pa.Table:
        """As of `Tables`, with the rows that wait."""
        self._flush(name)
        return super().read(name, columns)

    def totals(self, sums: Sums) -> pa.Table:
        """As of `Tables`, with the rows that wait."""
        self._flush(sums.table)
        return super().totals(sums)

    def is_empty(self, name: str) -> bool:
        """As of `Tables`, with the rows that wait."""
        return name not in self._waiting.names and super().is_empty(name)

    def flush(self) -> None:
        """Append what waits."""
        for name in self._waiting.names:
            self._flush(name)

    def _flush(self, name: str) -> None:
        waiting = self._waiting.take(name)
        if waiting is not None:
            super().extend(name, waiting)


class SummedTables:
    """No row is kept, but the sums that were asked for beforehand have all of them.

    Memory: about MOST_ROWS rows of a table that has sums, and the sums.
    """

    def __init__(self, sums: Iterable[Sums]) -> None:
        self._sums: dict[Sums, list[pa.Table]] = {one: [] for one in sums}
        self._tables = {one.table for one in self._sums}
        self._waiting = Waiting()

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool:  # noqa: ARG002  one writer, once
        """Take the rows into the sums of their table."""
        if name in self._tables and len(rows):
            self._take_in(name, rows)
        return len(rows) > 0

    def _take_in(self, name: str, rows: pa.Table) -> None:
        for some in in_full(rows):
            if self._waiting.add(name, named_rows(some)) > MOST_ROWS:
                self._fold(name)

    def append_control(self, rows: list[dict[str, Any]], transaction: tuple[str, int] | None = None) -> None:
        """Nothing is asked of what was said."""

    def totals(self, sums: Sums) -> pa.Table:
        """One of the sums that were asked for."""
        self._fold(sums.table)
        return self._sums[sums][0] if self._sums[sums] else sums.of(named_rows(SCHEMAS[sums.table].empty_table()))

    def flush(self) -> None:
        """Rows are in the sums once these are read."""

    def _fold(self, name: str) -> None:
        rows = self._waiting.take(name)
        if rows is None:
            return
        for sums, known in self._sums.items():
            if sums.table == name:
                self._sums[sums] = [sums.together([*known, sums.of(rows)])]


class ControlRows:
    """Rows of `control` on their way to the operator: each is handed out once, and is in the tables as well."""

    def __init__(self, tables: LocalTables) -> None:
        self._tables = tables
        self._waiting: list[dict[str, Any]] = []

    def append_control(self, rows: list[dict[str, Any]], transaction: tuple[str, int] | None = None) -> None:
        """Rows for the next batch."""
        self._tables.append_control(rows, transaction)
        self._waiting += rows

    def take(self) -> Sequence[pa.RecordBatch]:
        """Those that were appended since the last call."""
        rows, self._waiting = self._waiting, []
        batches: list[pa.RecordBatch] = pa.Table.from_pylist(rows, CONTROL).to_batches()
        return batches
