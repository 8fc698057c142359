"""The kinds of vectors: what replays each, and what it builds from a vector's config.

Another specification adds a module of adapters and one line here. A kind's array form is in `kernel_adapters`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.conformance.adapters import (
    buckets,
    cache_parts,
    cache_trace,
    clusters,
    connections,
    dispatch,
    protocol_broker,
    protocol_client,
    protocol_formulas,
    publishing,
    quota_admin,
    quota_allocation,
    quota_reports,
)
from headgate.conformance.adapters.one_call import replay_call
from headgate.conformance.emitted import EmittingFactory, replay_emitted
from headgate.conformance.report import Mismatch
from headgate.conformance.timed import TimedFactory, replay_timed
from headgate.conformance.vector_file import Vector
from headgate.conformance.wanted import WantedFactory, replay_wanted


@dataclass(frozen=True, slots=True)
class VectorKind:
    """How a kind is replayed: `replay(factory, vector)` returns the mismatches; a factory builds from a config."""

    replay: Callable[[Any, Vector], list[Mismatch]]
    factory: Any


def _timed(factories: Mapping[str, TimedFactory]) -> dict[str, VectorKind]:
    return {name: VectorKind(replay_timed, factory) for name, factory in factories.items()}


def _emitting(factories: Mapping[str, EmittingFactory]) -> dict[str, VectorKind]:
    return {name: VectorKind(replay_emitted, factory) for name, factory in factories.items()}


def _wanting(factories: Mapping[str, WantedFactory]) -> dict[str, VectorKind]:
    return {name: VectorKind(replay_wanted, factory) for name, factory in factories.items()}


RATE_LIMITERS = {**buckets.KINDS, **publishing.KINDS, **dispatch.KINDS, **connections.KINDS}

KINDS: dict[str, VectorKind] = {
    **_timed(RATE_LIMITERS),
    "allocate": VectorKind(replay_call, quota_allocation.allocation_of),
    "rounds": VectorKind(quota_allocation.replay_rounds, quota_allocation.played),
    "report_decision": VectorKind(replay_call, quota_reports.report_decision),
    "usage_map": VectorKind(replay_call, quota_reports.usage_map),
    "resolve_group": VectorKind(replay_call, quota_admin.resolve_group),
    "admin": VectorKind(replay_call, quota_admin.admin),
    "level": VectorKind(replay_call, clusters.level_of),
    "demand": VectorKind(replay_call, clusters.demand_of),
    "push": VectorKind(replay_call, clusters.push_of),
    "bursts": VectorKind(replay_call, clusters.quota_of),
    **_emitting(
        {
            "broker": protocol_broker.BrokerAdapter,
            "client": protocol_client.client,
            "partitioned": protocol_client.partitioned,
            "formula": protocol_formulas.FormulaOperations,
        }
    ),
    **_wanting(
        {
            "queue": cache_parts.QueueAdapter,
            "manager": cache_parts.ManagerAdapter,
            "range_cache": cache_parts.RangeCacheAdapter,
            "cursor_rank": cache_parts.CursorRankAdapter,
        }
    ),
    "cache_trace": VectorKind(cache_trace.replay_trace, cache_trace.cache_of),
}
