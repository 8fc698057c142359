"""Whose fault it is that a limiter holds somebody: who has how much of what came to it."""

from collections.abc import Callable, Mapping
from functools import cache, cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headgate.quota.topic_view import OWN, Limiter, is_small, shares_of
from headgate.report.screen import plain
from headgate.throttle.names import TENANT, TOPIC, tenant_of

_UNITS = ("messages", "bytes")
_Parts = Mapping[str, float]
"""Of what came to a limiter, in messages or in bytes, whichever is more; by name."""


class Loads:
    """What came to limiters, by tenant and topic.

    usage: sums of `topic_usage` by tenant, topic and broker. group_of: the resource group that a topic is charged to.
    """

    def __init__(self, usage: pa.Table, group_of: Callable[[str], str | None]) -> None:
        self._usage, self._group_of = usage, group_of
        self._load = cache(self._load_of)

    def fault(self, tenant: str, limiter: Limiter) -> str:
        """Who fills the limiter that holds a tenant; empty where nobody else can, or the tables do not tell.

        A victim has less than an equal part of what came to it, of messages and of bytes.
        """
        parts, topics = self._load(limiter)
        if limiter == OWN or tenant not in parts:
            return ""
        most, (topic, of_topic) = _largest(parts), _largest(topics)
        own, whole = parts[tenant], f"{most[1]:.0%} of the traffic, most of it by {plain(topic)} ({of_topic:.0%})"
        if is_small(own, len(parts)):
            return f"fault of {plain(most[0])}: {whole}; {plain(tenant)} is a victim with {own:.0%}"
        if most[0] == tenant:
            return f"its own fault: {whole}"
        return f"its own fault, too: {own:.0%} of the traffic"

    def _load_of(self, limiter: Limiter) -> tuple[_Parts, _Parts]:
        """The parts of all tenants, and of the topics of the tenant that has most."""
        scope, wanted = limiter
        if limiter == OWN:
            return {}, {}
        column = self._groups if scope == "group" else self._usage[scope]
        rows = self._usage.filter(pc.fill_null(pc.equal(column, wanted), False))
        tenants, topics = _parts(rows, TENANT), _parts(rows, TOPIC)
        most = _largest(tenants)[0]
        return tenants, {name: part for name, part in topics.items() if tenant_of(name) == most}

    @cached_property
    def _groups(self) -> pa.ChunkedArray:
        """The group of each row's topic."""
        topics = self._usage["topic"].combine_chunks().dictionary_encode()
        groups = pa.array(map(self._group_of, topics.dictionary.to_pylist()), pa.string())
        return groups.take(topics.indices)


def _parts(rows: pa.Table, of: str) -> _Parts:
    """Of each that sent anything. of: a column with names."""
    sums = rows.group_by(of, use_threads=False).aggregate([(unit, "sum") for unit in _UNITS])
    names, *amounts = sums.to_pydict().values()
    return shares_of(dict(zip(names, zip(*amounts, strict=True), strict=True)))


def _largest(parts: _Parts) -> tuple[str, float]:
    return max(parts.items(), key=lambda item: (item[1], item[0]), default=("", 0.0))
