"""Parquet files of rg_usage and rg_limits: small ones as they come, sorted ones of an hour. By path.

Ids, sorted rows, delta encoding and zstd in data pages of version 2 make a row of a cut of thousands about 13 bytes.
A file has a footer of 2 KB whatever it holds: no schema of Arrow, no statistics but those that the log has anyway.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from headgate.quota.tables.delta import Table, nullable, told

COMPACTED, MERGED = "compacted-", "merged-"
"""How names begin of files that a compaction of a closed hour wrote, and of those that joined files of an open one."""
_STATISTICS = ("epoch", "broker_id", "group_id")


def write_files(table: Table, rows: pa.Table, stem: str, *, data_change: bool = True) -> list[AddAction]:
    """Write `rows`, in their order, as one file a partition; nobody sees them before the actions are committed.

    stem: how file names begin. data_change: False for rows that the table has in other files.
    """
    partition_by = list(table.spec.partition_by)
    keys = rows.select(partition_by).group_by(partition_by, use_threads=False).aggregate([]).to_pylist()
    actions = []
    for key in keys:
        folder = "/".join(f"{name}={value}" for name, value in key.items())
        of_key = reduce(pc.and_, (pc.equal(rows[name], value) for name, value in key.items()))
        path = f"{folder}/{stem}-{secrets.token_hex(8)}.parquet"
        actions.append(_write(table, path, key, rows.filter(of_key), data_change=data_change))
    return actions


def read_file(table: Table, path: str, partition: Mapping[str, str | None]) -> pa.Table:
    """The rows of a file, in their order, with the columns of its partition.

    Raises FileNotFoundError if it is gone, TableError if it cannot be read.
    """
    with told(table, "read", but=(FileNotFoundError,)):
        source = pa.BufferReader(table.content(table.path(path)))
        rows = pq.ParquetFile(source, coerce_int96_timestamp_unit="us").read(use_threads=False)
        columns = {name: rows[name] for name in table.spec.file_schema.names}
        for name in table.spec.partition_by:
            value = partition[name]
            columns[name] = pa.repeat(pa.scalar(None if value is None else int(value), pa.int64()), len(rows))
        schema = table.spec.schema
        return pa.table({name: columns[name] for name in schema.names}).cast(nullable(schema))


def _write(table: Table, path: str, partition: Mapping[str, int], rows: pa.Table, *, data_change: bool) -> AddAction:
    target, columns = table.path(path), table.spec.file_schema
    plain = [column.name for column in columns if pa.types.is_boolean(column.type) or pa.types.is_string(column.type)]
    with told(table, "written"):
        table.files.create_dir(target.rpartition("/")[0], recursive=True)
        with table.files.open_output_stream(target) as sink:
            pq.write_table(
                rows.select(columns.names).cast(columns),
                sink,
                version="2.6",
                data_page_version="2.0",
                compression="zstd",
                use_dictionary=False,
                column_encoding={name: "DELTA_BINARY_PACKED" for name in columns.names if name not in plain},
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
