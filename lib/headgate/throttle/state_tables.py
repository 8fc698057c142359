"""A part of a domain's state as tables, and back: each part has its form beside its fields."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import numbers
from headgate.core.kernels.columns import Ints

STORED_AS = {"initialised": np.int8, "group": np.int32, "cause": np.int8, "level": np.int32, "hour": np.int32}
"""Columns stored with fewer bits than they have in memory."""


class StatePart(Protocol):
    """What a domain keeps of one kind of rows.

    TABLES: names of what it is stored in. No two parts share one, and a new name needs no new version of the state.
    """

    TABLES: ClassVar[tuple[str, ...]]

    @property
    def is_begun(self) -> bool:
        """Whether it holds anything that has to be stored, or that a change of limits can move."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output, sooner or later."""
        return False

    def is_due(self, until_ns: int) -> bool:  # noqa: ARG002  what no time moves is never due
        """Whether time up to `until_ns` alone changes it."""
        return False

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """What it holds, by name; what is empty is left out."""
        ...

    def take(self, name: str, table: pa.Table) -> None:
        """Take back what `tables` gave; the fields of a table that is not there keep their defaults."""
        ...


def not_empty(**columns: Mapping[str, Any]) -> Iterator[tuple[str, pa.Table]]:
    """Tables of these columns, those that have rows."""
    return ((name, pa.table(of_table)) for name, of_table in columns.items() if len(next(iter(of_table.values()))))


def with_numbers(columns: Mapping[str, object], **of_all: int) -> pa.Table:
    """A table of these columns; numbers that belong to no row stand in its metadata (`number`)."""
    return pa.table(columns).replace_schema_metadata({name: str(value) for name, value in of_all.items()})


def number(table: pa.Table, name: str) -> int:
    """A number of `with_numbers`."""
    return int(table.schema.metadata[name.encode()])


def by_dimension(values: Mapping[str, Ints], fields: Mapping[str, int]) -> dict[str, object]:
    """Columns of limiters or levels, those of two dimensions as two."""
    columns: dict[str, object] = {}
    for name, dimensions in fields.items():
        if dimensions == 1:
            columns[name] = values[name].astype(STORED_AS.get(name, np.int64), copy=False)
        else:
            columns |= {f"messages_{name}": values[name][:, 0], f"bytes_{name}": values[name][:, 1]}
    return columns


def of_dimensions(table: pa.Table, fields: Mapping[str, int]) -> dict[str, Ints]:
    """The inverse of `by_dimension`."""
    return {
        name: numbers(table[name])
        if dimensions == 1
        else np.stack([numbers(table[f"messages_{name}"]), numbers(table[f"bytes_{name}"])], axis=1)
        for name, dimensions in fields.items()
    }


def hours(table: pa.Table) -> Ints:
    """The hours that stand in a table; an earlier headgate did not store them: they are those of no row."""
    return numbers(table["hour"]) if "hour" in table.schema.names else np.zeros(len(table), np.int64)
