"""Requests of a public trace, chunk by chunk: plain files, and compressed ones by the end of their name."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from headgate.cache_trace.layout import TIME_UNITS_NS, Layout, record_type
from headgate.errors import InputError

CHUNK_BYTES = 1 << 24
CHUNK_RECORDS = 1 << 19
_ORACLE_GENERAL = Layout("binary", record="<IQIq", time_column=1, id_column=2, size_column=3)
_VSCSI = {
    1: Layout("binary", record="<IIIHHQQ", time_column=7, id_column=6, size_column=2, time_unit="us"),
    2: Layout("binary", record="<HHIIIQQQ", time_column=7, id_column=6, size_column=4, time_unit="us"),
}
_VSCSI_VERSIONS = {1: "f5", 2: "f2"}
_NO_DELIMITER = "\x01"
_TIME_MAX_US = (1 << 63) // 1000

Int64s = npt.NDArray[np.int64]


class Requests(NamedTuple):
    """One chunk, in the order of the trace.

    times_us: as the trace has them, or None. ids: 64 bits without a sign. sizes_bytes: from 0 on, or None.
    """

    times_us: Int64s | None
    ids: npt.NDArray[np.uint64]
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
    is_txt = layout.format == "txt"
    id_name = f"f{0 if is_txt else layout.id_column - 1}"
    time_name, size_name = f"f{layout.time_column - 1}", f"f{layout.size_column - 1}"
    types = {id_name: pa.uint64() if layout.ids_are_numbers else pa.string()}
    types |= {time_name: pa.float64()} if layout.time_column else {}
    types |= {size_name: pa.int64()} if layout.size_column else {}
    try:
        batches = _batches(stream, layout, types)
    except pa.ArrowKeyError:
        last = max(int(name[1:]) + 1 for name in types)
        raise InputError(f"{path}: got fewer than {last} columns; are the columns and the delimiter right?") from None
    begun = 1 + layout.has_header
    for batch in batches:
        columns = {name: batch.column(place) for place, name in enumerate(types)}
        for name, column in columns.items():
            _check_whole(column, path, begun, int(name[1:]) + 1)
        place = _Place(path, begun)
        times = _times_us(columns[time_name].to_numpy(), layout, place) if layout.time_column else None
        sizes = _sizes(columns[size_name].to_numpy(), place) if layout.size_column else None
        yield Requests(times, _ids(columns[id_name]), sizes)
        begun += batch.num_rows


def _batches(stream: pa.NativeFile, layout: Layout, types: dict[str, pa.DataType]) -> pa_csv.CSVStreamingReader:
    return pa_csv.open_csv(
        stream,
        pa_csv.ReadOptions(autogenerate_column_names=True, skip_rows=int(layout.has_header), block_size=CHUNK_BYTES),
        pa_csv.ParseOptions(delimiter=_NO_DELIMITER if layout.format == "txt" else layout.delimiter),
        pa_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[""]),
    )


def _ids(column: Any) -> npt.NDArray[np.uint64]:
    """Numbers as they are; of a text the first 64 bits of its BLAKE2b digest."""
    ids: npt.NDArray[np.uint64]
    if pa.types.is_uint64(column.type):
        ids = column.to_numpy()
        return ids
    texts = column.dictionary_encode()
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts.dictionary.to_pylist()]
    ids = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)[texts.indices.to_numpy()]
    return ids


def _check_whole(column: Any, path: Path, begun: int, place: int) -> None:
    if column.null_count:
        row = begun + pc.index(column.is_null(), True).as_py()
        raise InputError(f"{path}, row {row}: column {place} is empty; allowed a value in every row")


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
        yield _of_records(records, layout, _Place(path, begun))
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


def _of_records(records: npt.NDArray[Any], layout: Layout, place: "_Place") -> Requests:
    times = _times_us(records[f"f{layout.time_column}"], layout, place) if layout.time_column else None
    sizes = _sizes(records[f"f{layout.size_column}"].astype(np.int64), place) if layout.size_column else None
    return Requests(times, records[f"f{layout.id_column}"].astype(np.uint64), sizes)


class _Place(NamedTuple):
    """A file, and the number of the first row of a chunk."""

    path: Path
    begun: int

    def check(self, name: str, values: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], allowed: str) -> None:
        """Raise InputError for the first value that is wrong."""
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                f"{self.path}, row {self.begun + first}: got a {name} of {values[first]}, allowed {allowed}; is it the"
                " right column?"
            )


def _times_us(times: npt.NDArray[Any], layout: Layout, place: _Place) -> Int64s:
    """In microseconds, cut off; integers stay exact."""
    unit_ns = TIME_UNITS_NS[layout.time_unit]
    last = _TIME_MAX_US * 1000 // unit_ns
    allowed = f"0 to {last} {layout.time_unit}, the year 2262"
    place.check("time", times, ~((times >= 0) & (times <= last)), allowed)
    if np.issubdtype(times.dtype, np.floating):
        return np.floor(times * (unit_ns / 1000)).astype(np.int64)
    whole = times.astype(np.int64)
    return whole * (unit_ns // 1000) if unit_ns >= 1000 else whole // 1000


def _sizes(sizes: Int64s, place: _Place) -> Int64s:
    place.check("size", sizes, sizes < 0, "0 bytes and more")
    return sizes
