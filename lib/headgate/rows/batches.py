"""Arrow batches of a source to raw rows: typed columns as they are, lines of text with their numbers."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.rows.csv_lines import CsvFile
from headgate.rows.faults import is_true
from headgate.rows.json_lines import json_blocks
from headgate.rows.listing import TEXT_FORMATS
from headgate.rows.raw import RAW_CHARACTERS, Raw, typed
from headgate.rows.traffic import Parsed
from headgate.rows.usage import spread
from headgate.rows.values import SPACE, is_utf8

MOST_LINE_BYTES = 2**26
TOO_LONG = "the line is longer than 64 MiB; write each row on a line of its own"
NOT_UTF8 = "the line is not UTF-8; what cannot be read is shown as \N{REPLACEMENT CHARACTER}"
Defects = dict[int, str]
"""What is wrong with lines, by place."""
_START_BYTES = 4 * RAW_CHARACTERS
"""What is kept of a line that is too long: at least what a dead letter shows."""


def parsed(
    parse: Callable[[Raw], Parsed], format_: str, shape: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[Parsed]:
    """What became of the rows of each batch; usage is publishes and dispatches by then (`spread`).

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
            yield from spread(Parsed(rows, pa.concat_tables([one.dead_letters for one in done])))


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
        lines, odd = _texts(batch["value"])
        yield from self.raws(lines, batch["source"], batch["offset"], odd)

    def raws(self, lines: pa.Array, source: pa.Array, offset: pa.Array, odd: Defects) -> Iterator[Raw]:
        """Lines of JSON."""
        start = 0
        for block in json_blocks(lines, self._schemas):
            end = start + block.size
            defects = block.defects | {place - start: why for place, why in odd.items() if start <= place < end}
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
        lines, odd = _texts(value)
        offset = pa.array(np.arange(first, first + len(value)))
        is_row = pc.greater(pc.binary_length(pc.ascii_trim(lines, SPACE)), 0).to_numpy(zero_copy_only=False)
        if not is_row.all():
            rows_until = np.cumsum(is_row).tolist()
            odd = {rows_until[place] - 1: why for place, why in odd.items() if is_row[place]}
            lines, source, offset = (array.filter(pa.array(is_row)) for array in (lines, source, offset))
        if not len(lines):
            return
        if self._is_csv:
            yield from self._csv(self._files.setdefault(name, CsvFile(self._names)), lines, source, offset, odd)
        else:
            yield from self._records.raws(lines, source, offset, odd)

    @staticmethod
    def _csv(file: CsvFile, lines: pa.Array, source: pa.Array, offset: pa.Array, odd: Defects) -> Iterator[Raw]:
        if not file.has_begun and file.begin(lines[0].as_py()):
            lines, source, offset = (array.slice(1) for array in (lines, source, offset))
            odd = {place - 1: why for place, why in odd.items() if place}
        if len(lines):
            columns, defects = file.read(lines)
            yield Raw(columns, source, offset, lines, is_text=True, defects=defects | odd, header=file.header)


def _json_schemas(shape: pa.Schema) -> list[pa.Schema]:
    """Times are texts, or else whole numbers."""
    if "event_time" not in shape.names:
        return [shape]
    return [shape, shape.set(shape.names.index("event_time"), pa.field("event_time", pa.int64()))]


def _texts(values: pa.Array) -> tuple[pa.Array, Defects]:
    """Bytes as text, and what is wrong with them.

    Of those that are not UTF-8 what cannot be read is replaced; of those that are too long there is the start.
    """
    is_long = is_true(pc.greater(pc.binary_length(values), MOST_LINE_BYTES))
    if is_long.any():
        values = pc.if_else(pa.array(is_long), pc.binary_slice(values, 0, _START_BYTES), values)
    too_long = dict.fromkeys(np.flatnonzero(is_long).tolist(), TOO_LONG)
    try:
        return values.cast(pa.string()), too_long
    except pa.ArrowInvalid:
        all_bytes = values.to_pylist()
        texts = [None if value is None else value.decode(errors="replace") for value in all_bytes]
        odd = (place for place, value in enumerate(all_bytes) if value is not None and not is_utf8(value))
        return pa.array(texts, pa.string()), dict.fromkeys(odd, NOT_UTF8) | too_long
