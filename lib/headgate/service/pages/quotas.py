"""Quotas of groups with the share of each broker, and how both went, from the reports of brokers."""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.core.quota.groups import Dimension
from headgate.quota.usage.query import UsageTables
from headgate.quota.usage.series import limits_of, series_of
from headgate.quota.usage.view import Cell
from headgate.service.pages.charts import Chart, Course
from headgate.service.pages.span import SECOND_US, Span

MOST_BROKERS = 6
"""As many have a line of their own in a chart."""


@dataclass(frozen=True)
class Share:
    """A broker's part of a quota, per second. limit: None is not limited; demand: None does not show."""

    broker: str
    limit: int | None
    admitted: int
    demand: int | None
    is_throttled: bool
    is_victim: bool
    is_silent: bool


@dataclass(frozen=True)
class Quota:
    """A quota of a group: one class in one unit. demand: at least that; is_exact: not more. share: of demand in it."""

    group: str
    traffic_class: str
    unit: str
    quota: int | None
    admitted: int
    demand: int
    is_exact: bool
    brokers: tuple[Share, ...]

    @property
    def share(self) -> float | None:
        return self.demand / self.quota if self.quota else None

    @property
    def allowed_share(self) -> float | None:
        return self.admitted / self.quota if self.quota else None


def quota_of(cell: Cell) -> Quota:
    """What a page shows of a cell."""
    shares = tuple(
        Share(
            part.broker.name,
            part.limit,
            part.admitted,
            part.demand,
            part.throttled,
            part.is_victim,
            part.broker.silent,
        )
        for part in cell.parts
    )
    unit = ("messages", "bytes")[cell.dimension]
    demand = cell.demand_at_least
    return Quota(
        cell.group,
        cell.traffic_class.name.lower(),
        unit,
        cell.quota,
        cell.admitted,
        demand,
        cell.demand is not None,
        shares,
    )


def charts_of(tables: UsageTables, span: Span, cells: Iterable[Cell]) -> list[Chart]:
    """Two of each cell: what brokers were let have, and their limits; of the first MOST_BROKERS."""
    listed = [cell for cell in cells if cell.parts]
    if not listed:
        return []
    first, last = (at_us // 1000 // tables.epoch_ms for at_us in (span.first_us, span.end_us - 1))
    courses = tables.courses(last, last - first + 1, {cell.group_id for cell in listed})
    changes = tables.limit_changes(last, last - first + 1)
    charts = []
    for cell in listed:
        areas, lines = [], []
        for number, part in enumerate(cell.parts[:MOST_BROKERS]):
            reports = courses.get((part.broker.broker_id, cell.group_id, cell.traffic_class), [])
            key = part.broker.broker_id, cell.group_id, cell.traffic_class, cell.dimension
            dimension = Dimension(cell.dimension)
            admitted = series_of(reports, dimension, first, last)
            limit = limits_of(reports, changes.get(key, []), dimension, first, last)
            areas.append(Course(part.broker.name, f"series-{number}", _steps(admitted, span, tables, first)))
            lines.append(Course(part.broker.name, f"line-{number}", _steps(limit, span, tables, first)))
        unit = ("messages", "bytes")[cell.dimension]
        what = f"{cell.traffic_class.name.capitalize()} {unit} per second"
        quota = (Course("quota", "limit-1", (float(cell.quota),) * len(span.steps_us)),) if cell.quota else ()
        charts += [
            Chart(f"{what}, allowed by broker", f"{unit}/s", span, tuple(areas), quota),
            Chart(f"{what}, shares of brokers", f"{unit}/s", span, lines=(*lines, *quota)),
        ]
    return charts


def _steps(series: list[int | None], span: Span, tables: UsageTables, first: int) -> tuple[float | None, ...]:
    """The value in force when each step ends."""
    last = len(series) - 1
    places = ((step_us + span.step_s * SECOND_US - 1) // 1000 // tables.epoch_ms - first for step_us in span.steps_us)
    return tuple(series[min(place, last)] if place >= 0 else None for place in places)
