"""When a tenant was held: the seconds of the table `topic_usage` in which it was, put together to spans."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT
from headgate.quota.usage.excess import HELD_BY_ANY
from headgate.tables.sums import Made

QUIET = timedelta(seconds=10)
"""A shorter pause does not end a span."""
_SECOND = timedelta(seconds=1)
_TIME, _HELD_NS = "event_time", "throttled_ns"

_FORMAT = "%Y-%m-%dT%H:%M"


def _minutes(rows: pa.Table) -> pa.Array:
    """Each second is put into words once: many topics share one."""
    seconds = rows["event_time"].combine_chunks().dictionary_encode()
    return pc.strftime(seconds.dictionary, _FORMAT).take(seconds.indices)


def minute_of(at: datetime) -> str:
    """As MINUTE has it."""
    return f"{at:{_FORMAT}}"


MINUTE = Made("minute", f"to_char(event_time, '{_FORMAT}')", _minutes)
"""In which minute a row of topic_usage or marks is."""


@dataclass(frozen=True)
class When:
    """spans: first and last second of each, in order. worst: the second in which most publishes failed; where none did,
    at whose end most messages waited; in admitted traffic, in which most publishes were throttled.
    """

    spans: tuple[tuple[datetime, datetime], ...]
    worst: datetime


def when_held(seconds: pa.Table) -> dict[str, When]:
    """By tenant. seconds: sums fault.by_second."""
    by_tenant: dict[str, list[dict[str, Any]]] = {}
    sums = ("messages", "admitted_messages", "failed_messages", "failed_publishes", "throttled_publishes")
    grouped = seconds.group_by([TENANT, _TIME], use_threads=False).aggregate(
        [*((name, "sum") for name in sums), (_HELD_NS, "max")]
    )
    for row in grouped.rename_columns([TENANT, _TIME, *sums, _HELD_NS]).sort_by([(_TIME, "ascending")]).to_pylist():
        by_tenant.setdefault(row[TENANT], []).append(row)
    held = {tenant: list(filter(_is_held, rows)) for tenant, rows in by_tenant.items()}
    return {tenant: When(_spans(held[tenant]), _worst(rows)) for tenant, rows in by_tenant.items() if held[tenant]}


def _is_held(row: dict[str, Any]) -> bool:
    return any(row[name] for name in HELD_BY_ANY)


def _worst(rows: list[dict[str, Any]]) -> datetime:
    """Of all rows of a tenant, in order."""
    waits, bad = 0, []
    for row in rows:
        if row["admitted_messages"] is not None:
            waits = max(waits + (row["messages"] or 0) - row["admitted_messages"] - (row["failed_messages"] or 0), 0)
        if _is_held(row):
            bad.append((row["failed_publishes"] or 0, waits, row["throttled_publishes"] or 0, row[_TIME]))
    worst: datetime = max(bad, key=lambda one: one[:3])[-1]
    return worst


def _spans(rows: list[dict[str, Any]]) -> tuple[tuple[datetime, datetime], ...]:
    """A row after silent seconds tells of them, too, by a time of more than a second."""
    spans: list[tuple[datetime, datetime]] = []
    for row in rows:
        last = row[_TIME]
        silent = max((row[_HELD_NS] or 0) - 1_000_000_000, 0)
        first = last - timedelta(microseconds=silent // 1000)
        while spans and first - spans[-1][1] <= QUIET + _SECOND:
            begun, ended = spans.pop()
            first, last = min(first, begun), max(last, ended)
        spans.append((first, last))
    return tuple(spans)
