"""Input files without Spark: their batches, as `batches.parsed` takes them, and what cannot be read of them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from headgate.arrow import DEAD_LETTERS
from headgate.errors import InputError
from headgate.rows.batches import TEXT_FORMATS, parsed
from headgate.rows.listing import STDIN, files_at, is_delta
from headgate.rows.raw import Raw, no_rows
from headgate.rows.traffic import Parsed

ROWS_AT_ONCE = 131_072
BYTES_AT_ONCE = 2**24
UNREADABLE = "cannot be read to its end"
_NOT_READ_BY_FILE = {"deletionVectors", "columnMapping", "typeWidening"}
_UNREADABLE_ERRORS = (OSError, EOFError, pa.ArrowException)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class File(NamedTuple):
    """A file of an input, or a whole Delta table. name: what dead letters say of where a row came from."""

    path: str
    name: str


def input_files(path: str, format_: str) -> list[File]:
    """The files at a path or pattern, in the order in which a stream takes them: by time, to the millisecond, and name.

    Those with hidden names are no input. A Delta table is one; so is `-`, the standard input. Raises InputError where
    nothing is there.
    """
    if path == STDIN or format_ == "delta":
        if path != STDIN and not is_delta(path):
            raise InputError(f"--input: no Delta table is at {path}; give the folder of one, or the right --format")
        return [File(path, "stdin" if path == STDIN else path)]
    files = files_at(path)
    if not files:
        raise InputError(f"--input: nothing is at {path}; give a file, a folder or a pattern that exists")
    files.sort(key=lambda file: (file.stat().st_mtime_ns // 1_000_000, str(file)))
    return [File(str(file), _named(file)) for file in files]


def parsed_files(
    files: Iterable[File], format_: str, shape: pa.Schema, parse: Callable[[Raw], Parsed]
) -> Iterator[Parsed]:
    """What became of the rows of each file in turn, some at a time; of one that cannot be read, also that it cannot.

    Memory is bounded by ROWS_AT_ONCE rows or BYTES_AT_ONCE bytes of text. shape, parse: see `batches.parsed`. Raises
    InputError for a Delta table that cannot be read.
    """
    for file in files:
        try:
            yield from parsed(parse, format_, shape, _batches(file, format_))
        except _UNREADABLE_ERRORS as error:
            yield Parsed(parse(no_rows()).rows, _letter(file, error))


def whole_files(
    files: Iterable[File], format_: str, shape: pa.Schema, parse: Callable[[Raw], Parsed]
) -> tuple[list[Parsed], pa.Table]:
    """What became of the rows of all files, and dead letters of files that are left out: not to be read to their end.

    Everything is in memory. shape, parse: see `batches.parsed`. Raises InputError where no file can be read.
    """
    kept: list[Parsed] = []
    lost: list[pa.Table] = []
    is_any_whole = False
    for file in files:
        try:
            kept += list(parsed(parse, format_, shape, _batches(file, format_)))
            is_any_whole = True
        except _UNREADABLE_ERRORS as error:
            lost.append(_letter(file, error))
    letters = pa.concat_tables([DEAD_LETTERS.empty_table(), *lost])
    if not is_any_whole:
        raise InputError(
            f"--input: {letters['source'][0]}: {letters['reason'][0]}; "
            "give files that can be read, or the right --format"
        )
    return kept, letters


def unreadable(name: str, why: str) -> dict[str, str | None]:
    """The dead letter of a file of which rows are lost."""
    reason = f"the file {UNREADABLE}; rows that are not read are lost: {why}"
    return {"reason": reason, "raw": None, "source": name, "offset": None}


def _letter(file: File, error: Exception) -> pa.Table:
    (why, *_) = str(error).splitlines() or [type(error).__name__]
    return pa.Table.from_pylist([unreadable(file.name, why)], DEAD_LETTERS)


def _named(file: Path) -> str:
    """The file's place as Spark writes it: an address without a host."""
    return f"file:{file.absolute().as_uri().removeprefix('file://')}"


def _batches(file: File, format_: str) -> Iterator[pa.RecordBatch]:
    if format_ in TEXT_FORMATS:
        return _lines(file)
    return _of_delta(file) if format_ == "delta" else _of_parquet(file)


def _of_parquet(file: File) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us") as parquet:
        first = 0
        for batch in parquet.iter_batches(ROWS_AT_ONCE):
            yield _typed(batch, file.name, pa.array(range(first, first + len(batch)), pa.int64()))
            first += len(batch)


def _of_delta(file: File) -> Iterator[pa.RecordBatch]:
    """The table's files in the order in which they were added, as a stream of it takes them."""
    table = DeltaTable(file.path)
    if features := set(table.protocol().reader_features or ()) & _NOT_READ_BY_FILE:
        raise InputError(
            f"--input: the Delta table {file.path} has {', '.join(sorted(features))}, which are read by Spark alone; "
            "use the job: ./spark-submit.sh jobs/..."
        )
    added = pa.table(table.get_add_actions()).sort_by([("modification_time", "ascending"), ("path", "ascending")])
    wanted = pa.schema(table.schema().to_arrow())
    partitions = added["partition"].to_pylist() if "partition" in added.column_names else None
    for number, path in enumerate(added["path"].to_pylist()):
        values = partitions[number] if partitions else {}
        with pq.ParquetFile(Path(file.path) / unquote(path)) as parquet:
            for batch in parquet.iter_batches(ROWS_AT_ONCE):
                columns = {name: batch[name] for name in batch.schema.names}
                for name, value in values.items():
                    columns[name] = pa.repeat(pa.scalar(value).cast(wanted.field(name).type), len(batch))
                rows = pa.RecordBatch.from_pydict(columns)
                yield _typed(rows, file.name, pa.nulls(len(batch), pa.int64()))


def _typed(batch: pa.RecordBatch, name: str, offset: pa.Array) -> pa.RecordBatch:
    rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return pa.record_batch([rows, pa.repeat(name, len(batch)), offset], ["row", "source", "offset"])


def _lines(file: File) -> Iterator[pa.RecordBatch]:
    """Lines, ended by a line feed, a carriage return or both; the last one may lack its end."""
    if file.path == STDIN:
        yield from _lines_of(sys.stdin.buffer, file.name)
        return
    with pa.input_stream(file.path, compression="detect") as stream:
        yield from _lines_of(stream, file.name)


def _lines_of(stream: BinaryIO, name: str) -> Iterator[pa.RecordBatch]:
    rest = stream.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
    while part := stream.read(BYTES_AT_ONCE):
        lines = (rest + part).splitlines(keepends=True)
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        yield _line_batch(lines, name)
    yield _line_batch(rest.splitlines(), name)


def _line_batch(lines: list[bytes], name: str) -> pa.RecordBatch:
    values = pa.array([line.rstrip(b"\r\n") for line in lines], pa.binary())
    return pa.record_batch([values, pa.repeat(name, len(lines))], ["value", "source"])
