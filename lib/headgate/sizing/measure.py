"""One cache over one broker's rows, and what it came to. The one place where a sweep feeds a cache."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.core.cache.broker import Cache
from headgate.core.cache.reasons import Cause, DeadReason, MissReason
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.sizing.combinations import for_sample

INSTANTS = 1000
"""How often what is in a cache is looked at, at equal distances in event time."""
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


@dataclass(frozen=True)
class Span:
    """Event time of the first and the last row of a trace, in microseconds."""

    first_us: int
    last_us: int

    @property
    def step_us(self) -> int:
        """From one look into a cache to the next."""
        return max(1, (self.last_us - self.first_us) // INSTANTS)


Rows = Callable[[], Iterable[Row]]
"""Gives the rows of one broker in the order of (t, seq); belady asks twice."""
Letter = Callable[[DeadReason, Row], None]


def measure(
    settings: CacheSettings, rows: Rows, span: Span, *, every: int = 1, letter: Letter | None = None
) -> dict[str, int | None]:
    """What the cache did with the rows, by the columns of `cache_sweep`.

    every: the rows are a sample of one entry in so many; counts and bytes are of the whole then, by as many times, and
    the work is that of the sample. letter: is told of rows that are refused. Source: entry-cache 13
    """
    cache = Cache(for_sample(settings, every))
    if settings.policy is PolicyName.BELADY:
        cache.foresee(rows())
    gauges = _fed(cache, rows(), span, letter)
    return _columns(cache, gauges, every)


@dataclass(slots=True)
class _Gauges:
    """Sums over the instants at which a cache was looked at."""

    looks: int = 0
    used_bytes: int = 0
    pinned_bytes: int = 0
    peak_pinned_bytes: int = field(default=0)

    def look(self, cache: Cache) -> None:
        pinned_bytes = cache.pinned_bytes()
        self.looks += 1
        self.used_bytes += cache.store.limit.current_bytes
        self.pinned_bytes += pinned_bytes
        self.peak_pinned_bytes = max(self.peak_pinned_bytes, pinned_bytes)


def _fed(cache: Cache, rows: Iterable[Row], span: Span, letter: Letter | None) -> _Gauges:
    """Between rows the cache is advanced to each instant that is looked at, which changes no result."""
    gauges = _Gauges()
    feed, next_us, step_us = cache.feed, span.first_us + span.step_us, span.step_us
    for row in rows:
        if type(row.t_us) is int:
            while next_us <= min(row.t_us, span.last_us):
                cache.advance(next_us)
                gauges.look(cache)
                next_us += step_us
        outcome = feed(row)
        if outcome.dead is not None and letter is not None:
            letter(outcome.dead, row)
    gauges.look(cache)
    return gauges


def _columns(cache: Cache, gauges: _Gauges, every: int) -> dict[str, int | None]:
    totals, reasons = cache.totals(), cache.misses_by_reason()
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
