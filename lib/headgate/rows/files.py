"""Input files without Spark: their batches, as `batches.parsed` takes them, and what cannot be read of them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.errors import InputError
from headgate.rows.batches import MOST_LINE_BYTES, parsed
from headgate.rows.csv_lines import BYTE_ORDER_MARK
from headgate.rows.listing import STDIN, TEXT_FORMATS, check_delta, found_files, original
from headgate.rows.raw import Raw, no_rows
from headgate.rows.traffic import Parsed
from headgate.stores import is_stored

ROWS_AT_ONCE = 131_072
BYTES_AT_ONCE = 2**24
UNREADABLE = "cannot be read to its end"
_NOT_READ_BY_FILE = {"deletionVectors", "columnMapping", "typeWidening"}
_UNREADABLE_ERRORS = (OSError, EOFError, pa.ArrowException)


class File(NamedTuple):
    """A file of an input, or a whole Delta table. name: what dead letters say of where a row came from."""

    path: str
    name: str


def input_files(path: str, format_: str, place: str | None = None) -> list[File]:
    """The files at a path or pattern, in the order in which a stream takes them: by time, to the millisecond, and name.

    Those with hidden names are no input. A Delta table is one; so is `-`, the standard input. place: how the input was
    given, where the path is a copy of what is on a store (folders.copied). Raises InputError where nothing is there.
    """
    given = place or path
    if path == STDIN or format_ == "delta":
        if path != STDIN:
            check_delta(path, "--input", given)
        return [File(path, "stdin" if path == STDIN else given)]
    files = found_files(path, f"--input: {given}")
    files.sort(key=lambda file: (file.stat().st_mtime_ns // 1_000_000, str(file)))
    return [File(str(file), _named(file, path, given)) for file in files]


class _Part(NamedTuple):
    """What is read to its end or is damaged by itself: a file, or one of the files of a Delta table."""

    name: str
    batches: Iterator[pa.RecordBatch]

    def until_damage(self, damage: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The batches before the first that cannot be read; if there is one, its dead letter goes to `damage`."""
        try:
            yield from self.batches
        except _UNREADABLE_ERRORS as error:
            damage.append(_letter(self.name, error))


def parsed_files(
    files: Iterable[File], format_: str, shape: pa.Schema, parse: Callable[[Raw], Parsed]
) -> Iterator[Parsed]:
    """What became of the rows of each file in turn, some at a time; of one that cannot be read, also that it cannot.

    Memory is bounded by ROWS_AT_ONCE rows or BYTES_AT_ONCE bytes of text. shape, parse: see `batches.parsed`. Raises
    InputError for a Delta table that cannot be opened.
    """
    for part in _parts(files, format_):
        damage: list[pa.Table] = []
        yield from parsed(parse, format_, shape, part.until_damage(damage))
        for letter in damage:
            yield Parsed(parse(no_rows()).rows, letter)


def whole_files(
    files: Iterable[File], format_: str, shape: pa.Schema, parse: Callable[[Raw], Parsed]
) -> tuple[list[Parsed], pa.Table]:
    """What became of the rows of all files, and dead letters of files that are left out: not to be read to their end.

    Everything is in memory. shape, parse: see `batches.parsed`. Raises InputError where no file can be read.
    """
    kept: list[Parsed] = []
    letters = DEAD_LETTERS.empty_table()
    is_any_whole = False
    for part in _parts(files, format_):
        damage: list[pa.Table] = []
        rows = list(parsed(parse, format_, shape, part.until_damage(damage)))
        letters = pa.concat_tables([letters, *damage])
        if not damage:
            kept += rows
            is_any_whole = True
    if len(letters) and not is_any_whole:
        raise InputError(
            f"--input: {letters['source'][0]}: {letters['reason'][0].as_py().rstrip('.')}; "
            f"give files that can be read, or the right --format (now {format_})"
        )
    return kept, letters


def unreadable(name: str, why: str, what: str = UNREADABLE) -> dict[str, str | None]:
    """The dead letter of a file of which rows are lost. what: happened to it."""
    reason = f"the file {what}; rows that are not read are lost: {why}"
    return {"reason": reason, "raw": None, "source": name, "offset": None}


def _letter(name: str, error: Exception) -> pa.Table:
    return pa.Table.from_pylist([unreadable(name, _first_line(error))], DEAD_LETTERS)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _named(file: Path, path: str, given: str) -> str:
    """The file's place as an address, of this machine without a host. given: where its path is."""
    if not is_stored(given):
        return f"file:{file.absolute().as_uri().removeprefix('file://')}"
    scheme, _, rest = original(file, path, given).partition("://")
    host, slash, key = rest.partition("/")
    return f"{scheme}://{host}{slash}{quote(key)}"


def _parts(files: Iterable[File], format_: str) -> Iterator[_Part]:
    for file in files:
        if format_ == "delta":
            yield from _of_delta(file)
        else:
            yield _Part(file.name, _lines(file) if format_ in TEXT_FORMATS else _of_parquet(file))


def _of_parquet(file: File) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us") as parquet:
        first = 0
        for batch in parquet.iter_batches(ROWS_AT_ONCE):
            yield _typed(batch, file.name, pa.array(range(first, first + len(batch)), pa.int64()))
            first += len(batch)


def _of_delta(table: File) -> Iterator[_Part]:
    """The table's files in the order in which they were added, as a stream of it takes them."""
    added, wanted = _opened(table)
    partitions = added["partition"].to_pylist() if "partition" in added.column_names else [{}] * len(added)
    for path, values in zip(added["path"].to_pylist(), partitions, strict=True):
        file = Path(table.path) / unquote(path)
        of_table = {name: pa.scalar(value).cast(wanted.field(name).type) for name, value in values.items()}
        yield _Part(_named(file, table.path, table.name), _of_data_file(file, of_table, table.name))


def _opened(given: File) -> tuple[pa.Table, pa.Schema]:
    """The files of a Delta table, the first that was added first, and its columns."""
    try:
        table = DeltaTable(given.path)
        features = set(table.protocol().reader_features or ()) & _NOT_READ_BY_FILE
        added, columns = pa.table(table.get_add_actions()), pa.schema(table.schema().to_arrow())
    except (DeltaError, OSError) as error:
        raise InputError(
            f"--input: the Delta table {given.name} cannot be opened: {_first_line(error)}; "
            "give the folder of one whose log is whole"
        ) from error
    if features:
        raise InputError(
            f"--input: the Delta table {given.name} has {', '.join(sorted(features))}, which are read by Spark alone; "
            "use the job: ./spark-submit.sh jobs/..."
        )
    return added.sort_by([("modification_time", "ascending"), ("path", "ascending")]), columns


def _of_data_file(file: Path, partition: Mapping[str, pa.Scalar], name: str) -> Iterator[pa.RecordBatch]:
    """partition: the values that all rows of the file have. name: of the table."""
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(ROWS_AT_ONCE):
            columns = {column: batch[column] for column in batch.schema.names}
            columns |= {column: pa.repeat(value, len(batch)) for column, value in partition.items()}
            yield _typed(pa.RecordBatch.from_pydict(columns), name, pa.nulls(len(batch), pa.int64()))


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
    """Of a line that is too long there is so much that it still is, after what may stand in the place of a mark."""
    mark = BYTE_ORDER_MARK.encode()
    rest = [stream.read(len(mark)).removeprefix(mark)]
    half_end = b""
    while part := stream.read(BYTES_AT_ONCE):
        part = half_end + part
        half_end = b"\r" if part.endswith(b"\r") else b""
        part = part.removesuffix(half_end)
        if b"\n" not in part and b"\r" not in part:
            if sum(map(len, rest)) <= MOST_LINE_BYTES + len(mark):
                rest.append(part)
            continue
        lines = b"".join([*rest, part]).splitlines(keepends=True)
        rest = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        yield _line_batch(lines, name)
    yield _line_batch(b"".join([*rest, half_end]).splitlines(), name)


def _line_batch(lines: list[bytes], name: str) -> pa.RecordBatch:
    values = pa.array([line.rstrip(b"\r\n") for line in lines], pa.binary())
    return pa.record_batch([values, pa.repeat(name, len(lines))], ["value", "source"])
