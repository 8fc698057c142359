"""Why a connection is not read: a count per reason; reads are off while one is above 0 (rate-limiters 5)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from headgate.core.names import one_of
from headgate.core.numbers import flag
from headgate.core.publish.publish_limiter import Scope
from headgate.core.state import PlainData, check_fields


class ThrottleType(StrEnum):
    """The reasons, in their fixed order. Source: rate-limiters 5.1"""

    CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED = "ConnectionMaxPendingPublishRequestsExceeded"
    IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED = "IOThreadMaxPendingPublishBytesExceeded"
    TOPIC_PUBLISH_RATE = "TopicPublishRate"
    RESOURCE_GROUP_PUBLISH_RATE = "ResourceGroupPublishRate"
    BROKER_PUBLISH_RATE = "BrokerPublishRate"
    CONNECTION_OUTBOUND_BUFFER_FULL = "ConnectionOutboundBufferFull"
    CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT = "ConnectionPauseReceivingCooldownRateLimit"

    @property
    def is_counter(self) -> bool:
        """Counters count every mark; the other types are flags, and a second mark of one is dropped."""
        return self in COUNTERS


SCOPE_TYPES = {
    Scope.TOPIC: ThrottleType.TOPIC_PUBLISH_RATE,
    Scope.BROKER: ThrottleType.BROKER_PUBLISH_RATE,
    Scope.GROUP: ThrottleType.RESOURCE_GROUP_PUBLISH_RATE,
}
"""Of publish limiters."""
COUNTERS = frozenset({ThrottleType.TOPIC_PUBLISH_RATE, ThrottleType.RESOURCE_GROUP_PUBLISH_RATE})


class MarkResult(StrEnum):
    """What a mark or unmark did. Source: rate-limiters 5.2"""

    CONNECTION_STATE_CHANGED = "ConnectionStateChanged"
    TYPE_STATE_CHANGED = "TypeStateChanged"
    DROPPED = "Dropped"


class ThrottleTracker:
    """While the connection is active, `auto_read` is false if and only if some count is above 0.

    No count is ever negative, a flag is 0 or 1, and a dropped call changes nothing. An inactive (closed) connection
    stays inactive: its counts still move, `auto_read` and the metrics do not.

    Attributes: `active`; `auto_read`; `paused` and `resumed`, how often reads were switched off and on;
    `throttled_connections`, 1 while the first type is marked.
    Source: PR 24799; rate-limiters 5.
    """

    __slots__ = ("_counts", "active", "auto_read", "paused", "resumed", "throttled_connections")

    def __init__(self, *, active: bool = True) -> None:
        self.active = flag(active, "active")
        self.auto_read = True
        self.paused = 0
        self.resumed = 0
        self.throttled_connections = 0
        self._counts = dict.fromkeys(ThrottleType, 0)

    def mark(self, type_: str) -> MarkResult:
        """One limiter or condition starts to hold the connection. Raises InvalidArgument for an unknown type."""
        kind = one_of(ThrottleType, type_, "type")
        if self._counts[kind] > 0 and not kind.is_counter:
            return MarkResult.DROPPED
        was_throttled = self.throttled
        self._counts[kind] += 1
        self._count_connections(kind, 1)
        if was_throttled:
            return MarkResult.TYPE_STATE_CHANGED
        if self.active:
            self.auto_read = False
            self.paused += 1
        return MarkResult.CONNECTION_STATE_CHANGED

    def unmark(self, type_: str) -> MarkResult:
        """One limiter or condition stops holding the connection. Raises InvalidArgument for an unknown type.

        An unmark without a mark is dropped.
        """
        kind = one_of(ThrottleType, type_, "type")
        if self._counts[kind] == 0:
            return MarkResult.DROPPED
        self._counts[kind] -= 1
        self._count_connections(kind, -1)
        if self.throttled:
            return MarkResult.TYPE_STATE_CHANGED
        if self.active:
            self.auto_read = True
            self.resumed += 1
        return MarkResult.CONNECTION_STATE_CHANGED

    def close(self) -> None:
        """The connection is gone: from here on only the counts move."""
        self.active = False

    @property
    def throttled(self) -> bool:
        """Whether any count is above 0."""
        return any(self._counts.values())

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(self._counts.values())

    def count(self, type_: ThrottleType) -> int:
        """The count of one type."""
        return self._counts[type_]

    def counts(self) -> dict[str, int]:
        """The counts that are not 0, by type name in the fixed order."""
        return {str(kind): count for kind, count in self._counts.items() if count}

    def metrics(self) -> dict[str, int]:
        """`paused`, `resumed` and `throttled_connections`. Source: rate-limiters 5.3"""
        return {
            "paused": self.paused,
            "resumed": self.resumed,
            "throttled_connections": self.throttled_connections,
        }

    def state(self) -> PlainData:
        """The whole state as plain data, a copy; counts are a list in the order of ThrottleType."""
        return {
            "counts": list(self._counts.values()),
            "active": self.active,
            "auto_read": self.auto_read,
            **self.metrics(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the tracker that `state` was taken from. Raises StateError for fields of another version."""
        names = ("active", "auto_read", "paused", "resumed", "throttled_connections")
        check_fields(cls.__name__, state, ("counts", *names))
        tracker = cls.__new__(cls)
        tracker._counts = dict(zip(ThrottleType, state["counts"], strict=True))
        for name in names:
            setattr(tracker, name, state[name])
        return tracker

    def _count_connections(self, kind: ThrottleType, step: int) -> None:
        if kind is ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED:
            self.throttled_connections += step
