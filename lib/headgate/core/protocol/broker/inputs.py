"""What the broker's machine is told, and the order in which it is fed (throttle-protocol 7.1).

Fields hold what arrived, checked or not: the machine refuses what section 15 refuses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from headgate.core.numbers import MIN

NULL = MIN - 1
"""Where a field that an input does not have, or that is null, stands in the order: before every integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class Trip:
    """A limiter that a publish tripped: reason 0 or 1, the mark's ordinal from 1, and one or two [balance, rate per s].

    Buckets may be absent where pauses end at second boundaries.
    """

    reason: int
    ordinal: int
    buckets: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class Connect:
    """The connection opened; `supports` is the client's feature flag as the broker received it."""

    RANK: ClassVar = 0
    at_ms: int
    supports: bool


@dataclass(frozen=True, slots=True)
class Open:
    """A producer opened; the same one may open again after it closed, and is new then. No other one gets its id."""

    RANK: ClassVar = 1
    at_ms: int
    producer: int
    topic: str


@dataclass(frozen=True, slots=True)
class Publish:
    """A message of the producer was read."""

    RANK: ClassVar = 2
    at_ms: int
    producer: int


@dataclass(frozen=True, slots=True)
class Mark:
    """One publish tripped these limiters; `trigger` is false for the copies that other producers of the topic get."""

    RANK: ClassVar = 3
    at_ms: int
    producer: int
    trips: Sequence[Trip]
    trigger: bool = True


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt arrived at the socket."""

    RANK: ClassVar = 4
    at_ms: int
    request_id: int


@dataclass(frozen=True, slots=True)
class Quote:
    """Newer balances of a limiter that holds the producer, as in Trip."""

    RANK: ClassVar = 5
    at_ms: int
    producer: int
    reason: int
    buckets: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """A cause at the level of the connection begins, reasons 2 to 6; `producer` tripped the broker's limiter."""

    RANK: ClassVar = 6
    at_ms: int
    reason: int
    ordinal: int
    producer: int | None = None


@dataclass(frozen=True, slots=True)
class Unmark:
    """A limiter released the producer from its marks up to this ordinal."""

    RANK: ClassVar = 7
    at_ms: int
    producer: int
    reason: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class ConditionClear:
    """The cause is over, as far as it was set up to this ordinal."""

    RANK: ClassVar = 8
    at_ms: int
    reason: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """The producer closed."""

    RANK: ClassVar = 9
    at_ms: int
    producer: int


@dataclass(frozen=True, slots=True)
class Close:
    """The connection closed."""

    RANK: ClassVar = 10
    at_ms: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Somebody looks: timers due before fire and the clock moves, as for every operation, and that is all."""

    RANK: ClassVar = 11
    at_ms: int


Input = (
    Connect
    | Open
    | Publish
    | Mark
    | Receipt
    | Quote
    | ConditionSet
    | Unmark
    | ConditionClear
    | CloseProducer
    | Close
    | Probe
)
