"""Which limiters held a tenant or topic, and which unit ran out: sums over the table `marks`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.mark_reasons import unit_of
from headgate.arrow.topic_names import TENANT, TOPIC
from headgate.core.numbers import SECOND_MS
from headgate.quota.usage.excess import OWN, SHARED_SCOPES, UNITS, Limiter, limiter_of, ran_out, units_of
from headgate.quota.usage.limiter_rates import RATES, QuotaOf, Rows
from headgate.quota.usage.topic_query import RAN_OUT, RAN_OUT_TOO
from headgate.report.screen import plain
from headgate.report.throttling.fault import HeldBy
from headgate.report.throttling.held_times import HeldTime, steps_of_time
from headgate.report.throttling.spans import MINUTE
from headgate.tables.sums import LOWEST, ROWS, Made, Sums

_SHOWN_BROKERS = 3


def _too(marks: pa.Table) -> pa.ChunkedArray:
    """What RAN_OUT_TOO says."""
    of_messages, of_bytes = (pc.fill_null(pc.less_equal(marks[f"{unit}_balance"], 0), False) for unit in UNITS)
    return pc.if_else(pc.and_(of_messages, of_bytes), "both", "")


MARK_COUNTS = Sums(
    "marks",
    (TENANT, TOPIC, "broker", "scope", "limiter", "unit", "too", MINUTE.name),
    highest=RATES,
    lowest=RATES,
    where=(("action", ("mark",)),),
    made=(Made("unit", RAN_OUT, unit_of), Made("too", RAN_OUT_TOO, _too), MINUTE),
)


RAN_OUT_AT = Sums(
    "marks",
    ("broker", "scope", "limiter", "second_s", "unit", "too"),
    where=(("action", ("mark",)), ("scope", SHARED_SCOPES)),
    made=(
        Made("unit", RAN_OUT, unit_of),
        Made("too", RAN_OUT_TOO, _too),
        steps_of_time("second_s", SECOND_MS),
    ),
)


@dataclass
class _Marks:
    """Of one limiter in one unit. least, most: its rate in that unit, over brokers and time."""

    count: int = 0
    least: int | None = None
    most: int | None = None
    brokers: set[str] = field(default_factory=set)

    def add(self, count: int, least: int | None, most: int | None, broker: str | None) -> None:
        self.count += count
        if least is not None and most is not None:
            self.least = least if self.least is None else min(self.least, least)
            self.most = most if self.most is None else max(self.most, most)
        if broker is not None:
            self.brokers.add(broker)


@dataclass(frozen=True)
class Blamed:
    """A limiter that held a tenant or topic.

    words: its name, the units that ran out, of several each with its part of the time for which it held, and its part
    of the producers' waits if others held it, too. details: the same with the rates then, and the brokers.
    when: minutes with its marks, in words.
    """

    limiter: Limiter
    words: str
    details: str
    when: str
    held_by: HeldBy


@dataclass
class _Found:
    """Of one tenant or topic, by limiter. count: of its marks, at each of which one unit had run out, or both.

    units: how often each had, by minute. held_ms: for how long it held, by unit.
    """

    count: Counter[Limiter] = field(default_factory=Counter)
    marks: dict[Limiter, dict[str, _Marks]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(_Marks)))
    units: dict[Limiter, dict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )
    held_ms: dict[Limiter, dict[str, float]] = field(default_factory=dict)


def blamed(
    of: str, marks: Rows, held: Iterable[HeldTime], quota_of: QuotaOf, of_what: Callable[[str], str]
) -> dict[str, list[Blamed]]:
    """By tenant or topic, its limiters: those first that held it longest.

    marks: of the sums MARK_COUNTS. of_what: what the times in `held` are of a name, in words.
    """
    by_name: dict[str, _Found] = defaultdict(_Found)
    for row in marks:
        limiter, found = limiter_of(row), by_name[row[of]]
        found.count[limiter] += row[ROWS]
        for unit in units_of(row):
            rate = f"{unit}_per_s"
            found.marks[limiter][unit].add(row[ROWS], row[LOWEST + rate], row[rate], row["broker"])
            found.units[limiter][row["minute"]][unit] += row[ROWS]
    for name, limiter, of_unit in held:
        if name in by_name:
            by_name[name].held_ms[limiter] = of_unit
    return {name: list(_ranked(found, quota_of, of_what(name))) for name, found in by_name.items()}


def _ranked(found: _Found, quota_of: QuotaOf, of_what: str) -> Iterator[Blamed]:
    """Where no time is known marks count."""
    counts = found.count
    times = Counter({limiter: sum(found.held_ms.get(limiter, {}).values()) for limiter in counts})
    weights, of_what = (times, of_what) if times.total() else (counts, "marks")
    marked = frozenset(minute for minutes in found.units.values() for minute in minutes)
    for limiter in sorted(counts, key=lambda limiter: (-weights[limiter], -counts[limiter], limiter)):
        marks_of = found.marks[limiter]
        held_ms = {unit: held for unit, held in found.held_ms.get(limiter, {}).items() if held and unit in marks_of}
        of_unit = held_ms or {unit: float(marks.count) for unit, marks in marks_of.items()}
        ranked = sorted(of_unit, key=lambda unit: (-of_unit[unit], unit))
        by_unit = [(unit, marks_of[unit]) for unit in ranked]
        whole = sum(of_unit.values())
        parts = [f" {_part(of_unit[unit], whole)}" if len(by_unit) > 1 else "" for unit, _ in by_unit]
        share = f"; {_part(weights[limiter], weights.total())} of {of_what}" if len(counts) > 1 else ""
        quotas = [quota_of(limiter[1], unit) if limiter[0] == "group" else None for unit, _ in by_unit]
        each_where = len({frozenset(marks.brokers) for _, marks in by_unit}) > 1
        rates = [
            f"{unit}{part}{_rate(marks, quota)}{_where(marks) if each_where else ''}"
            for (unit, marks), part, quota in zip(by_unit, parts, quotas, strict=True)
        ]
        short = ", ".join(f"{unit}{part}" for (unit, _), part in zip(by_unit, parts, strict=True))
        units = {
            minute: [unit for unit in ran_out(counts) if unit in of_unit] or ran_out(counts)
            for minute, counts in found.units[limiter].items()
        }
        name = limiter_name(limiter)
        yield Blamed(
            limiter,
            f"{name} ({short}{share})",
            f"{name} ({'; '.join(rates)}{share}){'' if each_where else _where(by_unit[0][1])}",
            _span(units),
            HeldBy(units, marked, ranked[0]),
        )


def _span(minutes: Iterable[str]) -> str:
    """From the first to the last, in words."""
    known = sorted(minutes)
    first, last = (minute[-len("HH:MM") :] for minute in (known[0], known[-1]))
    return f"in the minute {first}" if first == last else f"in the minutes {first} to {last}"


def _part(count: float, whole: float) -> str:
    """In percent, neither 0 nor 100 unless it is none or all."""
    percent = f"{count / whole:.0%}"
    return percent if count == whole else {"0%": "under 1%", "100%": "over 99%"}.get(percent, percent)


def limiter_name(limiter: Limiter) -> str:
    """In words. The limits of single topics are one."""
    return "topic limit" if limiter == OWN else plain(" ".join(limiter))


def _rate(marks: _Marks, quota: int | None) -> str:
    """quota: of the whole group, of which a broker has a share."""
    if marks.least is None or marks.most is None:
        return ""
    rates = f"{marks.least:,}" if marks.least == marks.most else f"{marks.least:,} to {marks.most:,}"
    return f", {rates}/s" if quota in {None, marks.least} else f", {rates} of {quota:,}/s"


def _where(marks: _Marks) -> str:
    brokers = sorted(marks.brokers)
    if not brokers:
        return ""
    more = len(brokers) - _SHOWN_BROKERS
    shown = ", ".join(map(plain, brokers[:_SHOWN_BROKERS]))
    return f" on {shown}{f' and {more:,} more brokers' if more > 0 else ''}"
