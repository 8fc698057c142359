"""The view of running clusters: what was collected, what was pushed, and what could not be enforced."""

from dataclasses import dataclass

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
    rows = read.rows(
        "counters",
        f"SELECT {span_sql(span)} AS at_us, direction, sum(messages) AS messages, sum(bytes) AS bytes FROM counters "  # noqa: S608
        f"WHERE {span.where()} AND from_us < at_us GROUP BY 1, direction ORDER BY 1",
    )
    return tuple(
        Chart(
            f"{unit.capitalize()} collected, counted at the time of each look",
            f"{unit}/s",
            span,
            tuple(
                course(
                    name, kind, span, {row["at_us"]: row[unit] or 0 for row in rows if row["direction"] == direction}
                )
                for direction, name, kind in (("in", "published", "series-0"), ("out", "dispatched", "series-1"))
            ),
        )
        for unit in ("messages", "bytes")
    )
