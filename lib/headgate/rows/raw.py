"""Rows as a source has them, with the place that each came from. Nothing is judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.rows.json_object import object_of
from headgate.rows.shown import is_text, row_as_json, shown

Flags = npt.NDArray[np.bool_]
RAW_CHARACTERS = 2**14
"""The most of a row that a dead letter keeps: a batch of such rows has to fit into an Arrow column of 2 GiB."""
SHOWN_CHARACTERS = 100


@dataclass(frozen=True)
class Raw:
    """Some rows of one input, in the order of the input.

    columns: by name in lower case, of any type; a column that the input lacks is left out. source, offset: of each row.
    whole: the rows for a dead letter, text as it is or structs. defects: by place, why a row has no columns. nested: by
    column of text, the rows that have an object or a list there. is_text: the columns are texts of lines that were
    checked for UTF-8 as a whole. header: the names of all columns of the input, known or not; None where each row is a
    JSON object, which has names of its own.
    """

    columns: Mapping[str, pa.Array]
    source: pa.Array
    offset: pa.Array
    whole: pa.Array
    is_text: bool
    defects: Mapping[int, str] = field(default_factory=dict)
    nested: Mapping[str, Flags] = field(default_factory=dict)
    header: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def column(self, name: str) -> pa.Array:
        """The column, of nulls if the input lacks it."""
        return self.columns[name] if name in self.columns else pa.nulls(len(self))

    def names(self, place: int) -> Sequence[str]:
        """The names of the columns that a row has, null or not."""
        if self.header is not None:
            return self.header
        row = object_of(self.whole[place].as_py())
        return () if isinstance(row, str) else tuple(row)

    def got(self, name: str, place: int) -> str | None:
        """The start of what a row has there, as text; None for null."""
        text = shown(self.column(name)[place]) if name in self.columns else None
        return None if text is None else text[:SHOWN_CHARACTERS]

    def letter(self, place: int, reason: str) -> dict[str, str | int | None]:
        """The dead letter of a row (schemas.DEAD_LETTERS)."""
        source, offset = self.source[place].as_py(), self.offset[place].as_py()
        return {"reason": reason, "raw": self.text(place), "source": source, "offset": offset}

    def text(self, place: int) -> str | None:
        """The start of the row as a dead letter shows it."""
        whole = self.whole[place]
        text = row_as_json(whole) if pa.types.is_struct(self.whole.type) else whole.as_py()
        return None if text is None else text[:RAW_CHARACTERS]


def no_rows() -> Raw:
    """An input without rows, and without columns."""
    return typed(pa.array([], pa.struct([])), pa.array([], pa.string()), pa.array([], pa.int64()))


def typed(rows: pa.StructArray, source: pa.Array, offset: pa.Array) -> Raw:
    """Rows of a Parquet file or a Delta table. Columns are found whatever the case of their names."""
    columns = {field.name.lower(): _plain(rows.field(number)) for number, field in enumerate(rows.type)}
    return Raw(columns, source, offset, rows, is_text=False, header=tuple(columns))


def _plain(column: pa.Array) -> pa.Array:
    """The column without a dictionary, of texts and bytes of the plain type: Arrow alone knows the others."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        return column.cast(pa.string())
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_binary_view(column.type)
    return column.cast(pa.binary()) if is_large else column
