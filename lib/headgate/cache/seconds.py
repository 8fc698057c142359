"""What the job tells of a second: counters since the beginning, and gauges of its end (entry-cache 13)."""

from collections.abc import Iterator
from typing import Any

from headgate.cache.forms import AnyCache, uses_by_topic
from headgate.cache.schemas import RATES
from headgate.cache.state import OpenSecond
from headgate.core.cache.metrics import rates

SECOND_US = 1_000_000
_RATED = ("hits", "hit_bytes", "misses", "storage_bytes")
_NAMES = {"storage_ops": "storage_reads", "bytes": "used_bytes"}
"""Totals whose column has a name of its own."""
_ELSEWHERE = {"dead"}


def opened(cache: AnyCache, number: int) -> OpenSecond:
    """A second begins: its rates are what comes on top of the totals of now."""
    totals = cache.totals()
    return OpenSecond(number, {name: totals[name] for name in _RATED})


def told(broker: str, cache: AnyCache, second: OpenSecond, until_us: int) -> Iterator[dict[str, Any]]:
    """Rows of METRICS of the broker and of those of its topics that the second concerned, as the cache is now."""
    place = {"broker": broker, "second": second.number * SECOND_US, "until": until_us}
    totals = cache.totals()
    values = {_NAMES.get(name, name): value for name, value in totals.items() if name not in _ELSEWHERE}
    per_s = [sample.value for sample in rates(second.before, totals, SECOND_US)]
    yield {
        **place,
        **values,
        "finished_bytes": cache.finished_bytes(),
        "pinned_bytes": cache.pinned_bytes(),
        **dict(zip(RATES, per_s, strict=True)),
        "misses_by_reason": sorted((str(name), count) for name, count in cache.misses_by_reason().items()),
        "dead_letters": sorted((str(name), count) for name, count in cache.dead_letters.items()),
    }
    for name, use in uses_by_topic(cache, sorted(second.topics)):
        yield {
            **place,
            "topic": name,
            "hits": use["hits"],
            "hit_bytes": use["hit_bytes"],
            "misses": use["misses"],
            "storage_bytes": use["storage_bytes"],
            "used_bytes": use["bytes"],
            "entries": use["entries"],
        }
