"""Requests as rows of cache events (entry-cache 2): each reads one entry, which generic policies insert on a miss."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.cache.schemas import EVENTS
from headgate.cache_trace.layout import Layout
from headgate.cache_trace.reading import Requests, read_requests
from headgate.core.cache.checks import SIZE_MAX_BYTES
from headgate.errors import ConfError, InputError
from headgate.trace.write import new_folder

WITHOUT_TIME_STEP_US = 1000
CURSOR = "requests"
LARGEST_BYTES = SIZE_MAX_BYTES
"""More than that no entry can have."""


@dataclass(slots=True)
class Conversion:
    """What was made of a trace.

    requests: rows written. without_size: requests for 0 bytes, left out as libCacheSim leaves them out.
    too_large: requests for more than LARGEST_BYTES, left out.
    moved: requests whose time was before that of one ahead of them, which got that one's.
    """

    requests: int = 0
    without_size: int = 0
    too_large: int = 0
    moved: int = 0
    files: int = 0


def convert(path: Path, layout: Layout, output: Path, *, broker: str, topic: str, all_of_one_byte: bool) -> Conversion:
    """Write the events of a trace as Parquet files into a new or empty folder, in the order of the trace.

    The row of a request has the number of the request as `seq`, so that equal times keep their order. An id of 64 bits
    is the position (highest bit, other bits). Where the trace has no times, requests are a millisecond apart.

    Arguments: `all_of_one_byte`, whether sizes of the trace are left aside, so that the cache counts objects; where the
    trace has none that is always so.
    Raises ConfError for an empty name and for a folder that holds anything, InputError for a folder that cannot be made
    and for a trace that cannot be read.
    """
    names = {"broker": broker, "topic": topic}
    if empty := [name for name, given in names.items() if not given.strip()]:
        raise ConfError(
            [f"{name}: got {names[name]!r}; allowed a name, as no event is without; give one" for name in empty]
        )
    new_folder(output, "parquet")
    done, events = Conversion(), _Events(broker, topic, all_of_one_byte)
    for table in events.tables(read_requests(path, layout), done):
        unfinished = output / f".part-{done.files:05d}.unfinished"
        pq.write_table(table, unfinished)
        unfinished.rename(output / f"part-{done.files:05d}.parquet")
        done.files += 1
        done.requests += table.num_rows
    if not done.requests:
        raise InputError(f"{path}: got no request with a size above 0; is it the right size column?")
    return done


class _Events:
    """Requests in, tables of events out."""

    def __init__(self, broker: str, topic: str, all_of_one_byte: bool) -> None:
        self._names = (broker, topic)
        self._all_of_one_byte = all_of_one_byte
        self._seq = 0
        self._now_us = 0

    def tables(self, chunks: Iterator[Requests], done: Conversion) -> Iterator[pa.Table]:
        for chunk in chunks:
            times_us = self._times(chunk, done)
            seqs = np.arange(self._seq, self._seq + len(chunk.ids))
            self._seq += len(chunk.ids)
            sizes = chunk.sizes_bytes
            if sizes is None or self._all_of_one_byte:
                sizes = np.ones(len(chunk.ids), np.int64)
            done.without_size += int((sizes <= 0).sum())
            done.too_large += int((sizes > LARGEST_BYTES).sum())
            kept = (sizes > 0) & (sizes <= LARGEST_BYTES)
            if kept.any():
                yield self._table(times_us[kept], seqs[kept], chunk.ids[kept], sizes[kept])

    def _times(self, chunk: Requests, done: Conversion) -> npt.NDArray[np.int64]:
        """Never falling: a row that is late would be refused."""
        if chunk.times_us is None:
            return (self._seq + np.arange(len(chunk.ids))) * WITHOUT_TIME_STEP_US
        if len(chunk.times_us) == 0:
            return chunk.times_us
        times_us = np.maximum.accumulate(np.maximum(chunk.times_us, self._now_us))
        done.moved += int((times_us > chunk.times_us).sum())
        self._now_us = int(times_us[-1])
        return times_us

    def _table(
        self,
        times_us: npt.NDArray[np.int64],
        seqs: npt.NDArray[np.int64],
        ids: npt.NDArray[np.uint64],
        sizes: npt.NDArray[np.int64],
    ) -> pa.Table:
        rows = len(ids)
        broker, topic = (pa.repeat(name, rows) for name in self._names)
        low = ids & np.uint64((1 << 63) - 1)
        columns = [
            pa.array(times_us).cast(EVENTS.field("event_time").type),
            pa.array(seqs),
            broker,
            topic,
            pa.repeat("read", rows),
            pa.repeat(CURSOR, rows),
            pa.array((ids >> np.uint64(63)).astype(np.int64)),
            pa.array(low.astype(np.int64)),
            pa.array(np.ones(rows, np.int64)),
            pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), pa.array(sizes)),
            pa.nulls(rows, EVENTS.field("conf").type),
        ]
        return pa.Table.from_arrays(columns, schema=EVENTS)
