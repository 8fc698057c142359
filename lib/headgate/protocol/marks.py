"""Rows of the table `marks` as inputs of the protocol's machines (throttle-protocol 7.1)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Flags, Ints
from headgate.core.numbers import MILLISECOND_NS
from headgate.core.protocol.reasons import Reason
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.protocol.schemas import ROWS

REASONS = {
    ThrottleType.TOPIC_PUBLISH_RATE: Reason.TopicProduceQuotaExceeded,
    ThrottleType.RESOURCE_GROUP_PUBLISH_RATE: Reason.ResourceGroupProduceQuotaExceeded,
    ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED: Reason.ConnectionPendingMessagesBreach,
    ThrottleType.IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED: Reason.MessageBufferSizeBreach,
    ThrottleType.BROKER_PUBLISH_RATE: Reason.BrokerProduceQuotaExceeded,
    ThrottleType.CONNECTION_OUTBOUND_BUFFER_FULL: Reason.ConnectionOutboundBufferFull,
    ThrottleType.CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT: Reason.ConnectionResumeCooldown,
}
"""The reason of a connection's throttle type. Source: throttle-protocol 3"""
COLUMNS = [
    *("at_ns", "broker", "connection", "topic", "producer", "type", "action", "seq"),
    *("messages_balance", "messages_per_s", "bytes_balance", "bytes_per_s"),
]
OPEN, CLOSE, ATTACH, MARK = "open", "close", "attach", "mark"
_BLOCKED = (0, 1)
"""A group that lets nothing pass has no rate to compute a pause by: one second, then extensions."""
_KINDS = pa.array(["connect", "close", "condition_set", "condition_clear", "mark", "unmark"])
_CONNECT, _CLOSE, _SET, _CLEAR, _MARK, _UNMARK = range(6)
_TYPES = pa.array([str(type_) for type_ in REASONS])
_CODES = np.array([*map(int, REASONS.values()), -1])
_DIGITS = 20
_SIGN = np.uint64(2**63)


def connection_name(broker: str, connection: str) -> str:
    """The name of a connection of `marks` among those of all brokers."""
    return f"{broker}/{connection}"


def rows_of_marks(marks: pa.Table) -> pa.Table:
    """ROWS of MARKS, in any order, one a mark. Ids and ordinals are missing: they follow from the order of feeding.

    event_id: rows of one millisecond and kind are in the order of the marks, those of one publish together.
    """
    told = marks.filter(pc.not_equal(marks["action"], ATTACH)).select(COLUMNS).combine_chunks()
    if not len(told):
        return ROWS.empty_table()
    reasons = _CODES[pc.index_in(told["type"], _TYPES).fill_null(-1).to_numpy()]
    kinds = _kinds(told["action"], reasons)
    is_mark = kinds == _MARK
    columns = {
        "event_id": _event_ids(told, reasons, kinds),
        "kind": _KINDS.take(pa.array(kinds)),
        "at_ms": pa.array(told["at_ns"].to_numpy() // MILLISECOND_NS),
        "connection": pc.binary_join_element_wise(told["broker"], told["connection"], "/"),
        "topic": told["topic"],
        "producer": told["producer"],
        "trips": _trips(told, reasons, is_mark),
        "reason": pa.array(reasons, pa.int32(), mask=is_mark | (kinds <= _CLOSE)),
        "at_ns": told["at_ns"],
        "by_marks": pa.repeat(pa.scalar(True), len(told)),
    }
    return pa.table([columns.get(of.name, pa.nulls(len(told), of.type)) for of in ROWS], ROWS)


def _kinds(action: pa.ChunkedArray, reasons: Ints) -> Ints:
    is_open, is_close, is_mark = (pc.equal(action, name).to_numpy(zero_copy_only=False) for name in (OPEN, CLOSE, MARK))
    of_producers = np.where(is_mark, _MARK, _UNMARK)
    of_conditions = np.where(is_mark, _SET, _CLEAR)
    kinds = np.where(reasons <= Reason.ResourceGroupProduceQuotaExceeded, of_producers, of_conditions)
    return np.select([is_open, is_close], [_CONNECT, _CLOSE], kinds)


def _event_ids(told: pa.Table, reasons: Ints, kinds: Ints) -> pa.ChunkedArray:
    at_ns = _padded(told["at_ns"], _DIGITS)
    seq = pa.array(told["seq"].fill_null(0).to_numpy().view(np.uint64) ^ _SIGN, mask=_is_null(told["seq"]))
    parts = (_padded(seq, _DIGITS), told["topic"], told["producer"], _padded(pa.array(reasons), 2))
    whole = pc.binary_join_element_wise(at_ns, *(pc.fill_null(part, "") for part in parts), " ")
    return pc.if_else(pa.array(kinds <= _CLOSE), at_ns, whole)


def _padded(numbers: pa.Array | pa.ChunkedArray, digits: int) -> pa.Array | pa.ChunkedArray:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), digits, "0")


def _is_null(column: pa.ChunkedArray) -> Flags:
    is_null: Flags = column.is_null().to_numpy(zero_copy_only=False)
    return is_null


def _trips(told: pa.Table, reasons: Ints, is_mark: Flags) -> pa.ListArray:
    """One each, with a bucket for each dimension that is limited."""
    marks = told.filter(pa.array(is_mark))
    of = ROWS.field("trips").type.value_type
    limited = np.stack([~_is_null(marks[f"{what}_per_s"]) for what in ("messages", "bytes")], axis=1).ravel()
    balance, unknown, per_s = (
        np.stack([each(marks, what) for what in ("messages", "bytes")], axis=1).ravel()[limited]
        for each in (_balance, _no_balance, _per_s)
    )
    is_blocked = per_s == 0
    balance[is_blocked], per_s[is_blocked] = _BLOCKED
    pairs = [pa.array(balance, mask=unknown & ~is_blocked), pa.array(per_s)]
    buckets = pa.StructArray.from_arrays(pairs, fields=list(of.field("buckets").type.value_type))
    offsets = _offsets(limited.reshape(-1, 2).sum(axis=1))
    values = [
        pa.array(reasons[is_mark], pa.int32()),
        pa.nulls(len(marks), pa.int64()),
        pa.ListArray.from_arrays(offsets, buckets),
    ]
    trips = pa.StructArray.from_arrays(values, fields=list(of))
    return pa.ListArray.from_arrays(_offsets(is_mark), trips, mask=pa.array(~is_mark))


def _offsets(counts: Ints | Flags) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _balance(marks: pa.Table, what: str) -> Ints:
    return np.array(marks[f"{what}_balance"].fill_null(0).to_numpy(), np.int64)


def _no_balance(marks: pa.Table, what: str) -> Flags:
    return _is_null(marks[f"{what}_balance"])


def _per_s(marks: pa.Table, what: str) -> Ints:
    return np.array(marks[f"{what}_per_s"].fill_null(0).to_numpy(), np.int64)
