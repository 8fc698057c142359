"""What a broker appends at a time, a usage report or cut, and what its measuring goes by (resource-groups 5.2, 6)."""

from dataclasses import dataclass, field
from enum import IntEnum
from math import gcd

from headgate.core.numbers import at_least
from headgate.core.quota.usage.reports import QUARTERS, ReportParameters, ReportReason
from headgate.core.quota.usage.usage import Usage


class ReportKind(IntEnum):
    """Why a report is made, by its number in the table."""

    PERIODIC = 0
    EVENT = 1
    LEAVE = 2


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A row of a report: usage of one group in one class."""

    group_id: int
    traffic_class: int
    usage: Usage
    reason: ReportReason


@dataclass(frozen=True, slots=True)
class UsageReport:
    """One append of the broker, a cut in the specification's words. Rows are in the order of group and class.

    seq: 1 for the first, one more for each.
    epoch: the one that the values describe.
    closes_epoch: with the rows goes a heartbeat, which says that all rows up to this epoch are in.
    at_ms: when it was due. A leave without rows speaks of everything of the broker.
    """

    seq: int
    epoch: int
    kind: ReportKind
    closes_epoch: bool
    at_ms: int
    config_version: int
    rows: tuple[ReportRow, ...]


@dataclass(frozen=True, slots=True)
class MeterParameters:
    """What a broker measures by; the defaults are those of resource-groups 14.

    epoch_ms: T, >= 1. grace_ms: an epoch closes so long after its end, >= 0.
    demand_visible: whether arrivals show demand; if not, offered is None in every row.

    Raises InvalidArgument for anything else.
    """

    epoch_ms: int = 1000
    grace_ms: int = 0
    demand_visible: bool = True
    report: ReportParameters = field(default_factory=ReportParameters)

    def __post_init__(self) -> None:
        at_least(1, self.epoch_ms, "epoch_ms")
        at_least(0, self.grace_ms, "grace_ms")

    @property
    def slot_ms(self) -> int:
        """The longest time that divides epochs, their last quarters and the intervals between early cuts."""
        return gcd(self.epoch_ms, self.epoch_ms // QUARTERS, self.report.event_min_interval_ms)
