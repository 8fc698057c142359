"""Who was throttled, when, by which limiter and by whose fault: sums over the tables `topic_usage` and `marks`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC
from headgate.conf.resource_groups import ResourceGroups
from headgate.quota.usage.excess import HELD_BY_ANY, UNITS, Limiter, ran_out_by
from headgate.quota.usage.limiter_rates import QuotaOf, Rows, blocked_of, own_rates_of, rates_of, shares_of
from headgate.report.throttling.fault import NOBODY, THROTTLED_BY, Fault, Faults, by_second
from headgate.report.throttling.held_times import (
    HELD_BY,
    OUT_UNTIL,
    WAITS,
    held_spans,
    held_times,
    parts_of,
    publishes_waits,
)
from headgate.report.throttling.limiters import (
    MARK_COUNTS,
    RAN_OUT_AT,
    Blamed,
    blamed,
    limiter_name,
)
from headgate.report.throttling.spans import when_held
from headgate.report.throttling.waits import waited_s
from headgate.tables.sums import LOWEST, Summed, Sums

_TIME = "event_time"
_OF_OFFERED = ("delayed_publishes", "failed_publishes", "delay_ns", "admitted_publishes")
_COUNTS = ("publishes", "throttled_publishes", "throttled_ns", *_OF_OFFERED)
SHOWN_OTHERS = 2
"""Limiters beside that which held somebody longest."""

_OF_PRODUCERS, _OF_PUBLISHES = "the producers' waits", "the publishes' waits"
_KEY = (TENANT, TOPIC, "broker")
USAGE = Sums("topic_usage", _KEY, (*_COUNTS, *THROTTLED_BY, *UNITS), (_TIME,), (_TIME,))
HELD = Sums("topic_usage", _KEY, highest=(_TIME,), lowest=(_TIME,), nonzero=HELD_BY_ANY)


@dataclass(frozen=True)
class Throttled:
    """A tenant or topic.

    throttled_ns: of all its topics together. blame: the limiter that held it longest and the unit that ran out, and its
    part of that time; details: the same with rates and brokers.
    delayed, failed: publishes that were let in later, or given up; delay_ns: how much later, summed over the delayed;
    admitted: publishes that were let in, at once or later. None in admitted traffic.
    topics: how many of its topics were held, or failed. first, last: the seconds in which that began and ended.
    Of a tenant alone: spans: the same of each time, worst: see spans.When; fault: who filled that limiter; also: the
    same of the limiters that come next, in words; is_victim: of others, under each of them.
    """

    name: str
    publishes: int
    throttled_publishes: int
    throttled_ns: int
    blame: str
    delayed: int | None = None
    failed: int | None = None
    delay_ns: int | None = None
    admitted: int | None = None
    topics: int = field(default=0, compare=False)
    first: datetime | None = field(default=None, compare=False)
    last: datetime | None = field(default=None, compare=False)
    worst: datetime | None = field(default=None, compare=False)
    spans: tuple[tuple[datetime, datetime], ...] = field(default=(), compare=False)
    details: str = field(default="", compare=False)
    fault: Fault = field(default=NOBODY, compare=False)
    also: tuple[str, ...] = field(default=(), compare=False)
    is_victim: bool = field(default=False, compare=False)

    @property
    def lost(self) -> int:
        """Publishes of offered traffic that were not let in at once: later, never, or not by the end."""
        return (self.failed or 0) + (self.delayed or 0) + self.waiting

    @property
    def waiting(self) -> int:
        """Publishes of offered traffic that were neither let in nor given up by the end."""
        return 0 if self.admitted is None else self.publishes - self.admitted - (self.failed or 0)

    @property
    def is_held(self) -> bool:
        """Whether any limit did anything to it."""
        return bool(self.throttled_publishes or self.throttled_ns or self.delayed or self.failed or self.waiting)


@dataclass(frozen=True)
class Throttling:
    """What came of the publishes of a run. tenants: all of them; topics: those that were held. Both: most failed
    publishes first, then most throttled ones. first, last: seconds with publishes, None without any.
    without_usual: limiters that were overloaded from the start, so that nothing is known of what is usual, in words.
    """

    tenants: list[Throttled]
    topics: list[Throttled]
    first: datetime | None = None
    last: datetime | None = None
    without_usual: tuple[str, ...] = ()

    @property
    def publishes(self) -> int:
        return sum(row.publishes for row in self.tenants)

    @property
    def seconds(self) -> int:
        """From the first to the last, both included."""
        if self.first is None or self.last is None:
            return 0
        return int((self.last - self.first).total_seconds()) + 1


def throttling(tables: Summed, groups: ResourceGroups, *, has_all_brokers: bool = True) -> Throttling:
    """Of all rows of the tables. has_all_brokers: else quotas are of brokers that they do not have, too."""
    usage, held = tables.totals(USAGE), tables.totals(HELD)
    usage = usage.append_column("waited_s", waited_s(usage))
    marks = tables.totals(MARK_COUNTS)
    marks = marks.filter(pc.is_valid(marks[TOPIC])).to_pylist()
    rates = rates_of(marks)

    def rate_of(limiter: Limiter, unit: str) -> float:
        quota = groups.publish_quota(limiter[1], unit) if has_all_brokers and limiter[0] == "group" else None
        return quota or rates.get((limiter, unit), 0)

    seconds = tables.totals(by_second(groups))
    ran_out = ran_out_by(tables.totals(RAN_OUT_AT).to_pylist())
    faults = Faults(
        *(seconds, usage, groups, rate_of, ran_out),
        shares=shares_of(marks, groups.publish_quota),
        blocked=blocked_of(groups.groups, groups.publish_quota),
        own_rates=own_rates_of(marks),
        has_all_brokers=has_all_brokers,
    )
    when = when_held(seconds)
    last = pc.max(usage[_TIME]).as_py()
    end = None if last is None else last + timedelta(seconds=1)
    limiters = _limiters(tables, usage, marks, end, groups.publish_quota)
    tenants = _ranked(TENANT, usage, held, limiters[TENANT], faults)
    usage_held = usage.filter(pc.is_in(usage[TOPIC], held[TOPIC].combine_chunks()))
    topics = _ranked(TOPIC, usage_held, held, limiters[TOPIC], faults)
    return Throttling(
        [
            replace(row, spans=when[row.name].spans, worst=when[row.name].worst) if row.name in when else row
            for row in tenants
        ],
        topics,
        pc.min(usage[LOWEST + _TIME]).as_py(),
        last,
        tuple(sorted(map(limiter_name, faults.without_usual))),
    )


def _limiters(
    tables: Summed, usage: pa.Table, marks: Rows, end: datetime | None, quota_of: QuotaOf
) -> dict[str, dict[str, list[Blamed]]]:
    """Of tenants and of topics: by how long publishes waited, or where none did, as in admitted traffic, by how long
    producers were held.
    """
    held, parts = tables.totals(HELD_BY), parts_of(tables.totals(OUT_UNTIL))
    if usage["admitted_publishes"].null_count:
        of_held = {by: held_times(held_spans(by, held, parts, end)) for by in (TENANT, TOPIC)}
        return {by: blamed(by, marks, times, quota_of, lambda _: _OF_PRODUCERS) for by, times in of_held.items()}
    spans, waits = list(held_spans(TOPIC, held, parts, end)), tables.totals(WAITS)
    topics = held[TOPIC].to_pylist()
    waited = {by: dict(_grouped(usage, [by], [("waited_s", "sum")])) for by in (TENANT, TOPIC)}

    def of_names(by: str) -> dict[str, list[Blamed]]:
        name_of = dict(zip(topics, held[by].to_pylist(), strict=True))
        times = publishes_waits(name_of, spans, waits, waited[TOPIC])
        return blamed(by, marks, times, quota_of, lambda name: _OF_PUBLISHES if waited[by].get(name) else _OF_PRODUCERS)

    return {by: of_names(by) for by in (TENANT, TOPIC)}


def _ranked(
    of: str, usage: pa.Table, held: pa.Table, to_blame: Mapping[str, Sequence[Blamed]], faults: Faults
) -> list[Throttled]:
    """A row for each tenant or topic of `usage`."""
    counts = _grouped(usage, [of], [(name, "sum") for name in _COUNTS])
    times = _grouped(held, [of], [(LOWEST + _TIME, "min"), (_TIME, "max"), (TOPIC, "count_distinct")])
    when = {name: (topics, first, last) for name, first, last, topics in times}
    rows = []
    for name, publishes, throttled, throttled_ns, delayed, failed, delay_ns, admitted in counts:
        by = to_blame.get(name, ())[: 1 + SHOWN_OTHERS]
        found = [(one, NOBODY if of == TOPIC else faults.fault(name, one.limiter, one.held_by)) for one in by]
        topics, first, last = when.get(name, (0, None, None))
        rows.append(
            Throttled(
                name,
                publishes or 0,
                throttled or 0,
                throttled_ns or 0,
                by[0].words if by else "none",
                delayed,
                failed,
                delay_ns,
                admitted,
                topics=topics,
                first=first,
                last=last,
                details=_details(by),
                fault=found[0][1] if found else NOBODY,
                also=tuple(_also(*one) for one in found[1:]),
                is_victim=bool(found) and all(fault.is_victim for _, fault in found),
            )
        )
    return sorted(rows, key=lambda row: (-(row.failed or 0), -row.throttled_publishes, -row.throttled_ns, row.name))


def _details(by: Sequence[Blamed]) -> str:
    """Of the first; of several with the minutes."""
    return f"{by[0].details}{f', {by[0].when}' if len(by) > 1 else ''}" if by else ""


def _also(limiter: Blamed, fault: Fault) -> str:
    return f"by {limiter.details}, {limiter.when}{f'; {fault.words}' if fault.words else ''}"


def _grouped(rows: pa.Table, by: list[str], aggregates: list[tuple[str, str]]) -> Iterator[tuple[Any, ...]]:
    """A tuple for each combination of values in `by`: these, then the aggregates."""
    columns = rows.group_by(by, use_threads=False).aggregate(aggregates).to_pydict().values()
    return zip(*columns, strict=True)
