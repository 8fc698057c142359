"""What a cache tells of itself, under the names of Pulsar and of this project (entry-cache 13)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headgate.core.cache.broker import Cache
from headgate.core.cache.horizon.horizon_cache import HorizonCache
from headgate.core.cache.reasons import Cause
from headgate.core.cache.topics.topic import Topic

SECOND_US = 1_000_000

_SERIES = {
    "pulsar_ml_cache_used_size": "bytes",
    "pulsar_ml_cache_entries": "entries",
    "pulsar_ml_cache_inserted_entries_total": "inserted",
    "pulsar_ml_cache_evictions": "size_passes",
    "headgate_cache_hits_total": "hits",
    "headgate_cache_hit_bytes_total": "hit_bytes",
    "headgate_cache_misses_total": "misses",
    "headgate_cache_storage_bytes_total": "storage_bytes",
    "headgate_cache_storage_reads_total": "storage_ops",
    "headgate_cache_requeues_total": "requeues",
    "headgate_cache_node_visits_total": "visits",
    "headgate_cache_pass_visits_max": "max_pass_visits",
    "headgate_cache_peak_bytes": "peak_bytes",
    "headgate_cache_overshoot_bytes": "overshoot_bytes",
}
_RATES = {
    "pulsar_ml_cache_hits_rate": "hits",
    "pulsar_ml_cache_hits_throughput": "hit_bytes",
    "pulsar_ml_cache_misses_rate": "misses",
    "pulsar_ml_cache_misses_throughput": "storage_bytes",
}


class Sample(NamedTuple):
    """One value of a series; `labels` are its name and value, if it has any."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


class TopicUse(NamedTuple):
    """What a topic has had of the cache, and has in it now."""

    hits: int
    hit_bytes: int
    misses: int
    storage_bytes: int
    size_bytes: int
    entries: int


def samples(cache: Cache | HorizonCache) -> Iterator[Sample]:
    """Counters since the beginning, and gauges of now. The gauges of bytes cost time linear in what is cached."""
    totals = cache.totals()
    for name, key in _SERIES.items():
        yield Sample(name, totals[key])
    yield Sample("pulsar_ml_cache_evicted_entries_total", totals[Cause.EXPIRED] + totals[Cause.EVICTED])
    for cause in Cause:
        yield Sample("headgate_cache_removed_total", totals[cause], (("cause", cause.value),))
    yield Sample("headgate_cache_finished_bytes", cache.finished_bytes())
    yield Sample("headgate_cache_pinned_bytes", cache.pinned_bytes())
    for reason, count in cache.misses_by_reason().items():
        yield Sample("headgate_cache_misses_by_reason_total", count, (("reason", str(reason)),))
    for dead, count in cache.dead_letters.items():
        yield Sample("headgate_cache_dead_letters_total", count, (("reason", dead.value),))
    if isinstance(cache, HorizonCache):
        yield Sample("headgate_cache_horizon_rounds_total", cache.rounds)
        yield Sample("headgate_cache_horizon_busy_rounds_total", cache.busy_rounds)
        yield Sample("headgate_cache_horizon_inflow_share", cache.inflow_share)
        yield Sample("headgate_cache_horizon_size_error", cache.size_error)


def rates(before: Mapping[str, int], after: Mapping[str, int], duration_us: int) -> Iterator[Sample]:
    """Entries and bytes per second of a batch's event time, from the totals before and after it.

    A batch whose event time stood still has no rates.
    """
    if duration_us > 0:
        for name, key in _RATES.items():
            yield Sample(name, (after[key] - before[key]) * SECOND_US / duration_us)


def by_topic(topics: Mapping[str, Topic]) -> dict[str, TopicUse]:
    """The use of each topic, by its name."""
    return {
        name: TopicUse(
            topic.counts.hits,
            topic.counts.hit_bytes,
            topic.counts.misses,
            topic.counts.storage_bytes,
            topic.entries.size_bytes,
            topic.entries.entry_count,
        )
        for name, topic in topics.items()
    }
