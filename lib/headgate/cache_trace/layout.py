"""What a public trace looks like: the layouts that libCacheSim reads, with its numbering of columns from 1."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import ConfError

FORMATS = ("txt", "csv", "binary", "oracleGeneral", "vscsi")
TIME_UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_RECORD = re.compile(r"[<>=]?[bBhHiIlLqQfd]+")
_INTEGERS = frozenset("bBhHiIlLqQ")
_DTYPES = {"b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "l": "i4", "L": "u4", "q": "i8", "Q": "u8"}
_REALS = {"f": "f4", "d": "f8"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a trace has the id of an object, the time of a request and the size of the object.

    Raises ConfError with all mistakes at once for what contradicts itself.

    Arguments: `format`, one of FORMATS; `id_column`, `time_column`, `size_column`, from 1 on, 0: there is none (csv
    and binary; others know theirs); `time_unit`, a key of TIME_UNITS_NS (csv and binary); `delimiter` and `has_header`
    (csv); `ids_are_numbers`, else ids are text (txt and csv); `record`, the fields of a record in the letters of
    Python's `struct` (binary).
    """

    format: str
    id_column: int = 0
    time_column: int = 0
    size_column: int = 0
    time_unit: str = "s"
    delimiter: str = ","
    has_header: bool = False
    ids_are_numbers: bool = True
    record: str = ""

    def __post_init__(self) -> None:
        mistakes = list(_mistakes(self))
        if mistakes:
            raise ConfError(mistakes)


def record_type(record: str) -> np.dtype[Any]:
    """A record of these letters without padding, little-endian unless it says otherwise; its fields are f1, f2 ..."""
    order = ">" if record[0] == ">" else "<"
    letters = record.lstrip("<>=")
    fields = [(f"f{place}", order + (_DTYPES | _REALS)[letter]) for place, letter in enumerate(letters, 1)]
    return np.dtype(fields)


def _mistakes(layout: Layout) -> Any:
    if layout.format not in FORMATS:
        yield f"format: got {layout.format!r}, allowed {', '.join(FORMATS)}"
        return
    has_columns, is_text = layout.format in {"csv", "binary"}, layout.format in {"txt", "csv"}
    columns = {name: getattr(layout, name) for name in ("id_column", "time_column", "size_column")}
    if not has_columns:
        yield from (
            f"{_option(name)}: got {column}; a trace of format {layout.format} has its own, leave it out"
            for name, column in columns.items()
            if column
        )
    elif layout.id_column < 1:
        yield f"id-column: got {layout.id_column}, needed with {layout.format}: the column of the id, from 1 on"
    for name in ("time_column", "size_column"):
        if columns[name] < 0:
            yield f"{_option(name)}: got {columns[name]}, allowed 1 and more, or 0 for a trace without it"
    if has_columns:
        yield from _shared(columns)
    if layout.time_unit not in TIME_UNITS_NS:
        yield f"time-unit: got {layout.time_unit!r}, allowed {', '.join(TIME_UNITS_NS)}"
    if len(layout.delimiter) != 1 or not "\t" <= layout.delimiter <= "~" or layout.delimiter in '\r\n"':
        yield f"delimiter: got {layout.delimiter!r}, allowed one character of ASCII"
    if not (is_text or layout.ids_are_numbers):
        yield f"ids: got text with {layout.format}, whose ids are numbers; leave it out"
    if layout.format == "binary":
        yield from _record_mistakes(layout, columns)
    elif layout.record:
        yield f"record: got {layout.record!r}; needed with binary alone, leave it out"


def _shared(columns: dict[str, int]) -> Iterator[str]:
    for column in sorted({column for column in columns.values() if column > 0}):
        names = [_option(name) for name, own in columns.items() if own == column]
        if len(names) > 1:
            yield f"{', '.join(names)}: got {column} for each; allowed a column of its own for each; correct them"


def _record_mistakes(layout: Layout, columns: dict[str, int]) -> Any:
    if not _RECORD.fullmatch(layout.record):
        yield (
            f"record: got {layout.record!r}, allowed one letter a field, of {''.join([*_DTYPES, *_REALS])}, such as"
            " <IQI for 32, 64 and 32 bits without a sign, little-endian"
        )
        return
    letters = layout.record.lstrip("<>=")
    for name, column in columns.items():
        if column > len(letters):
            yield f"{_option(name)}: got {column}, allowed up to {len(letters)}, the fields of {layout.record}"
        elif column and name != "time_column" and letters[column - 1] not in _INTEGERS:
            yield f"{_option(name)}: got field {column} of {layout.record}, a real number; allowed an integer"


def _option(name: str) -> str:
    return name.replace("_", "-")
