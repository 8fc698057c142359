"""Cache events as files that every run of a sweep reads for itself: one broker a folder, rows in order."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from headgate.cache import schemas as events
from headgate.core.cache.rows import Row
from headgate.core.cache.workload import generate

COLUMNS = tuple(name for name in Row._fields if name != "conf")
"""Of a row: all but conf, which a sweep sets itself."""
EVENTS = pa.schema([("t_us", pa.int64()), *(events.EVENTS.field(name) for name in COLUMNS[1:])])
ROWS_AT_ONCE = 16_384


def batches_in(folder: str) -> Iterator[pa.RecordBatch]:
    """The rows of one broker, in the order in which they were written; read a part at a time."""
    part = ds.dataset(folder, schema=EVENTS, format="parquet")
    yield from part.to_batches(batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1, use_threads=False)


def rows_in(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch with at least the columns of COLUMNS."""
    return map(Row._make, zip(*(batch[name].to_pylist() for name in COLUMNS), _nothing(batch), strict=True))


def _nothing(batch: pa.RecordBatch) -> Iterable[None]:
    """No conf."""
    return [None] * len(batch)


def batches_of(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as batches of EVENTS."""
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS_AT_ONCE:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), EVENTS.types, strict=False)  # a row's conf, its last field, is left out
    return pa.RecordBatch.from_arrays([pa.array(values, kind) for values, kind in columns], schema=EVENTS)


def generated(family: str, seed: int, sizes: str, scale: int) -> Iterator[pa.RecordBatch]:
    """The made-up traffic of one broker, which is called after the seed (entry-cache 15)."""
    for batch in batches_of(generate(family, seed, sizes, scale)):
        broker = pa.repeat(f"{family}-{seed}", len(batch))
        yield batch.add_column(0, pa.field("broker", pa.string()), broker)


def written(broker: str, row: Row) -> str:
    """A row as a dead letter shows it."""
    values: dict[str, Any] = {name: value for name, value in zip(Row._fields, row, strict=True) if value is not None}
    return json.dumps({"broker": broker, **values})
