"""Which limiters held a tenant or topic, and which unit ran out: sums over the table `marks`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC
from headgate.quota.usage.excess import BYTES, MESSAGES, OWN, UNITS, Limiter, ran_out
from headgate.quota.usage.topic_query import RAN_OUT, RAN_OUT_TOO
from headgate.report.screen import plain
from headgate.report.throttling.fault import HeldBy
from headgate.report.throttling.spans import MINUTE
from headgate.tables.sums import LOWEST, ROWS, Made, Sums

_RATES = tuple(f"{unit}_per_s" for unit in UNITS)
_SHOWN_BROKERS = 3
QuotaOf = Callable[[str, str], int | None]
"""The quota per second of a group in a unit; None: it has none, or it is not known."""


def _unit(marks: pa.Table) -> pa.ChunkedArray:
    """What RAN_OUT says."""
    (messages, messages_per_s), (bytes_, bytes_per_s) = (
        (marks[f"{unit}_balance"].cast(pa.float64()), marks[f"{unit}_per_s"]) for unit in UNITS
    )
    bytes_later = pc.less(pc.multiply(bytes_, messages_per_s), pc.multiply(messages, bytes_per_s))
    alone_or_later = pc.or_(pc.fill_null(pc.greater(messages, 0), True), pc.fill_null(bytes_later, False))
    return pc.if_else(pc.and_(pc.fill_null(pc.less_equal(bytes_, 0), False), alone_or_later), BYTES, MESSAGES)


def _too(marks: pa.Table) -> pa.ChunkedArray:
    """What RAN_OUT_TOO says."""
    of_messages, of_bytes = (pc.fill_null(pc.less_equal(marks[f"{unit}_balance"], 0), False) for unit in UNITS)
    return pc.if_else(pc.and_(of_messages, of_bytes), "both", "")


MARKS = Sums(
    "marks",
    (TENANT, TOPIC, "broker", "scope", "limiter", "unit", "too", MINUTE.name),
    highest=_RATES,
    lowest=_RATES,
    where=(("action", ("mark",)),),
    made=(Made("unit", RAN_OUT, _unit), Made("too", RAN_OUT_TOO, _too), MINUTE),
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
    """The limiter with most marks of a tenant or topic, and the unit that ran out most often where that held it.

    words: both, and their share of the marks if there are others. details: with the rates then, the brokers, and the
    limiter that comes next.
    """

    limiter: Limiter
    words: str
    details: str
    held_by: HeldBy


@dataclass
class _Found:
    """Marks of one tenant or topic. units: how often each ran out, by limiter and minute."""

    marks: dict[tuple[Limiter, str], _Marks] = field(default_factory=lambda: defaultdict(_Marks))
    units: dict[Limiter, dict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )


def blamed(of: str, marks: pa.Table, quota_of: QuotaOf) -> dict[str, Blamed]:
    """By tenant or topic. marks: sums MARKS."""
    by_name: dict[str, _Found] = defaultdict(_Found)
    for row in marks.to_pylist():
        limiter, found = _limiter(row), by_name[row[of]]
        rate = f"{row['unit']}_per_s"
        found.marks[limiter, row["unit"]].add(row[ROWS], row[LOWEST + rate], row[rate], row["broker"])
        for unit in UNITS if row["too"] else (row["unit"],):
            found.units[limiter][row["minute"]][unit] += row[ROWS]
    return {name: _worst(found, quota_of) for name, found in by_name.items()}


def rates_of(marks: pa.Table) -> dict[tuple[Limiter, str], int]:
    """The highest rate that a limiter had on each broker in a unit, summed over brokers. marks: sums MARKS."""
    highest: dict[tuple[Limiter, str], dict[str, int]] = defaultdict(dict)
    for row in marks.to_pylist():
        for unit in UNITS:
            of_brokers = highest[_limiter(row), unit]
            of_brokers[row["broker"]] = max(of_brokers.get(row["broker"], 0), row[f"{unit}_per_s"] or 0)
    return {key: sum(of_brokers.values()) for key, of_brokers in highest.items()}


def _limiter(row: Mapping[str, Any]) -> Limiter:
    return OWN if row["scope"] == "topic" else (row["scope"], row["limiter"])


def _worst(found: _Found, quota_of: QuotaOf) -> Blamed:
    """The limiter with most marks, whatever ran out of it; then its unit."""
    of_limiter: Counter[Limiter] = Counter()
    for (limiter, _), marks in found.marks.items():
        of_limiter[limiter] += marks.count
    ranked = sorted(found.marks.items(), key=lambda item: (-of_limiter[item[0][0]], -item[1].count, item[0]))
    whole = of_limiter.total()
    ((limiter, unit), marks), *others = ranked
    name, share = limiter_name(limiter), f"{_part(marks.count, whole)} of marks"
    quota = quota_of(limiter[1], unit) if limiter[0] == "group" else None
    details = f"{name} ({unit}{_rate(marks, quota)}{f', {share}' if others else ''}){_where(marks)}"
    if others:
        (other, its_unit), its = others[0]
        details += f", then {limiter_name(other)} ({its_unit}, {_part(its.count, whole)})"
    units = {minute: ran_out(counts) for minute, counts in found.units[limiter].items()}
    marked = frozenset(minute for minutes in found.units.values() for minute in minutes)
    is_share = quota is not None and marks.least is not None and marks.least < quota
    return Blamed(limiter, f"{name} ({unit}{f', {share}' if others else ''})", details, HeldBy(units, marked, is_share))


def _part(count: int, whole: int) -> str:
    """In percent, neither 0 nor 100 where others have some."""
    percent = f"{count / whole:.0%}"
    return {"0%": "under 1%", "100%": "over 99%"}.get(percent, percent)


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
