"""What an open connection refuses: the array form of core.protocol.broker.checks (throttle-protocol 15)."""

from typing import Any

from numpy import int64

from headgate.core.kernels.compiled import inner
from headgate.core.kernels.protocol.types import (
    BAD_BUCKET,
    BAD_ORDINAL,
    BAD_PRODUCER,
    BAD_REASON,
    BAD_REQUEST_ID,
    CLOSE_PRODUCER,
    CONDITION_CLEAR,
    CONDITION_CODES,
    CONDITION_SET,
    CONNECT,
    DUPLICATE_CONNECTION,
    DUPLICATE_PRODUCER,
    LIMITERS,
    MARK,
    NONE,
    OPEN,
    PUBLISH,
    QUOTE,
    RECEIPT,
    UNKNOWN_PRODUCER,
    UNMARK,
    Machines,
)


@inner
def error_in_open(m: Machines, p: int64, has_producer: int64, id_: int64, topic: int64) -> int64:
    if not has_producer or id_ < 0 or topic == NONE:
        return int64(BAD_PRODUCER)
    if m.producers[p].is_open and m.producers[p].topic != topic:
        return int64(DUPLICATE_PRODUCER)
    return int64(NONE)


@inner
def error_in(m: Machines, c: int64, p: int64, operation: Any) -> int64:
    """Why an operation of an open connection is refused, NONE where it is not: the first match, in the spec's order."""
    kind = operation.kind
    is_unknown = p == NONE or not m.producers[p].is_open
    if kind == CONNECT:
        is_same = operation.flag == m.connections[c].supports
        return int64(NONE) if is_same else int64(DUPLICATE_CONNECTION)
    if kind == OPEN:
        return error_in_open(m, p, operation.has_producer, operation.producer, operation.topic)
    if kind in (PUBLISH, MARK, QUOTE, UNMARK, CLOSE_PRODUCER) and is_unknown:
        return int64(UNKNOWN_PRODUCER)
    if kind == MARK:
        return _error_in_mark(m, c, operation)
    if kind == RECEIPT:
        return int64(NONE) if operation.number >= 0 else int64(BAD_REQUEST_ID)
    if kind in (QUOTE, UNMARK) and not 0 <= operation.reason < LIMITERS:
        return int64(BAD_REASON)
    is_condition = kind in (CONDITION_SET, CONDITION_CLEAR)
    if is_condition and not CONDITION_CODES[0] <= operation.reason <= CONDITION_CODES[1]:
        return int64(BAD_REASON)
    if kind in (UNMARK, CONDITION_SET, CONDITION_CLEAR) and operation.number < 1:
        return int64(BAD_ORDINAL)
    if kind == QUOTE and not _are_buckets(m, operation.first_bucket, operation.buckets):
        return int64(BAD_BUCKET)
    return int64(NONE)


@inner
def _error_in_mark(m: Machines, c: int64, operation: Any) -> int64:
    if not 1 <= operation.trips <= LIMITERS:
        return int64(BAD_REASON)
    first = m.trips[operation.first_trip]
    last = m.trips[operation.second_trip] if operation.trips > 1 else first
    if not (0 <= first.reason < LIMITERS and 0 <= last.reason < LIMITERS):
        return int64(BAD_REASON)
    if operation.trips > 1 and first.reason == last.reason:
        return int64(BAD_REASON)
    if not operation.by_marks and (first.ordinal < 1 or last.ordinal < 1):
        return int64(BAD_ORDINAL)
    if m.settings[m.connections[c].settings].looks_at_buckets and not (
        _are_buckets(m, first.first_bucket, first.buckets) and _are_buckets(m, last.first_bucket, last.buckets)
    ):
        return int64(BAD_BUCKET)
    return int64(NONE)


@inner
def _are_buckets(m: Machines, first: int64, buckets: int64) -> Any:
    return 1 <= buckets <= 2 and m.buckets[first].rate >= 1 and m.buckets[first + buckets - 1].rate >= 1
