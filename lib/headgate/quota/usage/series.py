"""What brokers admitted, or might, epoch by epoch, with the epochs whose rows were suppressed (resource-groups 6.2)."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from headgate.core.quota.groups import HEARTBEAT_GROUP, RatePair
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.quota.usage.view import Report

Series = list[int | None]


Rates = Callable[[Usage], RatePair]
ADMITTED: Rates = attrgetter("admitted")
LIMIT: Rates = attrgetter("limit")


def series_of(reports: Iterable[Report], dimension: int, first: int, last: int, rates: Rates = ADMITTED) -> Series:
    """A rate of one broker, group and class in each epoch from `first` to `last`.

    A suppressed epoch has the value of the row before. None: before the first row, after a leave, in a new life until
    its first row, and after the newest epoch of any row: what was not heard of is not suppressed; or no rate there.

    reports: rows of that group and class and the broker's heartbeats, in any order, also from before `first`.
    """
    ordered = sorted(reports, key=lambda row: (row.epoch, row.incarnation, row.seq, row.group_id))
    heard = max((row.epoch for row in ordered), default=first - 1)
    values: Series = []
    life, value, place = -1, None, 0
    for epoch in range(first, last + 1):
        while place < len(ordered) and ordered[place].epoch <= epoch:
            row = ordered[place]
            place += 1
            if row.incarnation > life:
                life, value = row.incarnation, None
            if row.incarnation == life:
                value = _after(value, row, dimension, rates)
        values.append(value if epoch <= heard else None)
    return values


def total_of(series: Sequence[Series]) -> Series:
    """The sum epoch by epoch; None where nobody has a value."""
    known = ([value for value in values if value is not None] for values in zip(*series, strict=True))
    return [sum(values) if values else None for values in known]


def _after(value: int | None, row: Report, dimension: int, rates: Rates) -> int | None:
    if row.kind == ReportKind.LEAVE:
        return None
    if row.group_id == HEARTBEAT_GROUP:
        return value
    return rates(row.usage)[dimension]
