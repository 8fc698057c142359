"""Why a connection is not read: conditions of its own, or limits that hold a producer on it."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.core.numbers import SECOND_NS
from headgate.core.reasons import HeldReason
from headgate.errors import NotFoundError
from headgate.tables.query import text
from headgate.why.answer import HeldBy, Window
from headgate.why.holds import Holds, holds_of
from headgate.why.known import window_of
from headgate.why.tables import OutputTables, end_ns, first_ns, in_window, nearest


@dataclass(frozen=True)
class OnConnection:
    """A topic with a producer on the connection. marked: how often limits held one; 0: a victim of the others."""

    topic: str
    marked: int
    held_s: float


@dataclass(frozen=True)
class ConnectionWhy:
    """held_by: limits and conditions, the one first that held it longest. held_s: while any of them did.

    topics: that are known to be on it. pauses: of reads, and paused_s; None where no job writes them.
    """

    broker: str
    connection: str
    window: Window
    reason: HeldReason
    held_s: float
    held_by: tuple[HeldBy, ...]
    topics: tuple[OnConnection, ...]
    pauses: int | None = None
    paused_s: float | None = None
    notes: tuple[str, ...] = ()


def why_connection(
    output: str,
    name: str,
    *,
    at_s: int | None = None,
    first_s: int | None = None,
    last_s: int | None = None,
) -> ConnectionWhy:
    """name: broker/connection. Times and errors as those of `topics.why`."""
    tables = OutputTables(output)
    broker, _, connection = name.partition("/")
    where = f"broker = {text(broker)} AND connection = {text(connection)}"
    if not len(tables.rows("marks", f"SELECT at_ns FROM t WHERE {where} LIMIT 1")):  # noqa: S608  quoted text
        _unknown(tables, name)
    window, notes = window_of(tables, at_s, first_s, last_s)
    holds = holds_of(tables, where, first_ns(window), end_ns(window))
    held_by = tuple(holds.held_by())
    pauses, paused_s = _pauses(tables, where, window)
    return ConnectionWhy(
        *(broker, connection, window),
        held_by[0].reason if held_by else HeldReason.NOT_HELD,
        holds.held_s,
        held_by,
        tuple(_topics(tables, where, window, holds)),
        pauses,
        paused_s,
        tuple(notes),
    )


def _topics(tables: OutputTables, where: str, window: Window, holds: Holds) -> Iterator[OnConnection]:
    """Those held longest first; with `operator.connection_topics` also those that nothing held."""
    held = {topic: (marks, held_s) for topic, marks, held_s in holds.topics()}
    until = f"at_ns < {end_ns(window)}"
    sql = f"SELECT DISTINCT topic FROM t WHERE {where} AND {until} AND action IN ('attach', 'mark')"  # noqa: S608
    known = {row["topic"] for row in tables.dicts("marks", sql)} - {None}
    for topic in sorted(known, key=lambda one: (-held.get(one, (0, 0.0))[1], one)):
        yield OnConnection(topic, *held.get(topic, (0, 0.0)))


def _pauses(tables: OutputTables, where: str, window: Window) -> tuple[int | None, float | None]:
    if not tables.has("connections"):
        return None, None
    sums = "count(CASE WHEN NOT auto_read THEN 1 END) AS pauses, sum(paused_ns) AS paused_ns"
    sql = f"SELECT {sums} FROM t WHERE {where} AND {in_window(window)}"  # noqa: S608  quoted text
    total = tables.summed("connections", sql, ["pauses", "paused_ns"])
    return total["pauses"], total["paused_ns"] / SECOND_NS


def _unknown(tables: OutputTables, name: str) -> None:
    rows = tables.rows("marks", "SELECT DISTINCT broker || '/' || connection AS name FROM t")
    known = sorted(set(rows["name"].drop_null().to_pylist())) if len(rows) else []
    raise NotFoundError(
        f"{tables.output} has no mark of connection {name!r}, in {len(known):,} connections{nearest(name, known)}; "
        "allowed: broker/connection; correct the name"
    )
