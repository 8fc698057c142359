"""Which limiters held a tenant or topic, and which unit ran out: sums over the table `marks`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC
from headgate.quota.usage.topic_query import RAN_OUT, RAN_OUT_TOO
from headgate.quota.usage.topic_view import BYTES, MESSAGES, OWN, UNITS, Limiter, ran_out
from headgate.report.screen import plain
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
    limiter that comes next. units: that ran out of the limiter, by minute in which it marked anybody.
    """

    limiter: Limiter
    unit: str
    words: str
    details: str
    units: Mapping[str, Sequence[str]]


def blamed(of: str, marks: pa.Table, quota_of: QuotaOf) -> dict[str, Blamed]:
    """By tenant or topic. marks: sums MARKS."""
    by_name: dict[str, dict[tuple[Limiter, str], _Marks]] = defaultdict(lambda: defaultdict(_Marks))
    by_minute: dict[Limiter, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for row in marks.to_pylist():
        limiter = OWN if row["scope"] == "topic" else (row["scope"], row["limiter"])
        rate = f"{row['unit']}_per_s"
        by_name[row[of]][limiter, row["unit"]].add(row[ROWS], row[LOWEST + rate], row[rate], row["broker"])
        for unit in UNITS if row["too"] else (row["unit"],):
            by_minute[limiter][row["minute"]][unit] += row[ROWS]
    units = {
        limiter: {minute: ran_out(counts) for minute, counts in minutes.items()}
        for limiter, minutes in by_minute.items()
    }
    return {name: _worst(found, units, quota_of) for name, found in by_name.items()}


def _worst(
    found: dict[tuple[Limiter, str], _Marks], units: Mapping[Limiter, Mapping[str, Sequence[str]]], quota_of: QuotaOf
) -> Blamed:
    ranked = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))
    whole = sum(marks.count for marks in found.values())
    ((limiter, unit), marks), *others = ranked
    name, share = limiter_name(limiter), f"{_part(marks.count, whole)} of marks"
    quota = quota_of(limiter[1], unit) if limiter[0] == "group" else None
    details = f"{name} ({unit}{_rate(marks, quota)}{f', {share}' if others else ''}){_where(marks)}"
    if others:
        (other, its_unit), its = others[0]
        details += f", then {limiter_name(other)} ({its_unit}, {_part(its.count, whole)})"
    words = f"{name} ({unit}{f', {share}' if others else ''})"
    return Blamed(limiter, unit, words, details, units[limiter])


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
