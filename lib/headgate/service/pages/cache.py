"""The view of entry caches: hits, size and evictions by broker, and the topics with most misses."""

from dataclasses import dataclass
from typing import Any

from headgate.service.pages.charts import Chart, Course, Values
from headgate.service.pages.flow import span_sql
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span
from headgate.tables.query import increases
from headgate.why.cached import COUNTERS, ORDER

MOST = 50
TABLE = "cache_metrics"


@dataclass(frozen=True)
class CacheUse:
    """Of a broker's cache, or of a topic in all of them, in the range: entries read from it and from storage."""

    name: str
    hits: int
    misses: int
    storage_bytes: int
    used_bytes: int

    @property
    def hit_share(self) -> float | None:
        """None where nothing was read."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else None


@dataclass(frozen=True)
class Cache:
    """evicted: entries that left the caches in the range, by cause. topics: those with most misses."""

    span: Span
    charts: tuple[Chart, ...]
    brokers: tuple[CacheUse, ...]
    topics: tuple[CacheUse, ...]
    evicted: dict[str, int]


def cache(read: Read, asked: Asked) -> Cache:
    """Raises PageError and TableError."""
    span = asked.span(read.extent(TABLE, "second"), "entry")
    causes = ("expired", "evicted", "dropped", "invalidated")
    brokers = _uses(read, span, "broker", "topic IS NULL", causes)
    topics = _uses(read, span, "topic", "topic IS NOT NULL", ())
    evicted = {cause: sum(row[cause] or 0 for row in brokers) for cause in causes}
    return Cache(span, _charts(read, span), tuple(map(_use, brokers)), tuple(map(_use, topics)), evicted)


def _uses(read: Read, span: Span, by: str, where: str, causes: tuple[str, ...]) -> list[dict[str, Any]]:
    """What came in the range, after the first row of each topic in it."""
    counters = (*COUNTERS, *causes)
    of_range = f"{span.where('second')} AND {where}"
    rows = increases(counters, ("broker", "topic"), ORDER, of_range, TABLE, from_zero=False)
    summed = ", ".join(f"sum({one}) AS {one}" for one in counters)
    return read.rows(
        TABLE,
        f"SELECT {by} AS name, {summed}, sum(used_bytes) AS used_bytes FROM ("  # noqa: S608
        f"SELECT broker, topic, {summed}, "
        f"last_value(used_bytes ORDER BY {ORDER}) AS used_bytes FROM ({rows}) GROUP BY broker, topic) "
        f"GROUP BY {by} ORDER BY misses DESC, name LIMIT {MOST}",
    )


def _use(row: dict[str, Any]) -> CacheUse:
    return CacheUse(
        row["name"], row["hits"] or 0, row["misses"] or 0, row["storage_bytes"] or 0, row["used_bytes"] or 0
    )


def _charts(read: Read, span: Span) -> tuple[Chart, ...]:
    rows = read.rows(
        TABLE,
        f"SELECT {span_sql(span, 'second')} AS at_us, broker, avg(hits_rate) AS hits, avg(misses_rate) AS misses, "  # noqa: S608
        f"max(used_bytes) AS used FROM (SELECT *, row_number() OVER (PARTITION BY broker, second ORDER BY until DESC, "
        f"batch_id DESC) AS place FROM {TABLE} WHERE {span.where('second')} AND topic IS NULL) WHERE place = 1 "
        "GROUP BY at_us, broker ORDER BY at_us",
    )
    sums: dict[str, dict[int, float]] = {"hits": {}, "misses": {}}
    used: dict[str, dict[int, float]] = {}
    for row in rows:
        for name, of_name in sums.items():
            of_name[row["at_us"]] = of_name.get(row["at_us"], 0) + (row[name] or 0)
        used.setdefault(row["broker"], {})[row["at_us"]] = row["used"] or 0

    def values(of: dict[int, float]) -> Values:
        return tuple(of.get(step_us) for step_us in span.steps_us)

    reads = (Course("hits", "allowed", values(sums["hits"])), Course("misses", "held", values(sums["misses"])))
    sizes = tuple(Course(broker, f"line-{n}", values(of)) for n, (broker, of) in enumerate(sorted(used.items())[:6]))
    return (
        Chart("Entries read per second", "entries/s", span, reads),
        Chart("Bytes cached, by broker", "bytes", span, lines=sizes),
    )
