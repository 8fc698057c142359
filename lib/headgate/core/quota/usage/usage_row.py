"""A row of rg_usage as it was read, and whether its values can be what they stand for (resource-groups 5.2, 7.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from headgate.core.quota.groups import HEARTBEAT_GROUP, FlagPair, TrafficClass, UsageKey, clamped
from headgate.core.quota.rates import WEIGHT_MAX, capped
from headgate.core.quota.usage.usage import NO_FLAGS, Usage
from headgate.core.quota.usage.usage_report import ReportKind

_MISSING_PAIR = (None, None)
_KINDS = frozenset(map(int, ReportKind))
_CLASSES = frozenset(map(int, TrafficClass))


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One row or heartbeat, unchecked: every field may hold anything, None where it is missing.

    Pairs are (messages, bytes), a second. A heartbeat, and a leave that speaks of everything of its sender, has the
    group HEARTBEAT_GROUP, or none.
    """

    broker_id: Any
    incarnation: Any
    seq: Any
    epoch: Any
    publish_time_ms: Any
    group_id: Any
    traffic_class: Any = TrafficClass.PUBLISH
    kind: Any = ReportKind.PERIODIC
    admitted: Any = _MISSING_PAIR
    offered: Any = _MISSING_PAIR
    limit: Any = _MISSING_PAIR
    throttled: Any = NO_FLAGS
    weight: Any = 1

    @property
    def is_leave(self) -> bool:
        """Whether the sender leaves: one group and class, or all."""
        return _is(self.kind, ReportKind.LEAVE)

    @property
    def is_leave_all(self) -> bool:
        """Whether the sender leaves everything."""
        return self._of_broker and self.is_leave

    @property
    def is_heartbeat(self) -> bool:
        """Whether the row only says that all rows up to its epoch are in."""
        return _is(self.group_id, HEARTBEAT_GROUP) and not self.is_leave

    @property
    def is_idle(self) -> bool:
        """Whether the usage of a valid row is idle (Usage.idle), which no correction of its values changes."""
        return not (any(self.admitted) or any(self.offered) or any(_flags(self.throttled)))

    @property
    def key(self) -> UsageKey:
        """What a valid row is about."""
        return self.group_id, int(self.traffic_class)

    @property
    def broker_weight(self) -> int:
        """The sender's weight, 1 to 1000; what is none counts as the nearest, and as 1 where it is no integer."""
        return min(max(self.weight, 1), WEIGHT_MAX) if _is_integer(self.weight) else 1

    @property
    def valid(self) -> bool:
        """Whether all values that the row needs are integers in their ranges. Source: resource-groups 7.1, 16."""
        head = (self.broker_id, self.incarnation, self.seq, self.epoch, self.publish_time_ms)
        if not _are_counts(head) or not _one_of(self.kind, _KINDS) or not _one_of(self.traffic_class, _CLASSES):
            return False
        if self.is_leave or self.is_heartbeat:
            return True
        if not (_is_pair(self.admitted) and _is_pair(self.offered) and _is_pair(self.limit)):
            return False
        optional = [value for value in (*self.offered, *self.limit) if value is not None]
        return _are_counts((self.group_id, *self.admitted, *optional))

    def usage(self) -> Usage:
        """The values of a valid row: none above RATE_MAX, offered not below admitted. Source: resource-groups 7.1."""
        messages, of_bytes = capped(self.admitted[0]), capped(self.admitted[1])
        offered_messages, offered_bytes = clamped(self.offered)
        return Usage(
            (messages, of_bytes),
            (_raised(offered_messages, messages), _raised(offered_bytes, of_bytes)),
            clamped(self.limit),
            _flags(self.throttled),
        )

    @property
    def _of_broker(self) -> bool:
        return self.group_id is None or _is(self.group_id, HEARTBEAT_GROUP)


def is_count(value: object) -> bool:
    """Whether `value` is an integer >= 0; a boolean is none."""
    return _is_integer(value) and value >= 0


def _is_integer(value: object) -> TypeGuard[int]:
    return type(value) is int or (isinstance(value, int) and not isinstance(value, bool))


def _is(value: object, number: int) -> bool:
    return _is_integer(value) and value == number


def _one_of(value: object, numbers: frozenset[int]) -> bool:
    return _is_integer(value) and value in numbers


def _are_counts(values: Iterable[Any]) -> bool:
    for value in values:  # noqa: SIM110  a generator costs more than the checks, and every row read asks twice
        if not (value >= 0 if type(value) is int else is_count(value)):
            return False
    return True


def _is_pair(value: object) -> TypeGuard[Sequence[Any]]:
    return (type(value) is tuple or isinstance(value, Sequence)) and len(value) == 2


def _flags(value: object) -> FlagPair:
    return (bool(value[0]), bool(value[1])) if _is_pair(value) else NO_FLAGS


def _raised(offered: int | None, admitted: int) -> int | None:
    return None if offered is None else max(offered, admitted)
