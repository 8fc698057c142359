"""How the shares of quotas followed the traffic: what each broker let in and might let in, epoch by epoch.

From `rg_usage`, whose rows say both.
"""

from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from headgate.core.quota.groups import Dimension, TrafficClass
from headgate.quota.usage_query import UsageTables
from headgate.quota.usage_series import LIMIT, Series, series_of, total_of

if TYPE_CHECKING:
    from headgate.quota.usage_view import Report


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
        total = total_of([broker.admitted for broker in self.brokers])
        known = [rate for rate in total if rate is not None]
        return sum(known) / len(known) / self.quota if known else 0.0


def quota_courses(tables: UsageTables, epochs: int) -> list[QuotaCourse]:
    """Quotas that were used in the newest epochs, at most so many; the fullest first.

    Of a group with two quotas it is the fuller one. Raises TableError as `UsageTables` does.
    """
    last = tables.newest_epoch()
    rows = tables.courses(last, epochs, tables.group_names.keys())
    oldest = min((row.epoch for reports in rows.values() for row in reports), default=last)
    first = max(last - epochs + 1, oldest)
    names = tables.broker_names()
    users: dict[int, list[tuple[str, list[Report]]]] = defaultdict(list)
    for (broker_id, group_id, traffic_class), reports in rows.items():
        if traffic_class == TrafficClass.PUBLISH:
            users[group_id].append((names.get(broker_id, f"broker {broker_id}"), reports))
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
                        series_of(reports, dimension, first, last, LIMIT),
                    )
                    for name, reports in of_group
                ),
            )
            for dimension, quota in zip(Dimension, group.quotas(TrafficClass.PUBLISH), strict=True)
            if quota and of_group
        ]
        found += [max(courses, key=lambda course: course.used)] if courses else []
    return sorted(found, key=lambda course: (-course.used, course.group))
