"""Whose fault it is that a limiter holds somebody: who has how much of what came to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT, TOPIC, tenant_of
from headgate.quota.usage.topic_view import OWN, Limiter, is_small
from headgate.report.screen import plain

_Parts = Mapping[str, float]
"""Of what came to a limiter, in one unit; by name."""
_SHOWN_SHARERS = 3


@dataclass(frozen=True)
class Fault:
    """words: who fills a limiter; empty where only one can, or the tables do not tell. is_victim: of somebody else."""

    words: str = ""
    is_victim: bool = False


NOBODY = Fault()


class Loads:
    """What came to limiters, by tenant and topic.

    usage: sums of `topic_usage` by tenant, topic and broker. group_of: the resource group that a topic is charged to.
    """

    def __init__(self, usage: pa.Table, group_of: Callable[[str], str | None]) -> None:
        self._usage, self._group_of = usage, group_of
        self._load = cache(self._load_of)

    def fault(self, tenant: str, limiter: Limiter, unit: str) -> Fault:
        """Who fills the limiter that holds a tenant, over the whole run. unit: that ran out.

        Who sent less than half of what the largest sent is a victim; the others share the fault.
        """
        parts, topics = self._load(limiter, unit)
        if limiter == OWN or tenant not in parts:
            return NOBODY
        (name, most), (topic, of_topic) = _largest(parts), _largest(topics)
        whole = f"{most:.0%} of the {unit}, most of them by {plain(topic)} ({of_topic:.0%})"
        if is_small(parts[tenant], most):
            victim = f"{plain(tenant)} is a victim with {parts[tenant]:.0%}"
            return Fault(f"fault of {plain(name)}: {whole}; {victim}", is_victim=True)
        sharers = [(name, part) for name, part in _ranked(parts) if not is_small(part, most)]
        if len(sharers) == 1:
            return Fault(f"its own fault: {whole}")
        shown = ", ".join(f"{plain(name)} {part:.0%}" for name, part in sharers[:_SHOWN_SHARERS])
        more = len(sharers) - _SHOWN_SHARERS
        tenants = f" and {more:,} more tenants" if more > 0 else ""
        own = f"; {plain(tenant)} {parts[tenant]:.0%}" if more > 0 else ""
        return Fault(f"shared fault, of all {unit}: {shown}{tenants}{own}")

    def _load_of(self, limiter: Limiter, unit: str) -> tuple[_Parts, _Parts]:
        """The parts of all tenants, and of the topics of the tenant that has most."""
        scope, wanted = limiter
        if limiter == OWN:
            return {}, {}
        column = self._groups if scope == "group" else self._usage[scope]
        rows = self._usage.filter(pc.fill_null(pc.equal(column, wanted), False))
        tenants, topics = _parts(rows, TENANT, unit), _parts(rows, TOPIC, unit)
        most = _largest(tenants)[0]
        return tenants, {name: part for name, part in topics.items() if tenant_of(name) == most}

    @cached_property
    def _groups(self) -> pa.ChunkedArray:
        """The group of each row's topic."""
        topics = self._usage["topic"].combine_chunks().dictionary_encode()
        groups = pa.array(map(self._group_of, topics.dictionary.to_pylist()), pa.string())
        return groups.take(topics.indices)


def _parts(rows: pa.Table, of: str, unit: str) -> _Parts:
    """Of each that sent anything. of: a column with names."""
    names, amounts = rows.group_by(of, use_threads=False).aggregate([(unit, "sum")]).to_pydict().values()
    whole = sum(amount or 0 for amount in amounts)
    return {name: amount / whole for name, amount in zip(names, amounts, strict=True) if amount}


def _ranked(parts: _Parts) -> list[tuple[str, float]]:
    return sorted(parts.items(), key=lambda item: (-item[1], item[0]))


def _largest(parts: _Parts) -> tuple[str, float]:
    return min(parts.items(), key=lambda item: (-item[1], item[0]), default=("", 0.0))
