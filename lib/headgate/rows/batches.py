"""Arrow batches of a source to raw rows: typed columns as they are, lines of text with their numbers."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.rows.csv_lines import CsvFile
from headgate.rows.json_lines import json_blocks
from headgate.rows.raw import Raw, typed
from headgate.rows.traffic import Parsed
from headgate.rows.values import is_utf8

TEXT_FORMATS = ("json", "csv")
NOT_UTF8 = "the line is not UTF-8; what cannot be read is shown as \N{REPLACEMENT CHARACTER}"
_SPACE = " \t\n\x0b\f\r"


def parsed(
    parse: Callable[[Raw], Parsed], format_: str, shape: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[Parsed]:
    """What became of the rows of each batch.

    batches: of Parquet and Delta `row` (a struct of all columns), `source`, `offset`; else `value` (the bytes of a line
    or record), `source`, and of Kafka `offset`. Lines of a file come from its first to its last, or to the last of a
    part of it that has a source of its own, and are counted here; of CSV the first has the header.
    shape: the columns that are asked for, with the types that they have in JSON.
    """
    read = _reader(format_, shape)
    for batch in batches:
        done = [parse(raw) for raw in read(batch)]
        if done:
            rows = pa.concat_tables([one.rows for one in done], promote_options="default")
            yield Parsed(rows, pa.concat_tables([one.dead_letters for one in done]))


def _reader(format_: str, shape: pa.Schema) -> Callable[[pa.RecordBatch], Iterator[Raw]]:
    if format_ == "kafka":
        return _Records(shape).read
    if format_ in TEXT_FORMATS:
        return _Lines(format_, shape).read
    return _typed_rows


def _typed_rows(batch: pa.RecordBatch) -> Iterator[Raw]:
    yield typed(batch["row"], batch["source"], batch["offset"])


class _Records:
    """Values of Kafka records: each a JSON object."""

    def __init__(self, shape: pa.Schema) -> None:
        self._schemas = _json_schemas(shape)

    def read(self, batch: pa.RecordBatch) -> Iterator[Raw]:
        lines, defects = _texts(batch["value"])
        yield from self.raws(lines, batch["source"], batch["offset"], defects)

    def raws(self, lines: pa.Array, source: pa.Array, offset: pa.Array, not_utf8: Ints) -> Iterator[Raw]:
        """Lines of JSON. not_utf8: places of those that are not."""
        start = 0
        for block in json_blocks(lines, self._schemas):
            end = start + block.size
            own = not_utf8[(not_utf8 >= start) & (not_utf8 < end)] - start
            defects = block.defects | dict.fromkeys(own.tolist(), NOT_UTF8)
            here = slice(start, end)
            yield Raw(
                block.columns,
                source[here],
                offset[here],
                whole=lines[here],
                is_text=True,
                defects=defects,
                nested=block.nested,
            )
            start = end


class _Lines:
    """Lines of the files of one task. Blank ones are no rows, but are counted."""

    def __init__(self, format_: str, shape: pa.Schema) -> None:
        self._is_csv = format_ == "csv"
        self._records = _Records(shape)
        self._names = shape.names
        self._counts: dict[str, int] = {}
        self._files: dict[str, CsvFile] = {}

    def read(self, batch: pa.RecordBatch) -> Iterator[Raw]:
        source = batch["source"].dictionary_encode()
        codes = source.indices.to_numpy()
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
            here = slice(start, end)
            name = source.dictionary[codes[start]].as_py() if end > start else ""
            yield from self._of_file(name, batch["value"][here], batch["source"][here])

    def _of_file(self, name: str, value: pa.Array, source: pa.Array) -> Iterator[Raw]:
        first = self._counts.get(name, 0) + 1
        self._counts[name] = first - 1 + len(value)
        lines, not_utf8 = _texts(value)
        offset = pa.array(np.arange(first, first + len(value)))
        is_row = pc.greater(pc.binary_length(pc.ascii_trim(lines, _SPACE)), 0).to_numpy(zero_copy_only=False)
        if not is_row.all():
            not_utf8 = np.searchsorted(np.flatnonzero(is_row), not_utf8)
            lines, source, offset = (array.filter(pa.array(is_row)) for array in (lines, source, offset))
        if not len(lines):
            return
        if self._is_csv:
            yield from self._csv(self._files.setdefault(name, CsvFile(self._names)), lines, source, offset, not_utf8)
        else:
            yield from self._records.raws(lines, source, offset, not_utf8)

    @staticmethod
    def _csv(file: CsvFile, lines: pa.Array, source: pa.Array, offset: pa.Array, not_utf8: Ints) -> Iterator[Raw]:
        if not file.has_begun and file.begin(lines[0].as_py()):
            lines, source, offset = (array.slice(1) for array in (lines, source, offset))
            not_utf8 = not_utf8[not_utf8 > 0] - 1
        if len(lines):
            columns, defects = file.read(lines)
            defects |= dict.fromkeys(not_utf8.tolist(), NOT_UTF8)
            yield Raw(columns, source, offset, lines, is_text=True, defects=defects)


def _json_schemas(shape: pa.Schema) -> list[pa.Schema]:
    """Times are texts, or else whole numbers."""
    if "event_time" not in shape.names:
        return [shape]
    return [shape, shape.set(shape.names.index("event_time"), pa.field("event_time", pa.int64()))]


def _texts(values: pa.Array) -> tuple[pa.Array, Ints]:
    """Bytes as text, and the places of those that are not UTF-8, of which what cannot be read is replaced."""
    try:
        return values.cast(pa.string()), np.empty(0, np.int64)
    except pa.ArrowInvalid:
        all_bytes = values.to_pylist()
        texts = [None if value is None else value.decode(errors="replace") for value in all_bytes]
        odd = [place for place, value in enumerate(all_bytes) if value is not None and not is_utf8(value)]
        return pa.array(texts, pa.string()), np.array(odd, np.int64)
