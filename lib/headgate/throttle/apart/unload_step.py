"""Unloads of bundles: one limiter a broker, in the order of time, apart from all other rows.

The rule of an unload is the core's (`unload_limiter`); here is only whose limiter it is, and when limits change.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import numbers, whole
from headgate.arrow.schemas import TIMESTAMP
from headgate.core.numbers import MAX, MILLISECOND_NS
from headgate.core.unload_limiter import UnloadLimiter
from headgate.throttle.apart.unload_state import UnloadState
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.ordering import Due, order
from headgate.throttle.schemas import UNLOAD_OUTCOMES
from headgate.throttle.state import DomainState


class Run(NamedTuple):
    """When one unload runs, how it ends, and the limits that were in force."""

    start_ns: int
    end_ns: int
    outcome: str
    starts_per_s: int
    timeout_ms: int


def run_unloads(domain: DomainState, due: Due) -> dict[str, pa.Table]:
    """Carry out unloads and changes of their limits, in the order of time; when each runs (UNLOAD_OUTCOMES).

    A row is decided as it comes, also where it starts later: no later change moves it, and nothing is left open.
    A broker's first unload finds no credit.
    """
    in_force, done_ns, changes = domain.in_force, domain.clock.done_ns, due.changes
    rows = due.rows.take(pa.array(order(due.rows)))
    at_ns = np.maximum(numbers(rows["event_time_us"]) * 1000, done_ns)
    asked = list(zip(at_ns.tolist(), rows["duration_ms"].to_pylist(), strict=True))
    changed_ns = [change.effective_us * 1000 for change in changes]
    limiter, runs, begin = _kept(domain), [], 0
    for number, end in enumerate([*np.searchsorted(at_ns, changed_ns).tolist(), len(rows)]):
        for now_ns, duration_ms in asked[begin:end]:
            limiter = limiter or _limiter(in_force, now_ns)
            duration_ns = min(duration_ms * MILLISECOND_NS, MAX)
            runs.append(Run(*limiter.unload(duration_ns, now_ns), *in_force.unload))
        begin = end
        for change in changes[number : number + 1]:
            in_force.apply(change)
            if limiter is not None:
                limiter.update(*in_force.unload, changed_ns[number])
    if limiter is not None:
        domain.unloads = UnloadState(*(getattr(limiter, field.name) for field in fields(UnloadState)))
    return {"unloads": _outcomes(rows, domain.broker, runs)}


def _limiter(in_force: EffectiveLimits, created_ns: int) -> UnloadLimiter:
    starts_per_s, timeout_ms = in_force.unload
    return UnloadLimiter(starts_per_s, created_ns=created_ns, timeout_ms=timeout_ms)


def _kept(domain: DomainState) -> UnloadLimiter | None:
    """The limiter as it was left, None before the broker's first unload."""
    if not domain.unloads.is_begun:
        return None
    limiter = _limiter(domain.in_force, domain.clock.done_ns)
    for name, value in asdict(domain.unloads).items():
        setattr(limiter, name, value)
    return limiter


def _outcomes(rows: pa.Table, broker: str, runs: Sequence[Run]) -> pa.Table:
    asked_ns = numbers(rows["event_time_us"]) * 1000
    start_ns, end_ns = (np.array([getattr(run, name) for run in runs], np.int64) for name in ("start_ns", "end_ns"))
    columns = {
        "event_time": whole(rows["event_time_us"]).cast(TIMESTAMP),
        "broker": pa.repeat(broker, len(rows)),
        "bundle": rows["bundle"],
        "seq": rows["seq"],
        "start_time": pa.array(start_ns // 1000).cast(TIMESTAMP),
        "end_time": pa.array(end_ns // 1000).cast(TIMESTAMP),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "waited_ns": start_ns - asked_ns,
        "outcome": [run.outcome for run in runs],
        "starts_per_s": [run.starts_per_s for run in runs],
        "timeout_ms": [run.timeout_ms for run in runs],
    }
    return pa.table([columns[name] for name in UNLOAD_OUTCOMES.names], UNLOAD_OUTCOMES)
