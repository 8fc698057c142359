"""Whose fault it is that a limiter holds somebody: who has how much of what came to it, minute by minute."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC, tenant_of
from headgate.quota.usage.topic_view import OWN, Limiter, is_small
from headgate.report.screen import plain
from headgate.tables.sums import Made

_Parts = Mapping[str, float]
"""Of what came to a limiter, in one unit; by name."""
_SHOWN_SHARERS = 3
_SHOWN_PHASES = 3
_FORMAT = "%Y-%m-%dT%H:%M"
MINUTE = Made("minute", f"to_char(event_time, '{_FORMAT}')", lambda rows: pc.strftime(rows["event_time"], _FORMAT))
"""In which minute a row of topic_usage is."""


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


class Loads:
    """What came to limiters, by tenant and topic.

    held: sums of `topic_usage` by tenant, topic, broker and MINUTE, of the rows in which a limit held the topic.
    group_of: the resource group that a topic is charged to.
    """

    def __init__(self, held: pa.Table, group_of: Callable[[str], str | None]) -> None:
        self._held, self._group_of = held, group_of
        self._minutes = cache(self._minutes_of)

    def fault(self, tenant: str, limiter: Limiter, unit: str) -> Fault:
        """Who fills the limiter that holds a tenant, in the minutes in which it is held. unit: that ran out.

        Who sent less than half of what the largest sent is a victim; the others share the fault. Where the sharers
        change from minute to minute, each phase is told by itself.
        """
        if limiter == OWN:
            return NOBODY
        minutes = {minute: sent for minute, sent in self._minutes(limiter, unit).items() if tenant in sent}
        if not minutes:
            return NOBODY
        parts = _parts(*minutes.values())
        phases = list(_phases(tenant, minutes))
        is_victim = _verdict(tenant, parts).is_victim
        if len(phases) == 1:
            return Fault(_at_length(tenant, parts, self._topics(limiter, unit, minutes), unit), is_victim)
        more = len(phases) - _SHOWN_PHASES
        shown = "; ".join(f"{span} {_briefly(tenant, of_phase)}" for span, of_phase in phases[:_SHOWN_PHASES])
        changes = f"; and {more:,} more changes" if more > 0 else ""
        return Fault(f"by minute, of all {unit}: {shown}{changes}", is_victim)

    def _minutes_of(self, limiter: Limiter, unit: str) -> dict[str, Counter[str]]:
        """What each tenant sent under a limiter, by minute in order."""
        sums = self._under(limiter).group_by(["minute", TENANT], use_threads=False).aggregate([(unit, "sum")])
        minutes: dict[str, Counter[str]] = defaultdict(Counter)
        for minute, tenant, amount in zip(*sums.sort_by("minute").to_pydict().values(), strict=True):
            if amount:
                minutes[minute][tenant] = amount
        return minutes

    def _topics(self, limiter: Limiter, unit: str, minutes: Iterable[str]) -> _Parts:
        rows = self._under(limiter)
        rows = rows.filter(pc.is_in(rows["minute"], pa.array(minutes, pa.string())))
        names, amounts = rows.group_by(TOPIC, use_threads=False).aggregate([(unit, "sum")]).to_pydict().values()
        return _parts({name: amount or 0 for name, amount in zip(names, amounts, strict=True)})

    def _under(self, limiter: Limiter) -> pa.Table:
        """The rows of topics that a limiter limits."""
        scope, wanted = limiter
        column = self._groups if scope == "group" else self._held[scope]
        return self._held.filter(pc.fill_null(pc.equal(column, wanted), False))

    @cached_property
    def _groups(self) -> pa.ChunkedArray:
        """The group of each row's topic."""
        topics = self._held["topic"].combine_chunks().dictionary_encode()
        groups = pa.array(map(self._group_of, topics.dictionary.to_pylist()), pa.string())
        return groups.take(topics.indices)


def _verdict(tenant: str, parts: _Parts) -> _Verdict:
    most = max(parts.values())
    sharers = tuple(name for name, part in _ranked(parts) if not is_small(part, most))
    return _Verdict(sharers, tenant not in sharers)


def _phases(tenant: str, minutes: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, _Parts]]:
    """Times in words, and the parts then, of each run of minutes in which the same tenants share the fault."""
    for _, run in groupby(minutes.items(), key=lambda one: frozenset(_verdict(tenant, _parts(one[1])).sharers)):
        of_run = dict(run)
        first, *_, last = [minute[-len("HH:MM") :] for minute in (*of_run, *of_run)]
        yield first if first == last else f"{first} to {last}", _parts(*of_run.values())


def _briefly(tenant: str, parts: _Parts) -> str:
    sharers, is_victim = _verdict(tenant, parts)
    listed = _listed([(name, parts[name]) for name in sharers])
    if is_victim:
        return f"victim of {listed} (it has {parts[tenant]:.0%})"
    return f"its own fault ({parts[tenant]:.0%})" if len(sharers) == 1 else f"shared fault of {listed}"


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
