"""One broker's rows through the array form of its cache, a batch at a time."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.cache.events.columns import packed
from headgate.core.cache.reasons import DeadReason
from headgate.core.kernels.cache.broker import ArrayCache, PackedRows
from headgate.core.kernels.cache.types import NONE
from headgate.core.numbers import MIN
from headgate.sizing.instants import Gauges
from headgate.sizing.trace import event_at, rows_in

_REASONS = tuple(DeadReason)


def feed_arrays(
    cache: ArrayCache,
    batches: Iterable[pa.RecordBatch],
    gauges: Gauges,
    letters: list[tuple[DeadReason, Mapping[str, Any]]] | None,
) -> None:
    """Feed all rows, and look into the cache at each instant up to the last one. letters: takes rows that are refused,
    with their reason.

    Raises InvalidArgument for numbers that the array form does not take; the cache is of no use then.
    """
    for batch in batches:
        rows = packed_rows(cache, batch)
        times_us = np.maximum.accumulate(np.where(rows.rows["kind"] < 0, MIN, rows.rows["t_us"]))
        start = 0
        while len(times_us) and gauges.is_due(times_us[-1]):
            end = int(np.searchsorted(times_us, gauges.next_us))
            cache.feed_rows(_part(rows, start, end))
            gauges.look_until(gauges.next_us, cache)
            start = end
        cache.feed_rows(_part(rows, start, len(times_us)))
        if letters is not None:
            for place in np.flatnonzero(rows.rows["dead"] != NONE).tolist():
                letters.append((_REASONS[rows.rows["dead"][place]], event_at(batch, place)))


def packed_rows(cache: ArrayCache, batch: pa.RecordBatch) -> PackedRows:
    """Rows as the cache takes them. Raises InvalidArgument as `feed_arrays`."""
    return packed(cache, batch) or cache.pack(list(rows_in(batch)))


def _part(rows: PackedRows, start: int, end: int) -> PackedRows:
    """Rows of kind conf are not among those of a sweep."""
    return rows._replace(rows=rows.rows[start:end])
