"""What a connection's machine emits, and its counters: the array form of core.protocol.broker.outbox."""

from typing import Any

from numpy import int64

from headgate.core.kernels.compiled import inner
from headgate.core.kernels.protocol.types import (
    BREACHES,
    COMMAND,
    COMMANDS,
    DECISIONS,
    NONE,
    READS_OFF_MS,
    Machines,
)

_MAX = int64(2**63 - 1)
_REASONS = 5
"""Reasons that are told."""


@inner
def decision(m: Machines, c: int64, kind: int64, now_ms: int64, reason: int64) -> Any:
    """A new row; what it does not say is NONE."""
    row = m.decisions[m.used[DECISIONS]]
    m.used[DECISIONS] += 1
    m.connections[c].seq += 1
    row.connection, row.seq, row.kind, row.at_ms, row.reason = c, m.connections[c].seq, kind, now_ms, reason
    row.request_id, row.producer, row.topic, row.pause_ms = NONE, NONE, NONE, NONE
    row.command, row.cause, row.off_ms = NONE, NONE, NONE
    return row


@inner
def command(m: Machines, c: int64, p: int64, kind: int64, pause_ms: int64, reason: int64, now_ms: int64) -> int64:
    """Tell the client of `p`; the request id."""
    row = decision(m, c, COMMAND, now_ms, reason)
    m.connections[c].issued += 1
    row.request_id, row.producer, row.topic = m.connections[c].issued, m.producers[p].id, m.producers[p].topic
    row.pause_ms, row.command = pause_ms, kind
    m.counters[COMMANDS + kind * _REASONS + reason] += 1
    return row.request_id


@inner
def breach(m: Machines, c: int64, reason: int64, topic: int64) -> None:
    row = m.breaches[m.used[BREACHES]]
    m.used[BREACHES] += 1
    row.connection, row.reason, row.topic = c, reason, topic


@inner
def count_off(m: Machines, off_ms: int64) -> None:
    """Time for which reads were off; a sum stops at 2^63-1."""
    m.counters[READS_OFF_MS] += min(off_ms, _MAX - m.counters[READS_OFF_MS])
