"""Reproducible cache events of several brokers as files or a Delta table, to try the job on (entry-cache 15)."""

import csv
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from headgate.cache.schemas import EVENTS
from headgate.core.cache.traces.workload import Sizes, generate
from headgate.trace.spec import DEFAULT_START
from headgate.trace.write import MTIME_STEP_NS, new_folder

_NAMES = ("seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class CacheTrace:
    """What decides the rows; `files` only where they are cut. Brokers are broker-1, ..., each with a seed of its own.

    family, seed, sizes, scale: as `core.cache.traces.workload.generate` takes them, seed for the first broker.
    """

    family: str
    seed: int = 1
    sizes: str = Sizes.EQUAL
    scale: int = 1
    brokers: int = 1
    files: int = 12
    start: datetime = DEFAULT_START


def events_of(trace: CacheTrace) -> pa.Table:
    """EVENTS in the order of their time, then of the broker. Raises InvalidArgument for what cannot be a workload."""
    start_us = (trace.start - EPOCH) // (datetime.resolution)
    tables = [_of_broker(trace, number, start_us) for number in range(trace.brokers)]
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in ("event_time", "broker", "seq")])


def write_cache_trace(trace: CacheTrace, path: Path | str, file_format: str) -> int:
    """Write the trace into a new or empty folder, files in the order of their rows; returns how many rows it has.

    Raises ConfError for an unknown format or a folder that holds anything, InputError for one that cannot be made,
    InvalidArgument as `events_of`.
    """
    rows = events_of(trace)
    folder = new_folder(Path(path), file_format)
    mtime_ns = time.time_ns() // MTIME_STEP_NS * MTIME_STEP_NS
    for number in range(trace.files):
        begin, end = (len(rows) * part // trace.files for part in (number, number + 1))
        some = rows.slice(begin, end - begin)
        if file_format == "delta":
            write_deltalake(str(folder), some, mode="append")
            continue
        unfinished = folder / f".part-{number:05d}.unfinished"
        _write(unfinished, some, file_format)
        os.utime(unfinished, ns=(mtime_ns + number * MTIME_STEP_NS,) * 2)
        unfinished.rename(folder / f"part-{number:05d}.{file_format}")
    return len(rows)


def _of_broker(trace: CacheTrace, number: int, start_us: int) -> pa.Table:
    rows = list(generate(trace.family, trace.seed + number, trace.sizes, trace.scale))
    columns = {name: [getattr(row, name) for row in rows] for name in _NAMES}
    columns |= {"event_time": [start_us + row.t_us for row in rows], "broker": [f"broker-{number + 1}"] * len(rows)}
    return pa.table([pa.array(columns.get(field.name, [None] * len(rows)), field.type) for field in EVENTS], EVENTS)


def _write(path: Path, rows: pa.Table, file_format: str) -> None:
    if file_format == "parquet":
        pq.write_table(rows, path)
        return
    with path.open("w", newline="") as file:
        if file_format == "json":
            file.writelines(f"{json.dumps(_plain(row), separators=(',', ':'))}\n" for row in _texts(rows))
            return
        lines = csv.DictWriter(file, EVENTS.names, lineterminator="\n")
        lines.writeheader()
        lines.writerows(row | {"sizes": row["sizes"] and json.dumps(row["sizes"])} for row in _texts(rows))


def _texts(rows: pa.Table) -> Iterator[dict[str, Any]]:
    for row in rows.to_pylist():
        yield row | {"event_time": f"{row['event_time'].replace(tzinfo=None).isoformat(timespec='microseconds')}Z"}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
