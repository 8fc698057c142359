"""Why a connection is not read: conditions of its own, or limits that hold a producer on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from headgate.core.numbers import SECOND_NS
from headgate.core.reasons import CONDITIONS, HeldReason
from headgate.errors import NotFoundError
from headgate.tables.query import text
from headgate.why.answer import HeldBy, Window
from headgate.why.holds import Holds, holds_of
from headgate.why.known import window_in
from headgate.why.tables import OutputTables, end_ns, first_ns, in_window, listed, nearest


@dataclass(frozen=True)
class OnConnection:
    """A topic with a producer on the connection. marked: how often limits held one, and held_s for how long.

    reason: of the limit that held one longest. Where none did it is that of the condition that held the connection
    longest, or SHARED_CONNECTION if that was a limit, which held other topics alone.
    """

    topic: str
    marked: int
    held_s: float
    reason: HeldReason


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
    tables: OutputTables,
    name: str,
    *,
    at_s: int | None = None,
    first_s: int | None = None,
    last_s: int | None = None,
) -> ConnectionWhy:
    """name: broker/connection. Times and errors as those of `topics.why`; a connection can be held after the last
    publish.
    """
    brokers = [name[:place] for place, letter in enumerate(name) if letter == "/"]  # both can have slashes
    named = f"broker IN ({listed(brokers)}) AND broker || '/' || connection = {text(name)}"
    found = tables.dicts("marks", f"SELECT broker, connection FROM marks WHERE {named} LIMIT 1")  # noqa: S608  quoted text
    if not found:
        _unknown(tables, name)
    broker, connection = found[0]["broker"], found[0]["connection"]
    where = f"broker = {text(broker)} AND connection = {text(connection)}"
    window, notes = window_in(
        tables.times_over("topic_usage", "marks", "connections"), tables.output, at_s, first_s, last_s
    )
    holds = holds_of(tables, where, first_ns(window), end_ns(window))
    held_by = tuple(holds.held_by())
    reason = held_by[0].reason if held_by else HeldReason.NOT_HELD
    pauses, paused_s = _pauses(tables, where, window)
    return ConnectionWhy(
        *(broker, connection, window, reason),
        holds.held_s,
        held_by,
        tuple(_topics(tables, where, window, holds, reason)),
        pauses,
        paused_s,
        tuple(notes),
    )


def _topics(
    tables: OutputTables, where: str, window: Window, holds: Holds, reason: HeldReason
) -> Iterator[OnConnection]:
    """Those held longest first; with `operator.connection_topics` also those that nothing held. reason: of the
    connection.
    """
    is_shared = reason not in {*CONDITIONS.values(), HeldReason.NOT_HELD}
    of_others = HeldReason.SHARED_CONNECTION if is_shared else reason
    held = {topic: (marks, held_s, of_topic) for topic, marks, held_s, of_topic in holds.topics()}
    until = f"at_ns < {end_ns(window)}"
    sql = f"SELECT DISTINCT topic FROM marks WHERE {where} AND {until} AND action IN ('attach', 'mark')"  # noqa: S608
    known = {row["topic"] for row in tables.dicts("marks", sql)} - {None}
    found = [(topic, *held.get(topic, (0, 0.0, HeldReason.NOT_HELD))) for topic in known]
    for topic, marked, held_s, own in sorted(found, key=lambda one: (-one[2], one[0])):
        yield OnConnection(topic, marked, held_s, of_others if own is HeldReason.NOT_HELD else own)


def _pauses(tables: OutputTables, where: str, window: Window) -> tuple[int | None, float | None]:
    if not tables.has("connections"):
        return None, None
    sums = "count(CASE WHEN NOT auto_read THEN 1 END) AS pauses, sum(paused_ns) AS paused_ns"
    sql = f"SELECT {sums} FROM connections WHERE {where} AND {in_window(window)}"  # noqa: S608  quoted text
    total = tables.summed("connections", sql, ["pauses", "paused_ns"])
    return total["pauses"], total["paused_ns"] / SECOND_NS


def _unknown(tables: OutputTables, name: str) -> NoReturn:
    rows = tables.rows("marks", "SELECT DISTINCT broker || '/' || connection AS name FROM marks")
    known = sorted(set(rows["name"].drop_null().to_pylist())) if len(rows) else []
    raise NotFoundError(
        f"{tables.output} has no mark of connection {name!r}, in {len(known):,} connections{nearest(name, known)}; "
        "allowed: broker/connection; correct the name"
    )
