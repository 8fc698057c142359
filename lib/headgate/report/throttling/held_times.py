"""For how long each limiter held a tenant or topic, and which unit had run out: sums over the table `marks`."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.mark_reasons import unit_of
from headgate.arrow.topic_names import TENANT, TOPIC
from headgate.core.numbers import SECOND_NS
from headgate.quota.usage.excess import BYTES, MESSAGES, OWN, SHARED_SCOPES, UNITS, Limiter, limiter_of
from headgate.quota.usage.topic_query import RAN_OUT
from headgate.report.throttling.waits import GIVEN_UP_S
from headgate.tables.sums import ROWS, Made, Sums

_SINCE_MS = 1_577_836_800_000
"""2020 in Unix time: sums of times since then fit into 64 bits for thirty million marks."""


_SINCE = f"(arrow_cast(event_time, 'Int64') / 1000 - {_SINCE_MS})"


def _since_2020(marks: pa.Table) -> pa.ChunkedArray:
    return pc.subtract(pc.divide(marks["event_time"].cast(pa.int64()), 1000), _SINCE_MS)


def steps_of_time(name: str, length_ms: int) -> Made:
    """A column with the number of the step of this length in which a row is."""
    return Made(
        name,
        f"arrow_cast(event_time, 'Int64') / {1000 * length_ms}",
        lambda rows: pc.divide(rows["event_time"].cast(pa.int64()), 1000 * length_ms),
        pa.int64(),
    )


_SPAN_MS, _STEP_MS = 10_000, 100
_SPAN = steps_of_time("span", _SPAN_MS)
_PAUSE_MS = 16
"""The shortest pause: brokers look for permits again so often."""
_DEBT_MS = {unit: f"-1000.0 * {unit}_balance / nullif({unit}_per_s, 0)" for unit in UNITS}
"""SQL: how long a unit takes to come back."""
_DUE_MS = (
    f"(coalesce(CASE {RAN_OUT} WHEN '{BYTES}' THEN {_DEBT_MS[BYTES]} ELSE {_DEBT_MS[MESSAGES]} END, 0) + {_PAUSE_MS})"
)


def _debt_ms(marks: pa.Table, unit: str) -> pa.ChunkedArray:
    """What _DEBT_MS says."""
    rate = marks[f"{unit}_per_s"]
    balance = marks[f"{unit}_balance"].cast(pa.float64())
    return pc.divide(pc.multiply(balance, -1000.0), pc.if_else(pc.equal(rate, 0), None, rate))


def _due_ms(marks: pa.Table) -> pa.ChunkedArray:
    messages, bytes_ = (_debt_ms(marks, unit) for unit in UNITS)
    return pc.add(pc.fill_null(pc.if_else(pc.equal(unit_of(marks), BYTES), bytes_, messages), 0), float(_PAUSE_MS))


HELD_BY = Sums(
    "marks",
    (TENANT, TOPIC, "broker", "scope", "limiter", "action", "unit", "span"),
    ("since_ms", "due_ms"),
    where=(("action", ("mark", "unmark")),),
    made=(
        Made("unit", RAN_OUT, unit_of),
        _SPAN,
        Made("since_ms", _SINCE, _since_2020, pa.int64()),
        Made("due_ms", _DUE_MS, _due_ms, pa.float64()),
    ),
)
"""A limiter held somebody for the sum of the times at which it let go, less the sum of those at which it began.

span: of _SPAN_MS. due_ms: until the unit that had run out is there again, if nothing else comes.
"""


def _until_ms(unit: str) -> Made:
    return Made(
        f"{unit}_until_ms",
        f"{_SINCE} + {_DEBT_MS[unit]}",
        lambda marks: pc.add(_since_2020(marks).cast(pa.float64()), _debt_ms(marks, unit)),
        pa.float64(),
    )


OUT_UNTIL = Sums(
    "marks",
    ("broker", "scope", "limiter", "step"),
    highest=tuple(f"{unit}_until_ms" for unit in UNITS),
    where=(("action", ("mark",)), ("scope", SHARED_SCOPES)),
    made=(steps_of_time("step", _STEP_MS), *map(_until_ms, UNITS)),
)
"""Until when each unit of a limiter that others share is out of reach, as of the marks in a step of _STEP_MS."""

Parts = Mapping[tuple[str, Limiter, int], Mapping[str, float]]
"""By broker, limiter and span, for how long each unit was the one that took longer to come back."""


def parts_of(out: pa.Table) -> Parts:
    """out: of the sums OUT_UNTIL. What others send while somebody is held can change which unit he waits for."""
    found: dict[tuple[str, Limiter, int], dict[str, float]] = defaultdict(lambda: dict.fromkeys(UNITS, 0.0))
    rows = out.sort_by([(name, "ascending") for name in ("broker", "scope", "limiter", "step")]).to_pylist()
    for (broker, scope, limiter), steps in groupby(rows, key=itemgetter("broker", "scope", "limiter")):
        until_ms = dict.fromkeys(UNITS, -math.inf)
        of_limiter = [*steps]
        for row, next_ in zip_longest(of_limiter, of_limiter[1:]):
            began_ms = row["step"] * _STEP_MS - _SINCE_MS
            for unit in UNITS:
                until_ms[unit] = max(until_ms[unit], row[f"{unit}_until_ms"] or -math.inf)
            later = BYTES if until_ms[BYTES] > until_ms[MESSAGES] else MESSAGES
            end_ms = until_ms[later] if next_ is None else min(until_ms[later], next_["step"] * _STEP_MS - _SINCE_MS)
            span = row["step"] * _STEP_MS // _SPAN_MS
            found[broker, (scope, limiter), span][later] += max(end_ms - began_ms, _PAUSE_MS)
    return found


class HeldSpan(NamedTuple):
    """For how long a limiter held a tenant or topic on a broker in `spans` spans from `span` on, by unit."""

    name: str
    limiter: Limiter
    broker: str
    span: int
    spans: int
    of_unit: Mapping[str, float]


HeldTime = tuple[str, Limiter, dict[str, float]]
"""A tenant or topic, a limiter, and for how long that held it, by unit."""


def held_spans(by: str, held: pa.Table, parts: Parts, end: datetime | None) -> Iterator[HeldSpan]:
    """By tenant or topic, limiter and broker, in the order of time.

    held: of the sums HELD_BY. parts: `parts_of` limiters that others share. end: of the run; what is still held is held
    until then. The time in a span is divided among units by parts, of limits of topics by how long each was to be out
    of reach (due_ms).
    """
    end_ms = 0 if end is None else round(end.timestamp() * 1000) - _SINCE_MS
    is_mark = pc.equal(held["action"], "mark")
    opened = pc.if_else(is_mark, held[ROWS], pc.negate(held[ROWS]))
    since_ms = pc.fill_null(held["since_ms"], 0)
    columns = {
        by: held[by],
        "scope": held["scope"],
        "limiter": pc.if_else(pc.equal(held["scope"], OWN[0]), OWN[1], held["limiter"]),
        "broker": held["broker"],
        "span": pc.fill_null(held["span"], 0),
        "opened": opened,
        "ended_ms": pc.if_else(is_mark, pc.negate(since_ms), since_ms),
        **{
            unit: pc.if_else(pc.and_(is_mark, pc.equal(held["unit"], unit)), pc.fill_null(held["due_ms"], 0), 0.0)
            for unit in UNITS
        },
    }
    keys, values = [by, "scope", "limiter", "broker", "span"], ["opened", "ended_ms", *UNITS]
    sums = pa.table(columns).group_by(keys, use_threads=False).aggregate([(name, "sum") for name in values])
    sums = sums.rename_columns([*keys, *values]).sort_by([(key, "ascending") for key in keys])
    for (name, scope, limiter, broker), rows in groupby(sums.to_pylist(), key=itemgetter(*keys[:4])):
        spans = list(rows)
        ends = [row["span"] * _SPAN_MS - _SINCE_MS for row in spans[1:]] + [end_ms]
        of, known = limiter_of({"scope": scope, "limiter": limiter}), {MESSAGES: 1.0}
        is_open = 0
        for row, next_ms in zip(spans, ends, strict=True):
            began_ms = row["span"] * _SPAN_MS - _SINCE_MS
            held_ms = row["ended_ms"] + (is_open + row["opened"]) * next_ms - is_open * began_ms
            is_open += row["opened"]
            by_unit = parts.get((broker, of, row["span"]), row if of == OWN else {})
            known = {unit: by_unit[unit] for unit in UNITS if by_unit.get(unit)} or known
            of_unit = {unit: max(held_ms, 0) * part / sum(known.values()) for unit, part in known.items()}
            yield HeldSpan(name, of, broker, row["span"], max((next_ms - began_ms) // _SPAN_MS, 1), of_unit)


def held_times(spans: Iterable[HeldSpan]) -> Iterator[HeldTime]:
    """By tenant or topic and limiter, for how long it held in all, by unit."""
    whole: dict[tuple[str, Limiter], dict[str, float]] = defaultdict(lambda: dict.fromkeys(UNITS, 0.0))
    for span in spans:
        for unit, held_ms in span.of_unit.items():
            whole[span.name, span.limiter][unit] += held_ms
    for (name, limiter), of_unit in whole.items():
        yield name, limiter, of_unit


WAITS = Sums(
    "topic_usage",
    (TOPIC, "broker", "span"),
    ("delay_ns", "delayed_publishes", "failed_publishes"),
    nonzero=("delay_ns", "failed_publishes"),
    made=(_SPAN,),
)
"""How long publishes had waited that were let in in a span, and how many failed."""


def publishes_waits(
    name_of: Mapping[str, str], of_topics: Sequence[HeldSpan], waits: pa.Table, waited: Mapping[str, float]
) -> Iterator[HeldTime]:
    """By what topics count for and limiter, for how long publishes waited, by unit.

    name_of: by topic its tenant, or itself. of_topics: `held_spans` of topics. waits: of the sums WAITS. waited: by
    topic, in all; each limiter has of it what waited in the spans in which it held the topic, in parts of that time. If
    none of a name's waited, for how long they were held.
    """
    waiting: dict[str, float] = defaultdict(float)
    by_topic: dict[str, list[HeldSpan]] = defaultdict(list)
    for span in of_topics:
        by_topic[span.name].append(span)
    for topic in by_topic:
        waiting[name_of[topic]] += waited.get(topic, 0)
    of_waits = _by_limiter(by_topic, waits)
    sums: dict[tuple[str, Limiter], dict[str, float]] = defaultdict(lambda: dict.fromkeys(UNITS, 0.0))
    for topic, spans in by_topic.items():
        of_units = {limiter: of_unit for _, limiter, of_unit in held_times(spans)}
        held_ms = {limiter: sum(of_unit.values()) for limiter, of_unit in of_units.items()}
        parts = of_waits.get(topic, held_ms)
        whole = sum(parts.values())
        weight = waited.get(topic, 0) / whole if waiting[name_of[topic]] and whole else 1.0
        for limiter, of_unit in of_units.items():
            of_limiter = weight * parts.get(limiter, 0) / (held_ms[limiter] or 1)
            for unit, unit_ms in of_unit.items():
                sums[name_of[topic], limiter][unit] += of_limiter * unit_ms
    for (name, limiter), of_unit in sums.items():
        yield name, limiter, of_unit


def _by_limiter(by_topic: Mapping[str, Sequence[HeldSpan]], waits: pa.Table) -> dict[str, dict[Limiter, float]]:
    """By topic and limiter, how long publishes waited while it held the topic; none of a topic if that is not known."""
    found: dict[str, dict[Limiter, float]] = defaultdict(lambda: defaultdict(float))

    @cache
    def holding(topic: str, broker: str) -> Mapping[int, Mapping[Limiter, float]]:
        """By span, for how long each limiter held the topic."""
        by_span: dict[int, dict[Limiter, float]] = defaultdict(lambda: defaultdict(float))
        for one in by_topic.get(topic, ()):
            for span in range(one.span, one.span + one.spans) if one.broker == broker else ():
                by_span[span][one.limiter] += sum(one.of_unit.values()) / one.spans
        return by_span

    for row in waits.to_pylist():
        for span, waited_s in _waited(row):
            held_ms = holding(row[TOPIC], row["broker"]).get(span, {})
            whole = sum(held_ms.values())
            for limiter, of_limiter in held_ms.items() if whole else ():
                found[row[TOPIC]][limiter] += waited_s * of_limiter / whole
    return found


def _waited(row: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """Spans in which the publishes of a row of WAITS waited, up to its own, and how long: each for their mean wait."""
    late, failed = row["delayed_publishes"] or 0, row["failed_publishes"] or 0
    late_s = (row["delay_ns"] or 0) / SECOND_NS
    for count, waited_s in ((late, late_s), (failed, float(failed * GIVEN_UP_S))):
        spans = 1 + int(1000 * waited_s / count // _SPAN_MS) if count else 0
        yield from ((row["span"] - ago, waited_s / spans) for ago in range(spans))
