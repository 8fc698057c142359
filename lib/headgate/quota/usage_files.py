"""Parquet files of rg_usage: small ones of a cut, sorted ones of an hour. Reading and writing by path.

Ids, sorted rows, delta encoding and zstd in data pages of version 2 make a row of a cut of thousands about 13 bytes.
A file has a footer of 2 KB whatever it holds: no schema of Arrow, no statistics but those that the log has anyway.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from headgate.quota.delta import Table, nullable, told
from headgate.quota.schemas import RG_USAGE

COMPACTED = "compacted-"
_COLUMNS = RG_USAGE.file_schema
_STATISTICS = ("epoch", "broker_id", "group_id")
_DELTA = {column.name: "DELTA_BINARY_PACKED" for column in _COLUMNS if not pa.types.is_boolean(column.type)}


def write_usage(table: Table, rows: pa.Table, stem: str, *, data_change: bool = True) -> list[AddAction]:
    """Write `rows`, in their order, as one file a partition; nobody sees them before the actions are committed.

    stem: how file names begin. data_change: False for rows that the table has in other files.
    """
    keys = rows.group_by(["hour", "shard"], use_threads=False).aggregate([]).to_pylist()
    return [
        _write(
            table,
            f"hour={key['hour']}/shard={key['shard']}/{stem}-{secrets.token_hex(8)}.parquet",
            key,
            rows.filter(pc.and_(pc.equal(rows["hour"], key["hour"]), pc.equal(rows["shard"], key["shard"]))),
            data_change=data_change,
        )
        for key in keys
    ]


def read_usage(table: Table, path: str, partition: Mapping[str, str | None]) -> pa.Table:
    """The rows of a file, in their order, with the columns of its partition.

    Raises FileNotFoundError if it is gone, TableError if it cannot be read.
    """
    with told(table, "read", but=(FileNotFoundError,)), table.files.open_input_file(table.path(path)) as source:
        rows = pq.ParquetFile(source, coerce_int96_timestamp_unit="us").read(use_threads=False)
        columns = {name: rows[name] for name in _COLUMNS.names}
        for name in RG_USAGE.partition_by:
            value = partition[name]
            columns[name] = pa.repeat(pa.scalar(None if value is None else int(value), pa.int64()), len(rows))
        return pa.table({name: columns[name] for name in RG_USAGE.schema.names}).cast(nullable(RG_USAGE.schema))


def _write(table: Table, path: str, partition: Mapping[str, int], rows: pa.Table, *, data_change: bool) -> AddAction:
    target = table.path(path)
    with told(table, "written"):
        table.files.create_dir(target.rpartition("/")[0], recursive=True)
        with table.files.open_output_stream(target) as sink:
            pq.write_table(
                rows.select(_COLUMNS.names).cast(_COLUMNS),
                sink,
                version="2.6",
                data_page_version="2.0",
                compression="zstd",
                use_dictionary=False,
                column_encoding=_DELTA,
                write_statistics=False,
                store_schema=False,
            )
            size = sink.tell()
    return AddAction(
        path,
        size,
        {name: str(value) for name, value in partition.items()},
        time.time_ns() // 1_000_000,
        data_change,
        json.dumps(_statistics(rows, _STATISTICS)),
    )


def _statistics(rows: pa.Table, names: Sequence[str]) -> dict[str, Any]:
    """What the log says of a file, so that readers can pass it over."""
    ranges = {name: pc.min_max(rows[name]).as_py() for name in names}
    return {
        "numRecords": len(rows),
        "minValues": {name: found["min"] for name, found in ranges.items()},
        "maxValues": {name: found["max"] for name, found in ranges.items()},
        "nullCount": dict.fromkeys(names, 0),
    }
