"""Requests of a public trace, chunk by chunk: plain files, and compressed ones by the end of their name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from headgate.cache_trace.columns import Column, Int64s, Uint64s, as_sizes, as_times_us, numbers_as_ids, texts_as_ids
from headgate.cache_trace.layout import Layout, record_type
from headgate.errors import InputError

CHUNK_BYTES = 1 << 24
_ORACLE_GENERAL = Layout("binary", record="<IQIq", time_column=1, id_column=2, size_column=3)
_VSCSI = {
    1: Layout("binary", record="<IIIHHQQ", time_column=7, id_column=6, size_column=2, time_unit="us"),
    2: Layout("binary", record="<HHIIIQQQ", time_column=7, id_column=6, size_column=4, time_unit="us"),
}
_VSCSI_VERSIONS = {1: "f5", 2: "f2"}
_NO_DELIMITER = "\x01"
_UNEVEN = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")


class Requests(NamedTuple):
    """One chunk, in the order of the trace.

    times_us: as the trace has them, or None. ids: 64 bits without a sign. sizes_bytes: from 0 on, at most 2^63 - 1,
    which is also for those beyond; or None.
    """

    times_us: Int64s | None
    ids: Uint64s
    sizes_bytes: Int64s | None


def read_requests(path: Path, layout: Layout) -> Iterator[Requests]:
    """The requests of a trace; at most one chunk is in memory.

    Raises InputError, with the place in the file, for what cannot be opened or is not of the layout.
    """
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            if layout.format in {"txt", "csv"}:
                yield from _text(stream, path, layout)
            else:
                yield from _records(stream, path, layout)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read as {layout.format}: {error}") from None


def _text(stream: pa.NativeFile, path: Path, layout: Layout) -> Iterator[Requests]:
    begun = first = 1 + layout.has_header
    id_column = 1 if layout.format == "txt" else layout.id_column
    numbers = [number for number in (layout.time_column, id_column, layout.size_column) if number]
    try:
        for batch in _batches(stream, layout, [f"f{number - 1}" for number in numbers]):
            values = zip(numbers, batch.columns, strict=True)
            yield _requests({number: Column(path, begun, number, those) for number, those in values}, id_column, layout)
            begun += batch.num_rows
    except pa.ArrowKeyError:
        raise InputError(
            f"{path}, row {first}: got fewer than {max(numbers)} columns; are the columns and the delimiter right?"
        ) from None
    except pa.ArrowInvalid as error:
        if not (uneven := _UNEVEN.match(str(error))):
            raise
        row, expected, got = uneven.groups()
        raise InputError(
            f"{path}, row {row}: got {got} columns, allowed {expected}, as in row {first}; is the delimiter right?"
        ) from None


def _batches(stream: pa.NativeFile, layout: Layout, names: list[str]) -> pa_csv.CSVStreamingReader:
    """Columns as bytes. Without threads, as with them pyarrow does not tell the row that has too few."""
    return pa_csv.open_csv(
        stream,
        pa_csv.ReadOptions(
            autogenerate_column_names=True,
            skip_rows=int(layout.has_header),
            block_size=CHUNK_BYTES,
            use_threads=False,
        ),
        pa_csv.ParseOptions(delimiter=_NO_DELIMITER if layout.format == "txt" else layout.delimiter),
        pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()), include_columns=names),
    )


def _records(stream: pa.NativeFile, path: Path, layout: Layout) -> Iterator[Requests]:
    begun, rest = 1, b""
    while part := stream.read(CHUNK_BYTES):
        raw = rest + part
        if begun == 1:
            layout = _known(raw, path, layout)
            of_record = record_type(layout.record)
        whole = len(raw) // of_record.itemsize
        rest = raw[whole * of_record.itemsize :]
        records = np.frombuffer(raw, of_record, whole)
        numbers = [number for number in (layout.time_column, layout.id_column, layout.size_column) if number]
        columns = {number: Column(path, begun, number, records[f"f{number}"]) for number in numbers}
        yield _requests(columns, layout.id_column, layout)
        begun += whole
    if begun == 1 and not rest:
        raise InputError(f"{path}: got an empty file, needed a trace of format {layout.format}")
    if rest:
        raise InputError(
            f"{path}, record {begun}: got {len(rest)} bytes, needed {of_record.itemsize}: the file was cut off, or is"
            " of another layout"
        )


def _known(raw: bytes, path: Path, layout: Layout) -> Layout:
    """The layout of the records; that of vscsi tells its version in the first two."""
    if layout.format == "oracleGeneral":
        return _ORACLE_GENERAL
    if layout.format == "binary":
        return layout
    for version, known in _VSCSI.items():
        of_record = record_type(known.record)
        records = np.frombuffer(raw, of_record, min(2, len(raw) // of_record.itemsize))
        if len(records) and (records[_VSCSI_VERSIONS[version]] >> 8 == version).all():
            return known
    raise InputError(f"{path}: got records of no version of vscsi, allowed 1 and 2; say another --format")


def _requests(columns: dict[int, Column], id_column: int, layout: Layout) -> Requests:
    as_ids = numbers_as_ids if layout.ids_are_numbers else texts_as_ids
    return Requests(
        as_times_us(columns[layout.time_column], layout.time_unit) if layout.time_column else None,
        as_ids(columns[id_column]),
        as_sizes(columns[layout.size_column]) if layout.size_column else None,
    )
