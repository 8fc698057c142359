"""How the shares of quotas followed the traffic: what each broker let in and might let in, epoch by epoch.

From `rg_usage`, whose rows say both, and from `rg_limits` for brokers that use nothing and report no usage.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import HEARTBEAT_GROUP, Dimension, TrafficClass
from headgate.errors import TableError
from headgate.quota.tables.rg_members import MemberTable
from headgate.quota.usage.query import LIMIT_KEY, LOOK_BACK, LimitChanges, courses_of, report_of
from headgate.quota.usage.series import Series, limits_of, series_of, total_of

if TYPE_CHECKING:
    from headgate.quota.usage.view import Report


FULL = 0.95


@dataclass(frozen=True)
class BrokerCourse:
    """Rates per second of each epoch, None where no row tells: what was let in, and what the broker enforced."""

    broker: str
    admitted: Series
    shares: Series

    @property
    def moved(self) -> int:
        """How far apart its smallest and its largest share are, and 0 of one without."""
        known = [share for share in self.shares if share is not None]
        return max(known) - min(known) if known else 0


@dataclass(frozen=True)
class QuotaCourse:
    """A quota of a group for publishes, per second, and the brokers that used it, by name. seconds: of all epochs."""

    group: str
    dimension: Dimension
    quota: int
    seconds: float
    brokers: tuple[BrokerCourse, ...]

    @property
    def moved(self) -> float:
        """The part of the quota that went to a broker, or away from it."""
        return max(broker.moved for broker in self.brokers) / self.quota

    @property
    def used(self) -> float:
        """The part of the quota that was used, from epochs and brokers that are known."""
        known = self._known
        return sum(known) / len(known) / self.quota if known else 0.0

    @property
    def was_full(self) -> bool:
        """Whether it was nearly used up in any epoch."""
        return max(self._known, default=0) >= FULL * self.quota

    @property
    def _known(self) -> list[int]:
        total = total_of([broker.admitted for broker in self.brokers])
        return [rate for rate in total if rate is not None]


class ReportSource(Protocol):
    """Where rows of rg_usage come from: query.UsageTables, or RecentUsage without any table."""

    @property
    def epoch_ms(self) -> int: ...
    @property
    def group_names(self) -> Mapping[int, str]: ...
    def config(self) -> ConfigTables: ...
    def newest_epoch(self) -> int: ...
    def broker_names(self) -> dict[int, str]: ...
    def courses(
        self, epoch: int, epochs: int, groups: Collection[int]
    ) -> "dict[tuple[int, int, int], list[Report]]": ...
    def limit_changes(self, epoch: int, epochs: int) -> LimitChanges: ...


class RecentUsage:
    """The rows of the newest epochs, at most about as many as are asked for. config: never changes."""

    def __init__(self, config: ConfigTables, members: MemberTable, epoch_ms: int, epochs: int) -> None:
        self.epoch_ms = epoch_ms
        self.group_names = {group.group_id: group.name for group in config.groups.values()}
        self._config, self._members = config, members
        self._kept_epochs = LOOK_BACK * epochs
        self._parts: deque[tuple[int, pa.Table]] = deque()
        self._limits: dict[tuple[int, ...], deque[tuple[int, int | None]]] = defaultdict(deque)

    def take_limits(self, rows: pa.Table) -> None:
        """Rows of rg_limits."""
        for row in rows.select(["epoch", *LIMIT_KEY, "limit"]).to_pylist():
            changes = self._limits[tuple(row[name] for name in LIMIT_KEY)]
            changes.append((row["epoch"], row["limit"]))
            while len(changes) > 1 and changes[1][0] <= row["epoch"] - self._kept_epochs:
                changes.popleft()

    def limit_changes(self, epoch: int, epochs: int) -> LimitChanges:  # noqa: ARG002  it has the newest
        """As of `UsageTables`."""
        return self._limits

    def take(self, rows: pa.Table) -> None:
        """Rows of rg_usage, not empty."""
        self._parts.append((pc.max(rows["epoch"]).as_py(), rows))
        while self._parts[0][0] <= self._parts[-1][0] - self._kept_epochs:
            self._parts.popleft()

    def config(self) -> ConfigTables:
        """As it was given."""
        return self._config

    def newest_epoch(self) -> int:
        """Of any row. Raises TableError without any."""
        if not self._parts:
            raise TableError("no broker has reported usage of a group yet")
        return max(epoch for epoch, _ in self._parts)

    def broker_names(self) -> dict[int, str]:
        """The names of all brokers that ever were members, by id."""
        return {broker_id: row.name for broker_id, row in self._members.read().items()}

    def courses(self, epoch: int, epochs: int, groups: Collection[int]) -> "dict[tuple[int, int, int], list[Report]]":
        """As of `UsageTables`."""
        rows = pa.concat_tables(rows for _, rows in self._parts)
        first = epoch - LOOK_BACK * epochs + 1
        wanted = pc.is_in(rows["group_id"], pa.array([HEARTBEAT_GROUP, *groups], rows["group_id"].type))
        in_window = pc.and_(pc.greater_equal(rows["epoch"], first), pc.less_equal(rows["epoch"], epoch))
        return courses_of(map(report_of, rows.filter(pc.and_(wanted, in_window)).to_pylist()))


def quota_courses(tables: ReportSource, epochs: int) -> list[QuotaCourse]:
    """Quotas that were used in the newest epochs, at most so many; the fullest first.

    Of a group with two quotas it is the fuller one, and the other if that was full as well. Raises TableError as
    `UsageTables` does.
    """
    last = tables.newest_epoch()
    rows = tables.courses(last, epochs, tables.group_names.keys())
    oldest = min((row.epoch for reports in rows.values() for row in reports), default=last)
    first = max(last - epochs + 1, oldest)
    names = tables.broker_names()
    changes = tables.limit_changes(last, last - first + 1)
    users: dict[int, list[tuple[str, int, list[Report]]]] = defaultdict(list)
    for (broker_id, group_id, traffic_class), reports in rows.items():
        if traffic_class == TrafficClass.PUBLISH:
            users[group_id].append((names.get(broker_id, f"broker {broker_id}"), broker_id, reports))
    found = []
    for group in tables.config().groups.values():
        of_group = sorted(users[group.group_id], key=itemgetter(0))
        courses = [
            QuotaCourse(
                group.name,
                dimension,
                quota,
                (last - first + 1) * tables.epoch_ms / 1000,
                tuple(
                    BrokerCourse(
                        name,
                        series_of(reports, dimension, first, last),
                        limits_of(
                            reports,
                            changes.get((broker_id, group.group_id, TrafficClass.PUBLISH, dimension), ()),
                            *(dimension, first, last),
                        ),
                    )
                    for name, broker_id, reports in of_group
                ),
            )
            for dimension, quota in zip(Dimension, group.quotas(TrafficClass.PUBLISH), strict=True)
            if quota and of_group
        ]
        fullest = max(courses, key=lambda course: course.used, default=None)
        found += [course for course in courses if course is fullest or course.was_full]
    return sorted(found, key=lambda course: (-course.used, course.group))
