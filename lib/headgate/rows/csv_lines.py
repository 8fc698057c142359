"""Lines of CSV files to raw rows: one record a line, quoted as in RFC 4180."""

import csv
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Ints

NO_HEADER = "the file does not begin with a header that names columns of"
BYTE_ORDER_MARK = "\ufeff"
_MOST_PLAIN = 2**16
"""Characters of a line that is cut at its commas; longer ones have longer fields than CSV may have."""


class CsvFile:
    """The lines of one file, some at a time, from the first to the last.

    The header is the first line that is not blank. Where that names no known column, it is taken for a record, and
    every line of the file is a bad row.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._header: list[str] | None = None
        self._begun = False

    def begin(self, line: str) -> bool:
        """Whether the line is the header; asked of the file's first line that is not blank, and of no other."""
        fields, _ = _fields(line.removeprefix(BYTE_ORDER_MARK))
        header = [field.strip() for field in fields]
        self._begun = True
        if set(header) & set(self._names):
            self._header = header
        return self._header is not None

    @property
    def has_begun(self) -> bool:
        """Whether the first line has come."""
        return self._begun

    @property
    def header(self) -> Sequence[str]:
        """The names of all columns, known or not; none where there is no header."""
        return self._header or ()

    def read(self, lines: pa.Array) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """Columns by name, an empty field being null, and why lines have none, by place. lines: none of them blank."""
        if self._header is None:
            reason = f"{NO_HEADER} {', '.join(self._names)}"
            return self._nothing(len(lines)), dict.fromkeys(range(len(lines)), reason)
        width = len(self._header)
        is_odd = pc.or_(pc.match_substring(lines, '"'), pc.starts_with(lines, BYTE_ORDER_MARK))
        is_plain = pc.and_not(pc.less(pc.binary_length(lines), _MOST_PLAIN), is_odd).to_numpy(zero_copy_only=False)
        fields = pc.split_pattern(lines.filter(pa.array(is_plain)), ",")
        plain, odd = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
        counts = pc.list_value_length(fields).to_numpy()
        fits = counts == width
        defects = {int(plain[at]): self._wrong_width(int(counts[at])) for at in np.flatnonzero(counts != width)}
        flat = fields.filter(pa.array(fits)).flatten()
        columns = {
            name: flat.take(pa.array(np.arange(at, len(flat), width)))
            for at, name in enumerate(self._header)
            if name in self._names
        }
        places = plain[fits]
        if len(odd):
            columns, places = self._with_odd(lines, odd, columns, places, defects)
        return self._placed(columns, places, len(lines)), defects

    def _with_odd(
        self, lines: pa.Array, odd: Ints, columns: dict[str, pa.Array], places: Ints, defects: dict[int, str]
    ) -> tuple[dict[str, pa.Array], Ints]:
        """With the lines that need a reader of CSV; `defects` has those that it refuses then."""
        header = self._header or []
        rows: list[list[str]] = []
        good: list[int] = []
        for place in odd.tolist():
            fields, defect = _fields(lines[place].as_py())
            if defect is None and len(fields) != len(header):
                defect = self._wrong_width(len(fields))
            if defect is not None:
                defects[place] = defect
            else:
                rows.append(fields)
                good.append(place)
        more = {
            name: pa.concat_arrays([columns[name], pa.array([row[at] for row in rows], pa.string())])
            for at, name in enumerate(header)
            if name in columns
        }
        return more, np.concatenate([places, np.array(good, np.int64)])

    def _placed(self, columns: dict[str, pa.Array], places: Ints, count: int) -> dict[str, pa.Array]:
        """The columns with each value at its line, empty ones as null."""
        at = np.full(count, -1, np.int64)
        at[places] = np.arange(len(places))
        taken = pa.array(at, mask=at < 0)
        placed = self._nothing(count)
        for name, column in columns.items():
            values = pc.if_else(pc.equal(column, ""), None, column)
            placed[name] = values if len(places) == count and (places == np.arange(count)).all() else values.take(taken)
        return placed

    def _nothing(self, count: int) -> dict[str, pa.Array]:
        return dict.fromkeys(self._names, pa.nulls(count, pa.string()))

    def _wrong_width(self, count: int) -> str:
        width = len(self._header or ())
        return f"the line has {count} fields, the header of its file has {width}"


def _fields(line: str) -> tuple[list[str], str | None]:
    try:
        return next(csv.reader([line.removeprefix(BYTE_ORDER_MARK)], strict=True), []), None
    except csv.Error as error:
        return [], f"the line is not CSV: {error}"
