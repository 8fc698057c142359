"""Who uses what of each quota as of one epoch: rows in, cells with their brokers out; no table is read here.

A report holds until the next one: epochs without a row are suppressed ones, in which nothing changed. What ends it is a
leave, a newer life of its broker, or the end of the broker's membership (resource-groups 6.2, 7.2).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.evaluation.assessment import is_silent
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import HEARTBEAT_GROUP, UNLIMITED, Dimension, TrafficClass
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.rg_members import MemberRow, MemberState

_CLASSES = frozenset(TrafficClass)


@dataclass(frozen=True, slots=True)
class Report:
    """A row of rg_usage. A heartbeat has HEARTBEAT_GROUP."""

    epoch: int
    broker_id: int
    incarnation: int
    seq: int
    group_id: int
    traffic_class: int
    kind: int
    usage: Usage
    topics: int
    config_version: int

    @property
    def is_leave(self) -> bool:
        return self.kind == ReportKind.LEAVE


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as of the epoch.

    state: of rg_members, None: not known. incarnation: its present life, ms.
    heard: the newest epoch that its rows or heartbeats cover, None: not heard of in the rows that were read.
    age: epochs since then. config_version: the highest it had read. silent: it is up, and not heard of for so long that
    allocation goes by its safe share.
    """

    broker_id: int
    name: str
    state: str | None = None
    incarnation: int = 0
    heard: int | None = None
    age: int | None = None
    config_version: int | None = None
    silent: bool = False

    @property
    def counts(self) -> bool:
        """Whether what it reported is usage now: a broker that was lost or has left uses nothing."""
        return self.state in {None, MemberState.UP}


@dataclass(frozen=True, slots=True)
class Part:
    """What one broker does in a cell. Rates are per second.

    limit: what it enforces, None is not limited. demand: None is unbounded: arrivals do not show it, and it is
    throttled. outcome: the newest row of rg_limits, None without any. report_epoch: of the row that says so. arrived:
    None where it does not show.
    """

    broker: Broker
    report_epoch: int
    limit: int | None
    admitted: int
    demand: int | None
    throttled: bool
    topics: int
    outcome: CellLimit | None
    arrived: int | None = None

    @property
    def is_burst(self) -> bool:
        """Throttled although it wants no more than its limit: the bucket ran empty inside the epoch."""
        return self.throttled and None not in {self.limit, self.demand} and (self.demand or 0) <= (self.limit or 0)

    @property
    def is_victim(self) -> bool:
        """Throttled below its part by weight: others hold it, or it has only come. One unit is rounding."""
        if not self.throttled or self.is_burst or self.limit is None or self.outcome is None:
            return False
        is_new = self.outcome.reason is Reason.ENTRY
        return is_new or (self.outcome.safe_share is not None and self.limit + 1 < self.outcome.safe_share)


@dataclass(frozen=True, slots=True)
class Cell:
    """A quota of a group: one class in one dimension, and the brokers that report usage of it, by id.

    quota: per second, None is not limited. exists: False where the group is gone and its reports are not yet.
    """

    group: str
    group_id: int
    traffic_class: TrafficClass
    dimension: Dimension
    quota: int | None
    exists: bool
    parts: tuple[Part, ...]

    @property
    def admitted(self) -> int:
        return sum(part.admitted for part in self.parts)

    @property
    def demand_at_least(self) -> int:
        """The demand of all; of a broker whose demand is not to be seen, what was admitted."""
        return sum(part.admitted if part.demand is None else part.demand for part in self.parts)

    @property
    def demand(self) -> int | None:
        """None where a broker's is unbounded."""
        return None if any(part.demand is None for part in self.parts) else self.demand_at_least

    @property
    def arrived(self) -> int | None:
        """What came, let in or not; None where it does not show of a broker."""
        return (
            None if any(part.arrived is None for part in self.parts) else sum(part.arrived or 0 for part in self.parts)
        )

    @property
    def throttled(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.throttled)

    @property
    def used(self) -> float | None:
        """The part of the quota that is used; None without a quota, and where it blocks."""
        return self.admitted / self.quota if self.quota else None


def brokers_of(
    reports: Iterable[Report],
    members: Mapping[int, MemberRow],
    epoch: int,
    *,
    silent_rounds: int,
    states_known: bool = True,
) -> dict[int, Broker]:
    """Everybody who reports or is a member, by id. silent_rounds: of resourceGroupSilentRounds.

    members: the newest row of each. states_known: whether these rows are of the time of `epoch`; if not, they give
    names alone.
    """
    lives: dict[int, int] = {}
    if states_known:
        lives = {broker_id: row.incarnation for broker_id, row in members.items()}
    rows = defaultdict(list)
    for report in reports:
        rows[report.broker_id].append(report)
        lives[report.broker_id] = max(report.incarnation, lives.get(report.broker_id, 0))
    brokers = {}
    for broker_id in sorted(lives):
        member, life = members.get(broker_id), lives[broker_id]
        alive = [report for report in rows[broker_id] if report.incarnation == life]
        heard = max((report.epoch for report in alive), default=None)
        age = None if heard is None else epoch - heard
        brokers[broker_id] = Broker(
            broker_id,
            f"broker {broker_id}" if member is None else member.name,
            member.state if states_known and member is not None else None,
            life,
            heard,
            age,
            max((report.config_version for report in alive), default=None),
            age is not None and is_silent(age, silent_rounds),
        )
    return brokers


def in_force(reports: Collection[Report], brokers: Mapping[int, Broker], epoch: int) -> list[Report]:
    """Of the newest row of each broker, group and class, those that still hold, sorted by group, class and broker.

    Who leaves in `epoch` has used what it reports of it.
    """
    left: dict[int, int] = {}
    for report in reports:
        ended = report.is_leave and report.epoch < epoch
        if ended and report.group_id == HEARTBEAT_GROUP and _alive(report, brokers):
            left[report.broker_id] = max(report.seq, left.get(report.broker_id, 0))
    holding = (
        report
        for report in reports
        if report.group_id != HEARTBEAT_GROUP
        and not report.is_leave
        and report.traffic_class in _CLASSES
        and _alive(report, brokers)
        and brokers[report.broker_id].counts
        and report.seq > left.get(report.broker_id, 0)
    )
    return sorted(holding, key=lambda report: (report.group_id, report.traffic_class, report.broker_id))


def cells_of(
    reports: Iterable[Report],
    brokers: Mapping[int, Broker],
    limits: Iterable[LimitRow],
    config: ConfigTables,
    names: Mapping[int, str],
) -> list[Cell]:
    """Quotas of attached groups, used or not, and what is used without one: throttled first, then the fullest.

    Of a class with a quota in one dimension alone the other is left out, unless it throttles.
    reports: those in force. limits: the newest of each broker and cell. names: of all groups that ever were, by id.
    """
    groups = {group.group_id: group for group in config.groups.values()}
    outcomes: dict[tuple[int, int, int], dict[int, CellLimit]] = defaultdict(dict)
    for row in limits:
        outcomes[row.group_id, row.traffic_class, row.dimension][row.broker_id] = row.outcome
    by_class: dict[tuple[int, int], list[Report]] = {
        (group_id, traffic_class): []
        for group_id, group in config.attached_groups().items()
        for traffic_class in TrafficClass
        if group.quotas(traffic_class) != UNLIMITED
    }
    for report in reports:
        by_class.setdefault((report.group_id, report.traffic_class), []).append(report)
    cells = []
    for (group_id, traffic_class), of_class in by_class.items():
        group_row = groups.get(group_id)
        quotas = UNLIMITED if group_row is None else group_row.quotas(traffic_class)
        name = names.get(group_id, f"group {group_id}")
        for dimension in Dimension:
            of_cell = outcomes[group_id, traffic_class, dimension]
            parts = tuple(
                _part(report, brokers[report.broker_id], dimension, of_cell.get(report.broker_id))
                for report in of_class
            )
            place = name, group_id, TrafficClass(traffic_class), dimension
            cell = Cell(*place, quotas[dimension], group_row is not None, parts)
            if cell.quota is not None or quotas == UNLIMITED or cell.throttled:
                cells.append(cell)
    return sorted(cells, key=_urgency)


def _urgency(cell: Cell) -> tuple[bool, float, int, str, int, int]:
    full = 1.0 if cell.quota == 0 and cell.throttled else cell.used or 0.0
    return not cell.throttled, -full, -cell.admitted, cell.group, cell.traffic_class, cell.dimension


def _alive(report: Report, brokers: Mapping[int, Broker]) -> bool:
    return brokers[report.broker_id].incarnation == report.incarnation


def _part(report: Report, broker: Broker, dimension: Dimension, outcome: CellLimit | None) -> Part:
    usage = report.usage
    admitted, offered, throttled = usage.admitted[dimension], usage.offered[dimension], usage.throttled[dimension]
    if offered is not None:
        demand: int | None = max(offered, admitted)
    else:
        demand = None if throttled else admitted
    limit = usage.limit[dimension] if outcome is None else outcome.limit
    return Part(broker, report.epoch, limit, admitted, demand, throttled, report.topics, outcome, offered)
