"""One cache over one broker's rows, and what it came to. The one place where a sweep feeds a cache."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from headgate.core.cache.broker import Cache
from headgate.core.cache.checks import is_well_formed
from headgate.core.cache.reasons import Cause, DeadReason, MissReason
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.core.kernels.cache.limits import refusal_of
from headgate.errors import InvalidArgument
from headgate.sizing.arrays import feed_arrays, packed_rows
from headgate.sizing.combinations import for_sample
from headgate.sizing.instants import Gauges, Span
from headgate.sizing.trace import event_at, rows_in

REASONS = (*(reason.value for reason in MissReason), *(cause.value for cause in Cause))
SCALED = (
    *("hits", "hit_bytes", "misses", "storage_bytes", "inserted"),
    *(cause.value for cause in Cause),
    *(f"missed_{reason}" for reason in REASONS),
    *("mean_bytes", "peak_bytes", "overshoot_bytes"),
)
"""Columns that a sample has a part of."""
OF_ALL_ROWS = ("storage_reads", "mean_pinned_bytes", "peak_pinned_bytes")
"""Columns that a sample cannot tell: reads lose entries, and receive buffers are filled by all of them."""
WORK = ("size_passes", "visits", "dead")


Batches = Callable[[], Iterable[pa.RecordBatch]]
"""Gives the rows of one broker as `trace.EVENTS`, in the order of (t, seq); may be asked twice."""
Letter = Callable[[DeadReason, Mapping[str, Any]], None]
"""Is told of a row that is refused, by its columns."""


def measure(
    settings: CacheSettings, batches: Batches, span: Span, *, every: int = 1, letter: Letter | None = None
) -> dict[str, int | None]:
    """What the cache did with the rows, by the columns of `cache_sweep`; the same in both forms of the rules.

    every: the rows are a sample of one entry in so many; counts and bytes are of the whole then, by as many times, and
    the work is that of the sample. letter: is told of rows that are refused. Source: entry-cache 13
    """
    settings, gauges = for_sample(settings, every), Gauges(span)
    if refusal_of(settings) is None:
        letters: list[tuple[DeadReason, Mapping[str, Any]]] = []
        with suppress(InvalidArgument):  # numbers that only the readable form can calculate with
            arrays = ArrayCache(settings)
            if settings.policy is PolicyName.BELADY:
                arrays.foresee_rows(packed_rows(arrays, batch) for batch in batches())
            feed_arrays(arrays, batches(), gauges, letters if letter is not None else None)
            columns = _columns(arrays, gauges, every)
            for told in letters:
                letter(*told)  # type: ignore[misc]
            return columns
        gauges = Gauges(span)
    cache = Cache(settings)
    if settings.policy is PolicyName.BELADY:
        cache.foresee(row for batch in batches() for row in rows_in(batch))
    _feed(cache, batches(), gauges, letter)
    return _columns(cache, gauges, every)


def _feed(cache: Cache, batches: Iterable[pa.RecordBatch], gauges: Gauges, letter: Letter | None) -> None:
    feed = cache.feed
    for batch in batches:
        for place, row in enumerate(rows_in(batch)):
            if gauges.is_due(row.t_us) and is_well_formed(row):
                gauges.look_until(row.t_us, cache)
            outcome = feed(row)
            if outcome.dead is not None and letter is not None:
                letter(outcome.dead, event_at(batch, place))


def _columns(cache: Cache | ArrayCache, gauges: Gauges, every: int) -> dict[str, int | None]:
    """What was counted up to the last row; the cache is looked at until the span ends."""
    totals, reasons = cache.totals(), cache.misses_by_reason()
    gauges.look_to_the_end(cache)
    counted = {
        "mean_bytes": gauges.used_bytes // gauges.looks,
        **{f"missed_{reason}": reasons.get(reason, 0) for reason in REASONS},
        **totals,
    }
    pinned = (totals["storage_ops"], gauges.pinned_bytes // gauges.looks, gauges.peak_pinned_bytes)
    return {
        **{name: counted[name] * every for name in SCALED},
        **dict(zip(OF_ALL_ROWS, pinned if every == 1 else (None, None, None), strict=True)),
        **{name: totals[name] for name in WORK},
    }


def summed(by_broker: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of all brokers together; one that a broker does not tell is not told."""
    total: dict[str, Any] = {}
    for columns in by_broker:
        for name, value in columns.items():
            before = total.get(name, 0)
            total[name] = None if before is None or value is None else before + value
    return total
