"""`headgate usage`: who uses what of the quotas, from the tables alone, now or at a time in the past.

Made for somebody who is woken at three: before any table stand those who are throttled and the limit that throttles
them, apart from those that are only victims (a broker held below its part by weight, a tenant with less than an equal
part of the limiter that holds it) and from bursts within a limit. Then quota by quota, throttled ones first and the
fullest next: limits, use, demand, age, course and reason.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import Dimension
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.tables.opened import Locations
from headgate.quota.tables.topic_tables import is_table
from headgate.quota.usage.parser import CLASSES
from headgate.quota.usage.query import Found, UsageTables
from headgate.quota.usage.series import series_of
from headgate.quota.usage.topic_query import TopicUsage
from headgate.quota.usage.topic_view import NAME_OF, consumers_of
from headgate.quota.usage.view import Cell, cells_of
from headgate.report.usage.as_json import consumers_json, usage_json
from headgate.report.usage.screen import Courses, broker_lines, consumer_lines, course_key, group_lines
from headgate.report.usage.words import instant

SECOND_MS = 1000
LIVE_S = 300


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines that the command prints. Raises TableError where a table is missing or has nothing to say."""
    settings = QuotaSettings(
        group_table=arguments.group_table,
        attachment_table=arguments.attachment_table,
        member_table=arguments.member_table,
        usage_table=arguments.usage_table,
        limit_table=arguments.limit_table,
    )
    tables = _shared(arguments, settings)
    by = arguments.by or ("tenant" if tables is None else "group")
    if by in {"tenant", "topic"}:
        yield from _consumers(tables, arguments, by)
        return
    tables = tables or UsageTables(arguments.output, settings, arguments.group)
    found = tables.found(arguments.epochs, arguments.at)
    if arguments.at is None and not any(broker.counts for broker in found.brokers.values()):
        with suppress(TableError):  # a job that publishes its usage alone has no topics
            worst = _Worst.of(TopicUsage(arguments.output), by_groups=True)
            found = tables.found(arguments.epochs, worst.last_s * SECOND_MS)
            if not arguments.json:
                yield worst.line
    cells = _cells(found, arguments)
    if arguments.json:
        yield json.dumps(usage_json(found, cells), indent=2)
    elif by == "broker":
        yield from broker_lines(found, cells, arguments.top)
    else:
        courses = _courses(tables, found, cells[: arguments.top], arguments.epochs)
        yield from group_lines(found, cells, courses, arguments.epochs, arguments.top)


class _Worst(NamedTuple):
    """The worst seconds of traffic that is over: the last of them, and a line that says so."""

    last_s: int
    line: str

    @classmethod
    def of(cls, usage: TopicUsage, seconds: int = 1, *, by_groups: bool = False) -> Self:
        """by_groups: by what limits of groups throttled."""
        last_s, is_any, first, end = usage.worst_s(seconds, by_groups=by_groups)
        first_text, end_text, worst = (instant(at * SECOND_MS) for at in (first, end, last_s))
        kind = "worst" if is_any else "busiest"
        span = f"the {kind} second, {worst}" if seconds == 1 else f"its {kind} {seconds} s, up to {worst}"
        held = "limits of groups throttled" if by_groups else "failed or, where none did, were throttled"
        none = "no limit of a group throttled a publish; --by tenant has all limits"
        none = none if by_groups else "no publish was throttled (this view is of publishes alone)"
        by = f"by publishes that {held}" if is_any else f"as {none}"
        return cls(
            last_s,
            f"No job runs on this traffic now, which is of {first_text} to {end_text}: this is {span}, {by}. "
            "--at TIME shows others.",
        )


def _shared(arguments: argparse.Namespace, settings: QuotaSettings) -> UsageTables | None:
    """The tables of groups; None where no quota is shared, and nobody asks about groups."""
    is_asked = arguments.by in {"group", "broker"} or arguments.group is not None
    if not is_asked and not is_table(Locations.of(arguments.output, settings).usage):
        return None
    tables = UsageTables(arguments.output, settings, arguments.group)
    return None if tables.is_empty and not is_asked else tables


def _seconds(epoch_ms: int, arguments: argparse.Namespace) -> int:
    epochs: int = arguments.epochs
    return max(1, -(-epochs * epoch_ms // SECOND_MS))


def _cells(found: Found, arguments: argparse.Namespace) -> list[Cell]:
    cells = cells_of(found.reports, found.brokers, found.limits, found.config, found.group_names)
    wanted = CLASSES.get(arguments.traffic_class)
    return [cell for cell in cells if wanted in {None, cell.traffic_class} and arguments.group in {None, cell.group}]


def _courses(tables: UsageTables, found: Found, cells: Sequence[Cell], epochs: int) -> Courses:
    rows = tables.courses(found.epoch, epochs, {cell.group_id for cell in cells})
    first = found.epoch - epochs + 1
    return {
        (*key, dimension): series_of(of_key, dimension, first, found.epoch)
        for cell in cells
        for key in (course_key(part, cell) for part in cell.parts)
        for of_key in [rows.get(key, [])]
        for dimension in Dimension
    }


def _consumers(tables: UsageTables | None, arguments: argparse.Namespace, by: str) -> Iterator[str]:
    if arguments.traffic_class == "dispatch":
        raise TableError(
            f"the table {arguments.output}/topic_usage has publishes alone; leave out --class dispatch, or ask --by "
            "group or broker"
        )
    usage = TopicUsage(arguments.output)
    seconds = _seconds(SECOND_MS if tables is None else tables.epoch_ms, arguments)
    worst = None if arguments.at is not None or _is_live(tables, usage, arguments) else _Worst.of(usage, seconds)
    if worst is not None:
        last_s = worst.last_s
    else:
        last_s = usage.settled_s() if arguments.at is None else arguments.at // SECOND_MS
    sums = usage.sums(last_s, seconds)
    config = ConfigTables()
    if tables is not None:
        is_past = arguments.at is not None or worst is not None
        config = tables.config(tables.config_version_at(arguments.epochs, last_s * SECOND_MS) if is_past else None)
    units, contention = usage.units(last_s, seconds, NAME_OF[by]), usage.contention(last_s, seconds, config)
    consumers = consumers_of(sums, config, by, units, contention, group=arguments.group)
    if arguments.json:
        yield json.dumps(consumers_json(by, last_s * SECOND_MS, seconds, consumers), indent=2)
        return
    if worst is not None:
        yield worst.line
    means = "the second that begins then" if seconds == 1 else f"means of {seconds} s, of which it is the last"
    heading = f"{instant(last_s * SECOND_MS)}, {means}"
    yield from consumer_lines(heading, by, consumers, seconds, arguments.top)


def _is_live(tables: UsageTables | None, usage: TopicUsage, arguments: argparse.Namespace) -> bool:
    """Whether a broker is up or, without shared quotas, the newest traffic is of the last LIVE_S."""
    if tables is None:
        return time.time() - usage.newest_s() < LIVE_S
    return any(broker.counts for broker in tables.found(arguments.epochs).brokers.values())
