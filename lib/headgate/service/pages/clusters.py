"""The view of running clusters: what was collected, what was pushed, and what could not be enforced."""

from dataclasses import dataclass
from typing import Any

from headgate.service.pages.charts import Chart, course
from headgate.service.pages.flow import span_sql
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span, together

MOST = 200


@dataclass(frozen=True)
class BrokerLook:
    """The last look at a broker. failures: in the range, of `looks`. error: why the last one failed, None if not."""

    cluster: str
    broker: str
    at_us: int
    took_ms: int | None
    topics: int | None
    error: str | None
    looks: int
    failures: int


@dataclass(frozen=True)
class Enforced:
    """The newest of what was done to a place. before, after: limits as JSON, None for no limit."""

    at_us: int
    resource: str
    path: str
    action: str
    before: str | None
    after: str | None
    reason: str | None


@dataclass(frozen=True)
class Clusters:
    """not_enforceable: topics that exceed their cap all the same. places: everything else, newest first."""

    span: Span
    charts: tuple[Chart, ...]
    brokers: tuple[BrokerLook, ...]
    not_enforceable: tuple[Enforced, ...]
    places: tuple[Enforced, ...]
    places_total: int


def clusters(read: Read, asked: Asked) -> Clusters:
    """Raises PageError and TableError."""
    tables = [name for name in ("broker_looks", "enforced", "counters") if read.has(name)]
    read.need(tables[0] if tables else "broker_looks")
    extents = [read.extent(name, "event_time" if name == "counters" else "at_us") for name in tables]
    span = asked.span(together(extents), "look at a broker")
    places, total = _enforced(read, span) if "enforced" in tables else ([], 0)
    return Clusters(
        span,
        _charts(read, span) if "counters" in tables else (),
        tuple(_looks(read, span)) if "broker_looks" in tables else (),
        tuple(one for one in places if one.action == "not_enforceable"),
        tuple(one for one in places if one.action != "not_enforceable"),
        total,
    )


def _looks(read: Read, span: Span) -> list[BrokerLook]:
    rows = read.rows(
        "broker_looks",
        "SELECT cluster, broker, at_us, took_ms, topics, error, looks, failures FROM (SELECT *, "  # noqa: S608
        "row_number() OVER (PARTITION BY cluster, broker ORDER BY at_us DESC) AS place, "
        "count(*) OVER (PARTITION BY cluster, broker) AS looks, count(error) OVER (PARTITION BY "
        "cluster, broker) AS failures "
        f"FROM broker_looks WHERE {span.where_us('at_us')}) WHERE place = 1 ORDER BY cluster, broker LIMIT {MOST}",
    )
    return [BrokerLook(**row) for row in rows]


def _enforced(read: Read, span: Span) -> tuple[list[Enforced], int]:
    columns = "at_us, resource, path, action, before, after, reason"
    rows = read.rows(
        "enforced",
        f"SELECT {columns}, count(*) OVER () AS places FROM (SELECT {columns}, row_number() OVER "  # noqa: S608
        "(PARTITION BY resource, "
        "path, action = 'not_enforceable' ORDER BY at_us DESC) AS place FROM enforced WHERE "
        f"{span.where_us('at_us')} AND "
        "action NOT IN ('lease', 'alive', 'ended')) WHERE place = 1 "
        f"ORDER BY action = 'not_enforceable' DESC, at_us DESC, path LIMIT {MOST}",
    )
    total = rows[0]["places"] if rows else 0
    return [Enforced(**{name: row[name] for name in columns.split(", ")}) for row in rows], total


def _charts(read: Read, span: Span) -> tuple[Chart, ...]:
    """A look tells what came since the one before: spread evenly over that time. Looks of one step count together."""
    rows = read.rows(
        "counters",
        f"SELECT direction, {span_sql(span)} AS until_us, min(from_us) AS since_us, sum(messages) AS messages, "  # noqa: S608
        f"sum(bytes) AS bytes FROM counters WHERE {span.where()} AND from_us < at_us GROUP BY "
        "direction, until_us, broker",
    )
    return tuple(
        Chart(
            f"{unit.capitalize()} collected per second",
            f"{unit}/s",
            span,
            tuple(
                course(name, kind, span, _spread(span, unit, [row for row in rows if row["direction"] == direction]))
                for direction, name, kind in (("in", "published", "series-0"), ("out", "dispatched", "series-1"))
            ),
        )
        for unit in ("messages", "bytes")
    )


def _spread(span: Span, unit: str, rows: list[dict[str, Any]]) -> dict[int, float]:
    """By step. What is of the time before the range counts for its first step."""
    steps, sums = span.steps_us, dict.fromkeys(span.steps_us, 0.0)
    for row in rows:
        last = (row["until_us"] - steps.start) // steps.step
        first = max(0, min(last, (row["since_us"] - steps.start) // steps.step + 1))
        for place in range(first, last + 1):
            sums[steps[place]] += (row[unit] or 0) / (last + 1 - first)
    return sums
