"""When limiters held a topic, from the rows of `marks`: a hold lasts from a producer's mark to its unmark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.core.numbers import SECOND_NS
from headgate.core.publish.publish_limiter import Scope
from headgate.core.reasons import HeldReason, condition_reason, publish_reason
from headgate.quota.usage.topic_query import RAN_OUT
from headgate.tables.query import text
from headgate.why.answer import Balance, HeldBy, Producer, Span
from headgate.why.tables import OutputTables, within

SAME_SPAN_S = 10
"""A shorter pause does not end a span."""
SHOWN_SPANS, SHOWN_PRODUCERS, SHOWN_BALANCES = 10, 20, 200
LOOKBACK_S, _MOST_LOOKBACK_S = 900, 6 * 3600
"""So far before the window a mark that still holds in it is looked for; the latter if the former finds nothing."""
_LIMITER = ("broker", "scope", "limiter", "type")
WHOSE = (*_LIMITER, "topic", "connection", "producer")
"""Columns of `marks` that a mark and the unmark that ends it have in common."""
_MARKED, _UNMARKED = (f"max(CASE WHEN action = '{one}' THEN at_ns END)" for one in ("mark", "unmark"))
_LIMITERS = f"scope IN ({', '.join(map(text, Scope))})"
_BEFORE = f"CASE WHEN {_LIMITERS} AND min(at_ns) = min(CASE WHEN action = 'unmark' THEN at_ns END) THEN 1 ELSE 0 END"
IS_OPEN = (
    f"coalesce({_MARKED} > coalesce({_UNMARKED}, 0) OR ({_MARKED} = {_UNMARKED} AND "
    f"{_BEFORE} + sum(CASE WHEN action = 'mark' THEN 1 ELSE -1 END) > 0), false)"
)
"""SQL, of marks and unmarks grouped by WHOSE: whether the last mark still holds, as nothing unmarks after it.

If something does at its instant, the rows before tell: it holds if there are more marks than unmarks. A limiter that
unmarks in the first row had marked before; it often marks whom it lets go at the same instant.
"""
_OF_MARK = ("action", "messages_balance", "messages_per_s", "bytes_balance", "bytes_per_s", "unit")
_COLUMNS = f"at_ns, {', '.join(WHOSE)}, {', '.join(_OF_MARK[:-1])}, {RAN_OUT} AS unit"

_NO_ROWS = pa.schema(
    [
        *((name, pa.int64()) for name in ("at_ns", *_OF_MARK[1:-1])),
        *((name, pa.string()) for name in (*WHOSE, "action", "unit")),
    ]
).empty_table()
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Holds:
    """What held a topic in a window: rows of its marks, with those before that are still open in it."""

    rows: pa.Table
    first_ns: int
    end_ns: int

    @property
    def held_s(self) -> float:
        """While any limiter held any producer."""
        return _seconds(self._intervals(self.rows))

    def is_held_in(self, second_s: int) -> bool:
        """Whether any did at any time in that second."""
        starts, ends = self._intervals(self.rows)
        return bool(np.any((starts < (second_s + 1) * SECOND_NS) & (ends > second_s * SECOND_NS)))

    def held_by(self) -> Iterator[HeldBy]:
        """Each limiter on each broker: the one first that held longest."""
        found = []
        for (broker, scope, limiter, _), rows in _by(self.rows, _LIMITER):
            intervals = self._intervals(rows)
            if not len(intervals[0]):
                continue
            marks = self._marks(rows)
            spans = _spans(intervals, self.first_ns)
            shown = sorted(sorted(spans, key=lambda one: one.first - one.last)[:SHOWN_SPANS], key=lambda one: one.first)
            held_s = _seconds(intervals)
            found.append(
                HeldBy(
                    *(_reason(scope, rows), scope, limiter, broker, _unit_of(scope, rows), held_s, len(marks)),
                    *_rates(rows),
                    spans=tuple(shown),
                    more_spans=len(spans) - len(shown),
                    last_mark=_last_mark(rows),
                )
            )
        yield from sorted(found, key=lambda one: (-one.held_s, -one.marks, one.scope, one.limiter, one.broker))

    def producers(self) -> list[Producer]:
        """Those of the topic, the one first that was held longest."""
        found = [
            Producer(producer, broker, connection, len(self._marks(rows)), _seconds(self._intervals(rows)))
            for (producer, broker, connection), rows in _by(self.rows, ("producer", "broker", "connection"))
        ]
        return sorted((one for one in found if one.marks or one.held_s), key=_rank)

    def topics(self) -> Iterator[tuple[str, int, float, HeldReason]]:
        """Each topic that a limiter held: how often, for how long, and by what longest; NOT_HELD if for no time."""
        for (topic,), rows in _by(self.rows, ("topic",)):
            if topic is not None:
                reason = next((one.reason for one in replace(self, rows=rows).held_by()), HeldReason.NOT_HELD)
                yield topic, len(self._marks(rows)), _seconds(self._intervals(rows)), reason

    def balances(self) -> list[Balance]:
        """At marks in the window, in the order of time: of many every so many-th, and always the last."""
        marks = self._marks(self.rows).sort_by("at_ns")
        step = -(-len(marks) // SHOWN_BALANCES) or 1
        places = sorted({*range(0, len(marks), step), *range(len(marks))[-1:]})
        return [
            Balance(
                instant(row["at_ns"]),
                *(row[name] for name in ("broker", "scope", "limiter")),
                *(row[name] for name in ("messages_balance", "messages_per_s", "bytes_balance", "bytes_per_s")),
            )
            for row in marks.take(pa.array(places, pa.int64())).to_pylist()
        ]

    def _marks(self, rows: pa.Table) -> pa.Table:
        in_window = pc.and_(pc.greater_equal(rows["at_ns"], self.first_ns), pc.equal(rows["action"], "mark"))
        return rows.filter(in_window)

    def _intervals(self, rows: pa.Table) -> tuple[Ints, Ints]:
        """Where at least one producer is held, in the window: starts and ends, in order, apart from each other."""
        if not len(rows):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at_ns = rows["at_ns"].to_numpy()
        steps = np.where(pc.equal(rows["action"], "mark").to_numpy(), 1, -1)
        times, place = np.unique(at_ns, return_inverse=True)
        is_limiter = pc.is_in(rows["scope"], pa.array([*Scope])).to_numpy()
        before = _open_before(_codes(rows, WHOSE), place, steps, is_limiter)
        depth = np.append(before, before + np.cumsum(np.bincount(place, steps)).astype(np.int64))
        starts, ends = np.append(self.first_ns, times), np.append(times, self.end_ns)
        starts, ends = np.maximum(starts, self.first_ns)[depth > 0], np.minimum(ends, self.end_ns)[depth > 0]
        starts, ends = starts[starts < ends], ends[starts < ends]
        is_apart = np.append(True, starts[1:] > ends[:-1])[: len(starts)]
        return starts[is_apart], np.append(ends[:-1][is_apart[1:]], ends[-1:])


def _open_before(codes: Ints, place: Ints, steps: Ints, is_limiter: NDArray[np.bool_]) -> int:
    """How many producers were held before their first row: those with more unmarks than marks up to some place.

    place: grows with time. At a limiter's first one its unmarks come before its marks, as it had marked before.
    """
    first = np.full(codes.max() + 1, place.max())
    np.minimum.at(first, codes, place)
    place = 2 * place + (is_limiter & (steps > 0) & (place == first[codes]))
    order = np.lexsort((place, codes))
    codes, place, steps = codes[order], place[order], steps[order]
    is_first = np.append(True, (np.diff(codes) != 0) | (np.diff(place) != 0))
    net = np.add.reduceat(steps, np.flatnonzero(is_first))
    codes = codes[is_first]
    begins = np.flatnonzero(np.append(True, np.diff(codes) != 0))
    sums = np.cumsum(net)
    base = np.repeat(sums[begins] - net[begins], np.diff(np.append(begins, len(codes))))
    return int(np.sum(np.maximum(-np.minimum.reduceat(sums - base, begins), 0)))


def holds_of(tables: OutputTables, where: str, first_ns: int, end_ns: int) -> Holds:
    """The holds in a window, those that began before it too. where: whose marks, in SQL."""
    rows = marks_of(tables, where, first_ns, end_ns)
    open_rows = _open_at(tables, where, first_ns, LOOKBACK_S)
    if not len(rows) and not len(open_rows):
        open_rows = _open_at(tables, where, first_ns, _MOST_LOOKBACK_S)
    return Holds(pa.concat_tables([open_rows, rows], promote_options="permissive"), first_ns, end_ns)


def marks_of(tables: OutputTables, where: str, first_ns: int, end_ns: int) -> pa.Table:
    """Marks and unmarks, in the order of time. where: whose, in SQL."""
    where = f"{where} AND {within(first_ns, end_ns)} AND action IN ('mark', 'unmark')"
    rows = tables.rows("marks", f"SELECT {_COLUMNS} FROM marks WHERE {where}")  # noqa: S608  our own names, quoted text
    return rows.sort_by("at_ns") if len(rows) else _NO_ROWS


def _open_at(tables: OutputTables, where: str, at_ns: int, back_s: int) -> pa.Table:
    """The marks that still hold at that time: the last of each producer, limiter and topic."""
    where = f"{where} AND {within(at_ns - back_s * SECOND_NS, at_ns)} AND action IN ('mark', 'unmark')"
    last = ", ".join(f"last_value({name} ORDER BY at_ns, action DESC) AS {name}" for name in _OF_MARK)
    whose = ", ".join(WHOSE)
    sql = f"SELECT max(at_ns) AS at_ns, {whose}, {last} FROM (SELECT {_COLUMNS} FROM marks WHERE {where}) "  # noqa: S608
    rows = tables.rows("marks", f"{sql}GROUP BY {whose} HAVING {IS_OPEN}")
    return rows.sort_by("at_ns").select(_NO_ROWS.column_names) if len(rows) else _NO_ROWS


def instant(at_ns: int) -> datetime:
    """Rounded down to microseconds."""
    return datetime.fromtimestamp(at_ns // SECOND_NS, UTC).replace(microsecond=at_ns % SECOND_NS // 1000)


def _rank(producer: Producer) -> tuple[float, int, str, str, str]:
    """Who was held longest comes first."""
    return -producer.held_s, -producer.marks, producer.broker, producer.connection, producer.name


def _seconds(intervals: tuple[Ints, Ints]) -> float:
    starts, ends = intervals
    return int(np.sum(ends - starts)) / SECOND_NS


def _spans(intervals: tuple[Ints, Ints], first_ns: int) -> list[Span]:
    starts, ends = intervals
    is_new = np.append(True, starts[1:] - ends[:-1] > SAME_SPAN_S * SECOND_NS)
    return [
        Span(instant(int(start)), instant(int(end)), since_before=bool(start == first_ns))
        for start, end in zip(starts[is_new], np.append(ends[:-1][is_new[1:]], ends[-1:]), strict=True)
    ]


def _reason(scope: str, rows: pa.Table) -> HeldReason:
    """Of the rows of one limiter or condition."""
    if scope in {*Scope}:
        return publish_reason(scope, _unit_of(scope, rows), is_blocked=scope == Scope.GROUP and 0 in _rates(rows))
    return condition_reason(rows["type"][0].as_py())


def _unit_of(scope: str, rows: pa.Table) -> str:
    """Which ran out most often, of as many, messages; of a blocked group that of which the rate is 0."""
    if scope == Scope.GROUP and 0 in (rates := _rates(rows)):
        return "messages" if rates[0] == 0 else "bytes"
    units = rows.filter(pc.equal(rows["action"], "mark"))["unit"]
    counts = {row["values"]: row["counts"] for row in pc.value_counts(units.combine_chunks()).to_pylist()}
    return "bytes" if counts.get("bytes", 0) > counts.get("messages", 0) else "messages"


def _rates(rows: pa.Table) -> tuple[int | None, int | None]:
    """In messages and bytes, at the last mark."""
    marks = rows.filter(pc.equal(rows["action"], "mark"))
    messages, bytes_ = (marks[name][-1].as_py() if len(marks) else None for name in ("messages_per_s", "bytes_per_s"))
    return messages, bytes_


def _last_mark(rows: pa.Table) -> datetime | None:
    marks = rows.filter(pc.equal(rows["action"], "mark"))
    return instant(marks["at_ns"][-1].as_py()) if len(marks) else None


def _codes(rows: pa.Table, names: Sequence[str]) -> Ints:
    """A number for each combination of values, the same for the same one."""
    codes = np.zeros(len(rows), np.int64)
    for name in names:
        encoded = rows[name].combine_chunks().dictionary_encode()
        column = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64) + 1
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + column, return_inverse=True)
    return codes


def _by(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """The rows of each combination of values, in their order."""
    codes = _codes(rows, names)
    for code in np.unique(codes):
        of_code = rows.take(np.flatnonzero(codes == code))
        yield tuple(of_code[name][0].as_py() for name in names), of_code
