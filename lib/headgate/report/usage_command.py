"""`headgate usage`: who uses what of the quotas, from the tables alone, now or at a time in the past.

Made for somebody who is woken at three: before any table stand those who are throttled and the limit that throttles
them, apart from those that are only victims (a broker held below its part by weight, a tenant with less than an equal
part of the limiter that holds it) and from bursts within a limit. Then quota by quota, throttled ones first and the
fullest next: limits, use, demand, age, course and reason.
"""

import argparse
import json
from collections.abc import Iterator, Sequence

from headgate.core.quota.groups import Dimension
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.topic_query import TopicUsage
from headgate.quota.topic_view import consumers_of, tenant_name
from headgate.quota.usage_parser import CLASSES
from headgate.quota.usage_query import Found, UsageTables
from headgate.quota.usage_series import series_of
from headgate.quota.usage_view import Cell, cells_of
from headgate.report.usage_json import consumers_json, usage_json
from headgate.report.usage_screen import Courses, broker_lines, consumer_lines, course_key, group_lines
from headgate.report.usage_words import instant

SECOND_MS = 1000


def run(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines that the command prints. Raises TableError where a table is missing or has nothing to say."""
    settings = QuotaSettings(
        group_table=arguments.group_table,
        attachment_table=arguments.attachment_table,
        member_table=arguments.member_table,
        usage_table=arguments.usage_table,
        limit_table=arguments.limit_table,
    )
    tables = UsageTables(arguments.output, settings, arguments.group)
    if arguments.by in {"tenant", "topic"}:
        yield from _consumers(tables, arguments)
        return
    found = tables.found(arguments.epochs, arguments.at)
    cells = _cells(found, arguments)
    if arguments.json:
        yield json.dumps(usage_json(found, cells), indent=2)
    elif arguments.by == "broker":
        yield from broker_lines(found, cells, arguments.top)
    else:
        courses = _courses(tables, found, cells[: arguments.top], arguments.epochs)
        yield from group_lines(found, cells, courses, arguments.epochs, arguments.top)


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


def _consumers(tables: UsageTables, arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.traffic_class == "dispatch":
        raise TableError(
            f"the table {arguments.output}/topic_usage has publishes alone; leave out --class dispatch, or ask --by "
            "group or broker"
        )
    usage = TopicUsage(arguments.output)
    last_s = usage.newest_s() if arguments.at is None else arguments.at // SECOND_MS
    seconds = max(1, -(-arguments.epochs * tables.epoch_ms // SECOND_MS))
    sums = usage.sums(last_s, seconds)
    version = None if arguments.at is None else tables.config_version_at(arguments.epochs, arguments.at)
    name_of = tenant_name if arguments.by == "tenant" else str
    consumers = consumers_of(sums, tables.config(version), name_of, arguments.group)
    if arguments.json:
        yield json.dumps(consumers_json(arguments.by, last_s * SECOND_MS, seconds, consumers), indent=2)
        return
    heading = f"{instant(last_s * SECOND_MS)}, means of the {seconds} s up to then"
    yield from consumer_lines(heading, arguments.by, consumers, seconds, arguments.top)
