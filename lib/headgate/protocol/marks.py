"""Rows of the table `marks` as inputs of the protocol's machines (throttle-protocol 7.1)."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.numbers import MILLISECOND_NS, MIN
from headgate.core.protocol.reasons import Reason
from headgate.core.throttle_tracker import ThrottleType
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
_BLOCKED = {"balance": 0, "rate": 1}
"""A group that lets nothing pass has no rate to compute a pause by: one second, then extensions."""


def connection_name(broker: str, connection: str) -> str:
    """The name of a connection of `marks` among those of all brokers."""
    return f"{broker}/{connection}"


def rows_of_marks(marks: pa.Table) -> pa.Table:
    """ROWS of MARKS, in any order, one a mark. Ids and ordinals are missing: they follow from the order of feeding."""
    told = marks.filter(pc.not_equal(marks["action"], ATTACH))
    return pa.Table.from_pylist([_row(mark) for mark in told.select(COLUMNS).to_pylist()], ROWS)


def _row(mark: dict[str, Any]) -> dict[str, Any]:
    """event_id: rows of one millisecond and kind are in the order of the marks, those of one publish together."""
    at_ns, action = mark["at_ns"], mark["action"]
    row = {
        "at_ms": at_ns // MILLISECOND_NS,
        "connection": connection_name(mark["broker"], mark["connection"]),
        "topic": mark["topic"],
        "producer": mark["producer"],
        "by_marks": True,
    }
    if action in {OPEN, CLOSE}:
        return row | {"kind": "connect" if action == OPEN else CLOSE, "event_id": f"{at_ns:020}"}
    reason = REASONS[ThrottleType(mark["type"])]
    seq = "" if mark["seq"] is None else f"{mark['seq'] - MIN:020}"
    row["event_id"] = f"{at_ns:020} {seq} {mark['topic'] or ''} {mark['producer'] or ''} {reason:02}"
    if not reason.is_cooperative:
        return row | {"kind": "condition_set" if action == MARK else "condition_clear", "reason": int(reason)}
    if action != MARK:
        return row | {"kind": "unmark", "reason": int(reason)}
    return row | {"kind": "mark", "trips": [{"reason": int(reason), "buckets": _buckets(mark)}]}


def _buckets(mark: dict[str, Any]) -> list[dict[str, int]]:
    """Of the dimensions that are limited."""
    pairs = ((mark[f"{of}_balance"], mark[f"{of}_per_s"]) for of in ("messages", "bytes"))
    return [{"balance": balance, "rate": per_s} if per_s else _BLOCKED for balance, per_s in pairs if per_s is not None]
