"""Whose fault it is that a limiter holds somebody: who took how much of what it let in, minute by minute."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC, tenant_of
from headgate.quota.usage.topic_view import OWN, Limiter, is_small, own_unit
from headgate.report.screen import plain

_Parts = Mapping[str, float]
"""Of what a limiter let in, in one unit; by name."""
_SHOWN_SHARERS = 3
_SHOWN_PHASES = 3


@dataclass(frozen=True)
class Fault:
    """words: who fills a limiter; empty where only one can, or the tables do not tell. is_victim: of somebody else."""

    words: str = ""
    is_victim: bool = False


NOBODY = Fault()


class _Verdict(NamedTuple):
    """Who fills a limiter: the sharers of the fault, largest first, and whether the tenant is none of them."""

    sharers: tuple[str, ...]
    is_victim: bool


class _Minute(NamedTuple):
    """unit: that ran out. took: how much of it each tenant did."""

    unit: str
    took: Mapping[str, int]


class _Phase(NamedTuple):
    """span: its time, in words."""

    span: str
    unit: str
    parts: _Parts


class Loads:
    """What limiters let in, by tenant and topic, of those that they held and of those that they did not.

    taken, held: sums TAKEN and HELD of `topic_usage`. group_of: the resource group that a topic is charged to.
    """

    def __init__(self, taken: pa.Table, held: pa.Table, group_of: Callable[[str], str | None]) -> None:
        self._taken, self._held, self._group_of = taken, held, group_of
        self._taken_under = cache(lambda limiter: self._under(limiter, self._taken))
        self._held_under = cache(lambda limiter: self._under(limiter, self._held))
        self._minutes = cache(self._minutes_of)

    def fault(self, tenant: str, limiter: Limiter, units: Mapping[str, Sequence[str]]) -> Fault:
        """Who takes most of the limiter that holds a tenant, in the minutes in which it is held.

        Who takes less than half of what the largest takes is a victim; the others share the fault. Where that or the
        unit changes from minute to minute, each phase is told by itself. units: that ran out, by minute with marks; in
        others they are as before. Where both did, the one counts in which the tenant has the larger part.
        """
        if limiter == OWN or not units:
            return NOBODY
        minutes: dict[str, _Minute] = {}
        ran_out = units[min(units)]
        held = self._held_under(limiter)
        for minute in sorted(set(held.filter(pc.equal(held[TENANT], tenant))["minute"].to_pylist())):
            ran_out = units.get(minute, ran_out)
            took = {unit: self._minutes(limiter, unit).get(minute, Counter()) for unit in ran_out}
            unit = own_unit(tenant, took)
            if unit is not None and tenant in took[unit]:
                minutes[minute] = _Minute(unit, took[unit])
        if not minutes:
            return NOBODY
        phases = list(_phases(tenant, minutes))
        is_victim = all(_verdict(tenant, phase.parts).is_victim for phase in phases)
        if len(phases) == 1:
            topics = self._topics(limiter, phases[0].unit, minutes)
            return Fault(_at_length(tenant, phases[0].parts, topics, phases[0].unit), is_victim)
        more = len(phases) - _SHOWN_PHASES
        shown = "; ".join(f"{phase.span} {_briefly(tenant, phase)}" for phase in phases[:_SHOWN_PHASES])
        return Fault(f"by minute: {shown}{f'; and {more:,} more changes' if more > 0 else ''}", is_victim)

    def _minutes_of(self, limiter: Limiter, unit: str) -> dict[str, Counter[str]]:
        """What each tenant took of a limiter, by minute."""
        minutes: dict[str, Counter[str]] = defaultdict(Counter)
        for minute, tenant, amount in self._sums(self._taken_under(limiter), ["minute", TENANT], unit):
            minutes[minute][tenant] = amount
        return minutes

    def _topics(self, limiter: Limiter, unit: str, minutes: Iterable[str]) -> _Parts:
        rows = self._taken_under(limiter)
        rows = rows.filter(pc.is_in(rows["minute"], pa.array(minutes, pa.string())))
        return _parts(dict(self._sums(rows, [TOPIC], unit)))

    @staticmethod
    def _sums(rows: pa.Table, by: list[str], unit: str) -> Iterator[tuple[Any, ...]]:
        """What was let in: in offered traffic the admitted part, else all. Groups without any are left out."""
        took = pc.coalesce(rows[f"admitted_{unit}"], rows[unit])
        sums = rows.append_column("took", took).group_by(by, use_threads=False).aggregate([("took", "sum")])
        return (row for row in zip(*sums.to_pydict().values(), strict=True) if row[-1])

    def _under(self, limiter: Limiter, rows: pa.Table) -> pa.Table:
        """The rows of topics that a limiter limits."""
        scope, wanted = limiter
        column = self._groups(rows) if scope == "group" else rows[scope]
        return rows.filter(pc.fill_null(pc.equal(column, wanted), False))

    def _groups(self, rows: pa.Table) -> pa.ChunkedArray:
        """The group of each row's topic."""
        topics = rows["topic"].combine_chunks().dictionary_encode()
        groups = pa.array(map(self._group_of, topics.dictionary.to_pylist()), pa.string())
        return groups.take(topics.indices)


def _verdict(tenant: str, parts: _Parts) -> _Verdict:
    most = max(parts.values())
    sharers = tuple(name for name, part in _ranked(parts) if not is_small(part, most))
    return _Verdict(sharers, tenant not in sharers)


def _phases(tenant: str, minutes: Mapping[str, _Minute]) -> Iterator[_Phase]:
    """A phase for each run of minutes in which the same tenants share the fault, in the same unit."""

    def key(one: tuple[str, _Minute]) -> tuple[str, frozenset[str]]:
        return one[1].unit, frozenset(_verdict(tenant, _parts(one[1].took)).sharers)

    for (unit, _), run in groupby(minutes.items(), key=key):
        of_run = dict(run)
        first, last = (minute(of_run)[-len("HH:MM") :] for minute in (min, max))
        span = first if first == last else f"{first} to {last}"
        yield _Phase(span, unit, _parts(*(one.took for one in of_run.values())))


def _briefly(tenant: str, phase: _Phase) -> str:
    parts, of_all = phase.parts, f" of the {phase.unit}"
    sharers, is_victim = _verdict(tenant, parts)
    listed = _listed([(name, parts[name]) for name in sharers])
    if is_victim:
        return f"victim of {listed}{of_all} (it has {parts[tenant]:.0%})"
    return f"its own fault ({parts[tenant]:.0%}{of_all})" if len(sharers) == 1 else f"shared fault of {listed}{of_all}"


def _at_length(tenant: str, parts: _Parts, topics: _Parts, unit: str) -> str:
    """What is said where it is the same all the time. topics: parts of all."""
    sharers, is_victim = _verdict(tenant, parts)
    largest = sharers[0]
    listed = _listed([(name, parts[name]) for name in sharers])
    topic, of_topic = _ranked({name: part for name, part in topics.items() if tenant_of(name) == largest})[0]
    whole = f"{parts[largest]:.0%} of the {unit}, most of them by {plain(topic)} ({of_topic:.0%})"
    if is_victim:
        whose = f"fault of {plain(largest)}: {whole}" if len(sharers) == 1 else f"fault of {listed} of all {unit}"
        return f"{whose}; {plain(tenant)} is a victim with {parts[tenant]:.0%}"
    if len(sharers) == 1:
        return f"its own fault: {whole}"
    own = f"; {plain(tenant)} {parts[tenant]:.0%}" if len(sharers) > _SHOWN_SHARERS else ""
    return f"shared fault of {listed} of all {unit}{own}"


def _listed(sharers: Sequence[tuple[str, float]]) -> str:
    shown = [f"{plain(name)} {part:.0%}" for name, part in sharers[:_SHOWN_SHARERS]]
    more = len(sharers) - _SHOWN_SHARERS
    if more > 0:
        return f"{', '.join(shown)} and {more:,} more tenants"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _parts(*sent: Mapping[str, int]) -> _Parts:
    """Of all that was sent. sent: amounts by name."""
    amounts: Counter[str] = Counter()
    for one in sent:
        amounts.update(one)
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items() if amount}


def _ranked(parts: _Parts) -> list[tuple[str, float]]:
    return sorted(parts.items(), key=lambda item: (-item[1], item[0]))
