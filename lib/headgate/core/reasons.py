"""Why something is held: one closed list for screens, HTTP, metrics and errors of the client."""

from enum import StrEnum
from typing import Final

from headgate.core.protocol.reasons import Reason as ProtocolReason


class HeldReason(StrEnum):
    """Each has a section of docs/reasons.md that says what it means and what to do.

    The wire protocol does not say which unit of a publish limit ran out: those without a unit are of clients alone.
    """

    TOPIC_PUBLISH_RATE_MESSAGES = "TOPIC_PUBLISH_RATE_MESSAGES"
    TOPIC_PUBLISH_RATE_BYTES = "TOPIC_PUBLISH_RATE_BYTES"
    TOPIC_PUBLISH_RATE = "TOPIC_PUBLISH_RATE"
    BROKER_PUBLISH_RATE_MESSAGES = "BROKER_PUBLISH_RATE_MESSAGES"
    BROKER_PUBLISH_RATE_BYTES = "BROKER_PUBLISH_RATE_BYTES"
    BROKER_PUBLISH_RATE = "BROKER_PUBLISH_RATE"
    GROUP_QUOTA_MESSAGES = "GROUP_QUOTA_MESSAGES"
    GROUP_QUOTA_BYTES = "GROUP_QUOTA_BYTES"
    GROUP_QUOTA = "GROUP_QUOTA"
    GROUP_BLOCKED = "GROUP_BLOCKED"
    CONNECTION_PENDING_REQUESTS = "CONNECTION_PENDING_REQUESTS"
    IO_THREAD_PENDING_BYTES = "IO_THREAD_PENDING_BYTES"
    CONNECTION_OUTBOUND_BUFFER = "CONNECTION_OUTBOUND_BUFFER"
    CONNECTION_COOLDOWN = "CONNECTION_COOLDOWN"
    SHARED_CONNECTION = "SHARED_CONNECTION"
    BROKER_DISPATCH_RATE = "BROKER_DISPATCH_RATE"
    TOPIC_DISPATCH_RATE = "TOPIC_DISPATCH_RATE"
    SUBSCRIPTION_DISPATCH_RATE = "SUBSCRIPTION_DISPATCH_RATE"
    GROUP_DISPATCH_QUOTA = "GROUP_DISPATCH_QUOTA"
    SLOW_CONSUMER = "SLOW_CONSUMER"
    CACHE_SIZE = "CACHE_SIZE"
    CACHE_AGE = "CACHE_AGE"
    NOT_HELD = "NOT_HELD"


_PUBLISH: Final = {"topic": "TOPIC_PUBLISH_RATE", "broker": "BROKER_PUBLISH_RATE", "group": "GROUP_QUOTA"}
_DISPATCH: Final = {
    "topic": HeldReason.TOPIC_DISPATCH_RATE,
    "broker": HeldReason.BROKER_DISPATCH_RATE,
    "subscription": HeldReason.SUBSCRIPTION_DISPATCH_RATE,
    "group": HeldReason.GROUP_DISPATCH_QUOTA,
}
CONDITIONS: Final = {
    "ConnectionMaxPendingPublishRequestsExceeded": HeldReason.CONNECTION_PENDING_REQUESTS,
    "IOThreadMaxPendingPublishBytesExceeded": HeldReason.IO_THREAD_PENDING_BYTES,
    "ConnectionOutboundBufferFull": HeldReason.CONNECTION_OUTBOUND_BUFFER,
    "ConnectionPauseReceivingCooldownRateLimit": HeldReason.CONNECTION_COOLDOWN,
}
"""By the `type` of their marks."""
_OF_PROTOCOL: Final = {
    ProtocolReason.TopicProduceQuotaExceeded: HeldReason.TOPIC_PUBLISH_RATE,
    ProtocolReason.ResourceGroupProduceQuotaExceeded: HeldReason.GROUP_QUOTA,
    ProtocolReason.ConnectionPendingMessagesBreach: HeldReason.CONNECTION_PENDING_REQUESTS,
    ProtocolReason.MessageBufferSizeBreach: HeldReason.IO_THREAD_PENDING_BYTES,
    ProtocolReason.BrokerProduceQuotaExceeded: HeldReason.BROKER_PUBLISH_RATE,
    ProtocolReason.ConnectionOutboundBufferFull: HeldReason.CONNECTION_OUTBOUND_BUFFER,
    ProtocolReason.ConnectionResumeCooldown: HeldReason.CONNECTION_COOLDOWN,
}


def publish_reason(scope: str, unit: str | None, *, is_blocked: bool = False) -> HeldReason:
    """Of a publish limiter. scope: topic, broker or group; unit: that ran out, messages or bytes, None if it is not
    known; is_blocked: a rate of 0, which only groups have.
    """
    if is_blocked:
        return HeldReason.GROUP_BLOCKED
    return HeldReason(_PUBLISH[scope] if unit is None else f"{_PUBLISH[scope]}_{unit.upper()}")


def dispatch_reason(level: str) -> HeldReason:
    """Of the first level without a permit: broker, topic, subscription or group."""
    return _DISPATCH[level]


def condition_reason(type_: str) -> HeldReason:
    """Of a connection condition, by the `type` of its marks."""
    return CONDITIONS[type_]


def protocol_reason(reason: ProtocolReason) -> HeldReason | None:
    """Of what a broker tells clients; None for what this version does not know."""
    return _OF_PROTOCOL.get(reason)
