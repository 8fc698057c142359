"""Who was throttled, when, by which limiter and by whose fault: sums over the tables `topic_usage` and `marks`."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.quota.topic_view import OWN, Limiter
from headgate.report.fault import Loads
from headgate.throttle.names import TENANT, TOPIC
from headgate.throttle.sums import LOWEST, ROWS, Summed, Sums

_TIME = "event_time"
_OF_OFFERED = ("delayed_publishes", "failed_publishes", "delay_ns", "admitted_publishes")
_COUNTS = ("publishes", "throttled_publishes", "throttled_ns", *_OF_OFFERED)
_TRAFFIC = ("messages", "bytes")
_HELD = ("throttled_publishes", "throttled_ns", "failed_publishes")
_WORST = ("failed_publishes", "throttled_publishes")

USAGE = Sums("topic_usage", (TENANT, TOPIC, "broker"), (*_COUNTS, *_TRAFFIC), (_TIME,), (_TIME,))
HELD = Sums("topic_usage", (TENANT, TOPIC), highest=(_TIME,), lowest=(_TIME,), nonzero=_HELD)
SECONDS = Sums("topic_usage", (TENANT, _TIME), _WORST, nonzero=_WORST)
MARKS = Sums("marks", (TENANT, TOPIC, "scope", "limiter"), where=(("action", ("mark",)),))


@dataclass(frozen=True)
class Throttled:
    """A tenant or topic.

    throttled_ns: of all its topics together. blame: the limiter with most of its marks, and its share of them.
    delayed, failed: publishes that were let in later, or given up; delay_ns: how much later, summed over the delayed;
    admitted: publishes that were let in, at once or later. None in admitted traffic.
    topics: how many of its topics were held, or failed. first, last: the seconds in which that began and ended; worst:
    the second in which most publishes failed or, where none did, were throttled. fault: who filled that limiter.
    Neither of these of a topic.
    """

    name: str
    publishes: int
    throttled_publishes: int
    throttled_ns: int
    blame: str
    delayed: int | None = None
    failed: int | None = None
    delay_ns: int | None = None
    admitted: int | None = None
    topics: int = field(default=0, compare=False)
    first: datetime | None = field(default=None, compare=False)
    last: datetime | None = field(default=None, compare=False)
    worst: datetime | None = field(default=None, compare=False)
    fault: str = field(default="", compare=False)

    @property
    def waiting(self) -> int:
        """Publishes of offered traffic that were neither let in nor given up by the end."""
        return 0 if self.admitted is None else self.publishes - self.admitted - (self.failed or 0)

    @property
    def is_held(self) -> bool:
        """Whether any limit did anything to it."""
        return bool(self.throttled_publishes or self.throttled_ns or self.delayed or self.failed or self.waiting)


@dataclass(frozen=True)
class Throttling:
    """What came of the publishes of a run. tenants: all of them; topics: those that were held. Both: most failed
    publishes first, then most throttled ones. first, last: seconds with publishes, None without any.
    """

    tenants: list[Throttled]
    topics: list[Throttled]
    first: datetime | None = None
    last: datetime | None = None

    @property
    def publishes(self) -> int:
        return sum(row.publishes for row in self.tenants)

    @property
    def seconds(self) -> int:
        """From the first to the last, both included."""
        if self.first is None or self.last is None:
            return 0
        return int((self.last - self.first).total_seconds()) + 1


def throttling(tables: Summed, group_of: Callable[[str], str | None]) -> Throttling:
    """Of all rows of the tables. group_of: the resource group that a topic is charged to."""
    usage, held = tables.totals(USAGE), tables.totals(HELD)
    marks = tables.totals(MARKS)
    marks = marks.filter(pc.is_valid(marks[TOPIC]))
    loads = Loads(usage, group_of)
    worst = _worst_seconds(tables.totals(SECONDS))
    tenants = _ranked(TENANT, usage, held, marks, loads)
    topics = _ranked(TOPIC, usage.filter(pc.is_in(usage[TOPIC], held[TOPIC].combine_chunks())), held, marks, loads)
    return Throttling(
        [replace(row, worst=worst.get(row.name)) for row in tenants],
        topics,
        pc.min(usage[LOWEST + _TIME]).as_py(),
        pc.max(usage[_TIME]).as_py(),
    )


def _ranked(of: str, usage: pa.Table, held: pa.Table, marks: pa.Table, loads: Loads) -> list[Throttled]:
    """A row for each tenant or topic of `usage`."""
    counts = _grouped(usage, [of], [(name, "sum") for name in _COUNTS])
    times = _grouped(held, [of], [(LOWEST + _TIME, "min"), (_TIME, "max"), (TOPIC, "count")])
    when = {name: (topics, first, last) for name, first, last, topics in times}
    blamed = _blamed(of, marks)
    rows = []
    for name, publishes, throttled, throttled_ns, delayed, failed, delay_ns, admitted in counts:
        limiter, share = blamed.get(name, (None, 0.0))
        topics, first, last = when.get(name, (0, None, None))
        rows.append(
            Throttled(
                name,
                publishes or 0,
                throttled or 0,
                throttled_ns or 0,
                "none" if limiter is None else _in_words(limiter, share),
                delayed,
                failed,
                delay_ns,
                admitted,
                topics=topics,
                first=first,
                last=last,
                fault="" if limiter is None or of == TOPIC else loads.fault(name, limiter),
            )
        )
    return sorted(rows, key=lambda row: (-(row.failed or 0), -row.throttled_publishes, -row.throttled_ns, row.name))


def _worst_seconds(seconds: pa.Table) -> dict[str, datetime]:
    """Of each tenant, the second in which most publishes failed or, where none did, were throttled."""
    order = [(name, "descending") for name in _WORST] + [(_TIME, "ascending")]
    worst: dict[str, datetime] = {}
    for row in seconds.sort_by(order).select([TENANT, _TIME]).to_pylist():
        worst.setdefault(row[TENANT], row[_TIME])
    return worst


def _blamed(of: str, marks: pa.Table) -> dict[str, tuple[Limiter, float]]:
    """Of each tenant or topic, the limiter with most of its marks, and its share of them."""
    by_name: dict[str, dict[Limiter, int]] = defaultdict(lambda: defaultdict(int))
    for name, scope, limiter, count in _grouped(marks, [of, "scope", "limiter"], [(ROWS, "sum")]):
        by_name[name][OWN if scope == "topic" else (scope, limiter)] += count
    blamed = {}
    for name, limiters in by_name.items():
        worst, most = max(limiters.items(), key=lambda item: (item[1], item[0]))
        blamed[name] = worst, most / sum(limiters.values())
    return blamed


def _in_words(limiter: Limiter, share: float) -> str:
    words = "its own limit" if limiter == OWN else " ".join(limiter)
    return words if share == 1 else f"{words} ({share:.0%} of marks)"


def _grouped(rows: pa.Table, by: list[str], aggregates: list[tuple[str, str]]) -> Iterator[tuple[Any, ...]]:
    """A tuple for each combination of values in `by`: these, then the aggregates."""
    columns = rows.group_by(by, use_threads=False).aggregate(aggregates).to_pydict().values()
    return zip(*columns, strict=True)
