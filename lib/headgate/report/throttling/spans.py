"""When a tenant was held: the seconds of the table `topic_usage` in which it was, put together to spans."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import TENANT
from headgate.tables.sums import Made, Sums

QUIET = timedelta(seconds=10)
"""A shorter pause does not end a span."""
_SECOND = timedelta(seconds=1)
_TIME, _HELD_NS = "event_time", "throttled_ns"
_WORST = ("failed_publishes", "throttled_publishes")

SECONDS = Sums("topic_usage", (TENANT, _TIME), _WORST, highest=(_HELD_NS,), nonzero=(*_WORST, _HELD_NS))


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
    """spans: first and last second of each, in order. worst: the second in which most publishes failed or, where none
    did, were throttled.
    """

    spans: tuple[tuple[datetime, datetime], ...]
    worst: datetime


def when_held(seconds: pa.Table) -> dict[str, When]:
    """By tenant. seconds: sums SECONDS."""
    by_tenant: dict[str, list[dict[str, Any]]] = {}
    for row in seconds.sort_by([(_TIME, "ascending")]).to_pylist():
        by_tenant.setdefault(row[TENANT], []).append(row)
    return {tenant: When(_spans(rows), _worst(rows)) for tenant, rows in by_tenant.items()}


def _worst(rows: list[dict[str, Any]]) -> datetime:
    worst: datetime = max(rows, key=lambda row: tuple(row[name] or 0 for name in _WORST))[_TIME]
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
