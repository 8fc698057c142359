"""What brokers admitted, or might, epoch by epoch, with the epochs whose rows were suppressed (resource-groups 6.2)."""

from collections.abc import Iterable, Sequence
from operator import itemgetter

from headgate.core.quota.groups import HEARTBEAT_GROUP
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.quota.usage.view import Report

Series = list[int | None]


def series_of(reports: Iterable[Report], dimension: int, first: int, last: int) -> Series:
    """What one broker let in of a group and class in each epoch from `first` to `last`.

    A suppressed epoch has the value of the row before. None: before the first row, after a leave, in a new life until
    its first row, and after the newest epoch of any row: what was not heard of is not suppressed.

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
                value = _after(value, row, dimension)
        values.append(value if epoch <= heard else None)
    return values


def limits_of(
    reports: Iterable[Report], changes: Iterable[tuple[int, int | None]], dimension: int, first: int, last: int
) -> Series:
    """The limit of one broker in a cell in each epoch: that of its newest report or, if that is newer, change.

    None: before the first of them, and where it is not limited. changes: epoch and limit, as rg_limits has them.
    """
    told = [(row.epoch, 0, row.usage.limit[dimension]) for row in reports if row.group_id != HEARTBEAT_GROUP]
    told += [(epoch, 1, limit) for epoch, limit in changes]
    told.sort(key=itemgetter(0, 1))
    values: Series = []
    place, value = 0, None
    for epoch in range(first, last + 1):
        while place < len(told) and told[place][0] <= epoch:
            value = told[place][2]
            place += 1
        values.append(value)
    return values


def total_of(series: Sequence[Series]) -> Series:
    """The sum epoch by epoch; None where nobody has a value."""
    known = ([value for value in values if value is not None] for values in zip(*series, strict=True))
    return [sum(values) if values else None for values in known]


def _after(value: int | None, row: Report, dimension: int) -> int | None:
    if row.kind == ReportKind.LEAVE:
        return None
    if row.group_id == HEARTBEAT_GROUP:
        return value
    return row.usage.admitted[dimension]
