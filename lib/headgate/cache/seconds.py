"""What the job tells of a second: counters since a broker or topic was new, and gauges of its end (entry-cache 13)."""

from collections.abc import Iterator
from typing import Any

from headgate.cache.forms import AnyCache, uses_by_topic
from headgate.cache.schemas import RATES
from headgate.cache.stored.state import Change, OpenSecond

SECOND_US = 1_000_000
_RATED = ("hits", "hit_bytes", "misses", "storage_bytes")
_NAMES = {"storage_ops": "storage_reads", "bytes": "used_bytes"}
"""Totals whose column has a name of its own."""
_ELSEWHERE = {"dead"}


def end_of(second: int) -> int:
    """When a second ends, in microseconds."""
    return (second + 1) * SECOND_US


def next_before(t_us: int, second: int | None, change: Change | None) -> int | Change | None:
    """What an accepted row of this time comes after: the end of the open second in microseconds, or the next change of
    conf files; of both at one time the end. None: nothing more.
    """
    end_us = None if second is None else end_of(second)
    if end_us is not None and end_us <= t_us and (change is None or end_us <= change.at_us):
        return end_us
    return change if change is not None and change.at_us <= t_us else None


def opened(cache: AnyCache, number: int) -> OpenSecond:
    """A second begins: its rates are what comes on top of the totals of now."""
    totals = cache.totals()
    return OpenSecond(number, {name: totals[name] for name in _RATED})


def told(broker: str, cache: AnyCache, second: OpenSecond, until_us: int) -> Iterator[dict[str, Any]]:
    """Rows of METRICS of the broker and of those of its topics that the second concerned, as the cache is now."""
    place = {"broker": broker, "second": second.number * SECOND_US, "until": until_us}
    totals = cache.totals()
    values = {_NAMES.get(name, name): value for name, value in totals.items() if name not in _ELSEWHERE}
    per_s = [float(totals[name] - second.before[name]) for name in _RATED]
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
