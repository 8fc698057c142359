"""Whose fault it is that a limiter holds somebody: who exceeds a fair share of it, minute by minute."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import NAMESPACE, TENANT, TOPIC
from headgate.conf.resource_groups import ResourceGroups
from headgate.quota.usage.excess import OWN, TRAFFIC, UNITS, Contention, Limiter, Shared, Traffic
from headgate.report.screen import counted, plain
from headgate.report.sharers import SHOWN_SHARERS, listed
from headgate.report.throttling.spans import minute_of
from headgate.tables.sums import Sums

_SHOWN_PHASES = 5
_SECOND_US = 1_000_000
WITHIN = "nobody's fault: it fits into the quota, but the shares of brokers had not followed the load yet"


def by_second(groups: ResourceGroups) -> Sums:
    """Sums of topic_usage by second and tenant, and by namespace or, where topics are attached to groups, by topic."""
    charged = TOPIC if groups.topics else NAMESPACE
    amounts = (f"{what}{unit}" for unit in UNITS for what in ("", "admitted_", "failed_"))
    counts = ("throttled_by_broker", "throttled_by_group", "throttled_publishes", "failed_publishes")
    by = (TENANT, charged, "broker", "event_time")
    return Sums("topic_usage", by, (*amounts, *counts), highest=("throttled_ns",))


@dataclass(frozen=True)
class Fault:
    """words: who fills a limiter; empty where only one can, or the tables do not tell. is_victim: of somebody else."""

    words: str = ""
    is_victim: bool = False


NOBODY = Fault()


class HeldBy(NamedTuple):
    """How a limiter marked a tenant.

    units: that ran out, most often first, by minute. marked: minutes with marks of any limiter; in a minute without,
    what held it before still does. is_share: the limiter has a broker's share of a quota, not all of it.
    """

    units: Mapping[str, Iterable[str]]
    marked: frozenset[str]
    is_share: bool


class _Phase(NamedTuple):
    """span: its time, in words. shared: over all of it, by unit."""

    span: str
    shared: Sequence[Shared]


class Faults:
    """Who is at fault where a limiter holds a tenant.

    seconds: sums `by_second`. usage: sums of topic_usage with messages and bytes by tenant, topic and broker. rate_of:
    of a limiter in a unit, over all brokers of the tables (Contention).
    """

    def __init__(
        self, seconds: pa.Table, usage: pa.Table, groups: ResourceGroups, rate_of: Callable[[Limiter, str], float]
    ) -> None:
        self._usage, self._groups = usage, groups
        self._contention = Contention(Traffic(_traffic(seconds, groups)), rate_of)
        self._largest_topic = cache(self._largest_topic_of)

    def fault(self, tenant: str, limiter: Limiter, held_by: HeldBy) -> Fault:
        """Who exceeds a fair share of a limiter while it holds a tenant.

        Who has less than a tenth of the largest part of the excess is a victim; the others share the fault. Where that
        or the unit changes from minute to minute, each phase is told by itself.
        """
        if limiter == OWN:
            return NOBODY
        minutes: dict[str, Sequence[Shared]] = {}
        ran_out: Iterable[str] = ()
        for minute, seconds in _by_minute(self._contention.held_seconds(tenant, limiter)):
            ran_out = held_by.units.get(minute, () if minute in held_by.marked else ran_out)
            if shared := self._contention.shared(tenant, limiter, ran_out, seconds):
                minutes[minute] = shared
        if held_by.is_share:
            over = {minute: shared for minute, shared in minutes.items() if not shared[0].is_within}
            if minutes and not over:
                return Fault(WITHIN)
            minutes = over
        if not minutes:
            return NOBODY
        phases = list(_phases(minutes))
        is_victim = all(shared.is_victim(tenant) for phase in phases for shared in phase.shared)
        if len(phases) == len(phases[0].shared) == 1:
            return Fault(self._at_length(tenant, limiter, phases[0].shared[0]), is_victim)
        more = len(phases) - _SHOWN_PHASES
        if len(phases) == 1:
            return Fault(_briefly(tenant, phases[0].shared), is_victim)
        shown = "; ".join(f"{phase.span} {_briefly(tenant, phase.shared)}" for phase in phases[:_SHOWN_PHASES])
        others = f"; and {counted(more, 'more change')}" if more > 0 else ""
        return Fault(f"by minute: {shown}{others}", is_victim)

    def _at_length(self, tenant: str, limiter: Limiter, shared: Shared) -> str:
        """What is said where it is the same all the time."""
        sharers, largest, unit = shared.sharers, shared.largest, shared.unit
        fault = listed(shared)
        topic, part = self._largest_topic(largest, limiter, unit)
        of_topic = f"its largest topic is {plain(topic)} ({part:.0%} of its {unit})"
        whole = f"{shared.part(largest):.0%} of the excess {unit}; {of_topic}"
        if shared.is_victim(tenant):
            of_excess = f"; {plain(tenant)} is a victim"
            if len(sharers) == 1:
                return f"fault of {plain(largest)}: {whole}{of_excess}"
            return f"fault of {fault} of the excess {unit}{of_excess}"
        if len(sharers) == 1:
            return f"its own fault: {whole}"
        own = f"; {plain(tenant)} {shared.part(tenant):.0%}" if len(sharers) > SHOWN_SHARERS else ""
        return f"shared fault of {fault} of the excess {unit}{own}"

    def _largest_topic_of(self, tenant: str, limiter: Limiter, unit: str) -> tuple[str, float]:
        """Of what a tenant sent under a limiter, and its part."""
        rows = self._usage.filter(pc.fill_null(pc.equal(self._usage[TENANT], tenant), False))
        scope, name = limiter
        amounts: Counter[str] = Counter()
        for topic, broker, amount in zip(
            *(rows[column].to_pylist() for column in (TOPIC, "broker", unit)), strict=True
        ):
            if name == (broker if scope == "broker" else self._groups.group_of(topic)):
                amounts[topic] += amount or 0
        topic = min(amounts, key=lambda one: (-amounts[one], one))
        return topic, amounts[topic] / max(1, amounts.total())


def _traffic(seconds: pa.Table, groups: ResourceGroups) -> pa.Table:
    """TRAFFIC of sums `by_second`."""
    charged = seconds.column_names[1]
    names = seconds[charged].combine_chunks().dictionary_encode()
    topics = (
        name if charged == TOPIC or name is None else f"persistent://{name}/-" for name in names.dictionary.to_pylist()
    )
    of_group = pa.array((None if topic is None else groups.group_of(topic) for topic in topics), pa.string())
    held = [pc.fill_null(seconds[name], 0) for name in ("throttled_publishes", "failed_publishes", "throttled_ns")]
    columns = {
        "second_s": pc.divide(pc.cast(seconds["event_time"], pa.int64()), _SECOND_US),
        "broker": seconds["broker"],
        "group": of_group.take(names.indices),
        "name": seconds[TENANT],
        **{unit: seconds[unit] for unit in UNITS},
        **{f"done_{unit}": pc.add(seconds[f"admitted_{unit}"], seconds[f"failed_{unit}"]) for unit in UNITS},
        **{f"by_{scope}": pc.fill_null(seconds[f"throttled_by_{scope}"], 0) for scope in ("broker", "group")},
        "held": pc.cast(pc.greater(pc.add(pc.add(held[0], held[1]), held[2]), 0), pa.int64()),
    }
    return pa.table(columns, TRAFFIC)


def _by_minute(seconds: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    return ((minute, list(of_minute)) for minute, of_minute in groupby(seconds, key=_minute))


def _minute(second_s: int) -> str:
    return minute_of(datetime.fromtimestamp(second_s, UTC))


def _phases(minutes: Mapping[str, Sequence[Shared]]) -> Iterator[_Phase]:
    """A phase for each run of minutes in which the same tenants share the fault, in the same units."""

    def key(one: tuple[str, Sequence[Shared]]) -> frozenset[tuple[str, frozenset[str]]]:
        return frozenset((shared.unit, frozenset(shared.sharers)) for shared in one[1])

    for _, run in groupby(minutes.items(), key=key):
        of_run = dict(run)
        units = [shared.unit for shared in of_run[min(of_run)]]
        together = [
            Shared.together(shared for of_minute in of_run.values() for shared in of_minute if shared.unit == unit)
            for unit in units
        ]
        yield _Phase(span_of(of_run), together)


def span_of(minutes: Iterable[str]) -> str:
    """From the first to the last, in words."""
    known = sorted(minutes)
    first, last = (minute[-len("HH:MM") :] for minute in (known[0], known[-1]))
    return first if first == last else f"{first} to {last}"


def _briefly(tenant: str, by_unit: Sequence[Shared]) -> str:
    """Where it is at fault comes first."""
    return ", and ".join(_of_unit(tenant, shared) for shared in by_unit)


def _of_unit(tenant: str, shared: Shared) -> str:
    excess = f"of the excess {shared.unit}"
    if shared.is_victim(tenant):
        return f"victim of {listed(shared)} {excess}"
    if len(shared.sharers) == 1:
        return f"its own fault ({shared.part(tenant):.0%} {excess})"
    return f"shared fault of {listed(shared)} {excess}"
