"""The view of connections: which are paused, for how long and why."""

from dataclasses import dataclass

from headgate.core.reasons import CONDITIONS, HeldReason, condition_reason
from headgate.service.pages.charts import Chart, course
from headgate.service.pages.flow import span_sql
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span, together
from headgate.throttle.schemas import HELD_NS

MOST = 100
_PARTS = {column: type_ for type_, column in HELD_NS.items()}


@dataclass(frozen=True)
class Condition:
    """How often a condition held connections in the range, and how many of them. now: how many it still holds."""

    reason: HeldReason
    marks: int
    connections: int
    now: int


@dataclass(frozen=True)
class Paused:
    """A connection's pauses that ended in the range. is_paused: at its end. mostly: the type of mark that took most."""

    broker: str
    connection: str
    pauses: int
    paused_ns: int
    is_paused: bool
    mostly: str


@dataclass(frozen=True)
class Connections:
    """paused: None where jobs/connections.py has not run. total: of those with pauses, listed or not."""

    span: Span
    charts: tuple[Chart, ...]
    conditions: tuple[Condition, ...]
    paused: tuple[Paused, ...] | None
    total: int
    now: int


def connections(read: Read, asked: Asked) -> Connections:
    """Raises PageError and TableError."""
    read.need("connections" if read.has("connections") else "marks")
    extents = [read.extent(name) for name in ("marks", "connections") if read.has(name)]
    span = asked.span(together(extents), "mark")
    charts, conditions = _conditions(read, span) if read.has("marks") else ((), ())
    if not read.has("connections"):
        return Connections(span, charts, conditions, None, 0, 0)
    paused, total, now = _paused(read, span)
    return Connections(span, charts, conditions, tuple(paused), total, now)


def _conditions(read: Read, span: Span) -> tuple[tuple[Chart, ...], tuple[Condition, ...]]:
    listed = ", ".join(f"'{one}'" for one in CONDITIONS)
    rows = read.rows(
        "marks",
        "SELECT type, count(*) FILTER (WHERE action = 'mark') AS marks, "  # noqa: S608  our own names
        "count(DISTINCT (broker || '/' || connection)) AS connections, "
        "count(*) FILTER (WHERE place = 1 AND action = 'mark') AS now FROM (SELECT *, row_number() OVER "
        "(PARTITION BY broker, connection, type ORDER BY at_ns DESC, action DESC) AS place FROM marks "
        f"WHERE {span.where()} AND type IN ({listed})) GROUP BY type ORDER BY marks DESC, type",
    )
    steps = read.rows(
        "marks",
        f"SELECT {span_sql(span)} AS at_us, type, count(*) AS marks FROM marks WHERE {span.where()} "  # noqa: S608
        f"AND action = 'mark' AND type IN ({listed}) GROUP BY at_us, type ORDER BY at_us",
    )
    areas = tuple(
        course(
            str(condition_reason(one)),
            f"series-{n}",
            span,
            {row["at_us"]: row["marks"] for row in steps if row["type"] == one},
        )
        for n, one in enumerate(CONDITIONS)
    )
    found = [Condition(condition_reason(row["type"]), row["marks"], row["connections"], row["now"]) for row in rows]
    return (Chart("Connections held per second", "marks/s", span, areas),), tuple(found)


def _paused(read: Read, span: Span) -> tuple[list[Paused], int, int]:
    parts = ", ".join(f"sum(coalesce({column}, 0)) AS {column}" for column in _PARTS)
    rows = read.rows(
        "connections",
        "SELECT *, count(*) OVER () AS total, sum(CASE WHEN is_paused THEN 1 ELSE 0 END) OVER () AS now FROM ("  # noqa: S608
        "SELECT broker, connection, count(*) FILTER (WHERE auto_read = false) AS pauses, "
        f"sum(coalesce(paused_ns, 0)) AS paused_ns, {parts}, "
        "max(CASE WHEN auto_read = false THEN at_ns ELSE 0 END) > max(CASE WHEN "
        "coalesce(auto_read, true) THEN at_ns ELSE 0 "
        f"END) AS is_paused FROM connections WHERE {span.where()} GROUP BY broker, connection) "
        f"ORDER BY is_paused DESC, paused_ns DESC, broker, connection LIMIT {MOST}",
    )
    found = [
        Paused(
            row["broker"],
            row["connection"],
            row["pauses"],
            row["paused_ns"],
            row["is_paused"],
            str(_PARTS[max(_PARTS, key=lambda column: row[column])].value) if any(row[c] for c in _PARTS) else "",
        )
        for row in rows
    ]
    return found, rows[0]["total"] if rows else 0, rows[0]["now"] if rows else 0
