"""The counters and gauges of a running job: moved by its batches, read by whoever asks the endpoint."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headgate.arrow.runs import in_full
from headgate.arrow.topic_names import TENANT
from headgate.metrics.quota_series import QuotaFigures, quota_families
from headgate.metrics.series import GAUGE, Count, OfTable, Series
from headgate.metrics.tables import TABLES, TOPICS

OTHER = "other"
"""The label of all names for which there is no room."""


class Names:
    """The first `most` names have labels, for good: a series that is told once goes on being told.

    other: the label of the rest.
    """

    def __init__(self, most: int, other: str = OTHER) -> None:
        self._most, self._other = most, other
        self._names: set[str] = set()

    @property
    def room(self) -> int:
        """How many more there may be."""
        return self._most - len(self._names)

    def add(self, names: Iterable[str]) -> None:
        """Those that there is room for are in it from now on."""
        for name in names:
            if self.room:
                self._names.add(name)

    def have(self, names: Any) -> Any:
        """For each name of an Arrow array whether it is in it."""
        return pc.is_in(names, pa.array(self._names, pa.string()))

    def label(self, name: str) -> str:
        """The name, which is in it from now on if there is room; else `other`."""
        if name not in self._names:
            self.add([name])
        return name if name in self._names else self._other


MOST_BROKERS = 1000
MOST_TENANTS = 1000
"""Tenants with series of their own, the first that were held or had traffic."""
MOST_GROUPS = 1000
"""Groups with series, those with the largest demand. resource-groups 15"""
US_PER_S = 1_000_000
LAST_BATCH = Series("headgate_last_batch_timestamp_seconds", GAUGE, "Wall clock when the last batch was in its tables.")
EVENT_TIME = Series("headgate_event_timestamp_seconds", GAUGE, "How far event time has come.", ("broker",), US_PER_S)
THROTTLED = Series("headgate_throttled_now", GAUGE, "Producers that wait in queues of limiters.", ("broker",))
HELD_BACK = Series("headgate_dispatch_held_now", GAUGE, "Subscriptions that wait for a dispatch limit.", ("broker",))
GAUGES = (LAST_BATCH, EVENT_TIME, THROTTLED, HELD_BACK)


class Increment(NamedTuple):
    """What a batch adds to a counter, in what it counts."""

    series: Series
    labels: tuple[str, ...]
    amount: int


class Metrics:
    """A batch counts once, in whole, however often it is run in this process: a scrape sees all of it or nothing.

    Counters begin at 0 with the process, as Prometheus expects: what a start finds in the tables is not counted.

    topics: how many topics get series of their own, the first that are throttled, 0: none. A broker beyond
    MOST_BROKERS, a tenant beyond MOST_TENANTS and a topic beyond `topics` count as `other`. now: wall clock in s.
    """

    def __init__(self, topics: int = 0, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._last_batch = -1
        self._last_batch_s: float | None = None
        self._of_tables = [*TABLES.items(), *([("topic_usage", TOPICS)] if topics else [])]
        self._totals: dict[Series, dict[tuple[str, ...], int]] = {
            count.series: dict.fromkeys(count.series.zeros, 0) for _, table in self._of_tables for count in table.counts
        }
        self._brokers, self._topics = Names(MOST_BROKERS), Names(topics)
        self._bounds = {"broker": self._brokers, TENANT: Names(MOST_TENANTS)}
        self._demand: Counter[str] = Counter()
        self._reached_us: dict[str, int] = {}
        self._waiting: dict[tuple[str, str], tuple[int, int]] = {}
        self._quota: QuotaFigures | None = None

    def take(self, batch_id: int, rows: Mapping[str, pa.Table], quota: QuotaFigures | None = None) -> None:
        """Count a batch that is in its tables. rows: by kind (tables.TABLES); kinds that are missing count nothing."""
        if batch_id <= self._last_batch:
            return
        increments = [
            one
            for kind, table in self._of_tables
            if kind in rows and len(rows[kind])
            for some in in_full(rows[kind])
            for one in _increments(table, self._with_room(some) if table is TOPICS else some)
        ]
        demand = _sums(rows["group_usage"], ("group",), ("offered_msgs",)) if "group_usage" in rows else {}
        with self._lock:
            self._last_batch, self._last_batch_s = batch_id, self._now()
            for one in increments:
                totals, labels = self._totals[one.series], self._bounded(one)
                totals[labels] = totals.get(labels, 0) + one.amount
            for (group,), (messages,) in demand.items():
                self._demand[group] += messages or 0
            if "progress" in rows:
                self._follow(rows["progress"])
            self._quota = quota

    def collect(self) -> Iterator[Metric]:
        """What the endpoint tells now. For prometheus_client, from its own threads."""
        with self._lock:
            groups = nsmallest(MOST_GROUPS, self._groups(), key=lambda group: (-self._demand[group], group))
            families = [*self._counters(frozenset(groups)), *self._gauges()]
            if self._quota is not None:
                families += quota_families(self._quota, groups)
        return iter(families)

    def _bounded(self, one: Increment) -> tuple[str, ...]:
        return tuple(
            self._bounds[label].label(value) if label in self._bounds else value
            for label, value in zip(one.series.labels, one.labels, strict=True)
        )

    def _with_room(self, usage: pa.Table) -> pa.Table:
        """Rows of topics that were throttled; those for which there is no room are `other`, of new ones the least."""
        throttled = usage.filter(pc.greater(pc.add(usage["throttled_publishes"], usage["throttled_ns"]), 0))
        new = throttled.filter(pc.invert(self._topics.have(throttled["topic"])))
        if self._topics.room and len(new):
            most = new.group_by("topic").aggregate([("throttled_publishes", "sum"), ("throttled_ns", "sum")])
            order = [
                ("throttled_publishes_sum", "descending"),
                ("throttled_ns_sum", "descending"),
                ("topic", "ascending"),
            ]
            self._topics.add(most.sort_by(order)["topic"].slice(0, self._topics.room).to_pylist())
        topics = pc.if_else(self._topics.have(throttled["topic"]), throttled["topic"], OTHER)
        return throttled.set_column(throttled.schema.get_field_index("topic"), "topic", topics)

    def _follow(self, progress: pa.Table) -> None:
        newest = progress.group_by("broker").aggregate([("event_time_us", "max")])
        for broker, reached_us in zip(*(newest[name].to_pylist() for name in newest.column_names), strict=True):
            name = self._brokers.label(broker)
            self._reached_us[name] = max(self._reached_us.get(name, 0), reached_us or 0)
        waited = pc.is_in(progress["key"], pa.array([key for key, _ in self._waiting], pa.string()))
        touched = progress.filter(pc.or_(pc.greater(progress["waiting"], 0), waited))
        columns = (touched[name].to_pylist() for name in ("key", "broker", "producers", "subscriptions"))
        for key, broker, *waiting in zip(*columns, strict=True):
            self._waiting[key, broker] = waiting[0], waiting[1]
        self._waiting = {place: waiting for place, waiting in self._waiting.items() if any(waiting)}

    def _groups(self) -> set[str]:
        limited = () if self._quota is None else (group for _, group, _ in self._quota.limits)
        return {*self._demand, *limited}

    def _counters(self, groups: frozenset[str]) -> Iterator[Metric]:
        for series, totals in self._totals.items():
            family = CounterMetricFamily(series.name, series.meaning, labels=series.labels)
            of_group = "ResourceGroup" in series.labels
            for labels, total in totals.items():
                if not of_group or labels[0] in groups:
                    family.add_metric(labels, total / series.per)
            yield family

    def _gauges(self) -> Iterator[Metric]:
        throttled, held_back = dict.fromkeys(self._reached_us, 0), dict.fromkeys(self._reached_us, 0)
        for (_, broker), (producers, subscriptions) in self._waiting.items():
            throttled[self._brokers.label(broker)] += producers
            held_back[self._brokers.label(broker)] += subscriptions
        yield _gauge(LAST_BATCH, {} if self._last_batch_s is None else {(): self._last_batch_s})
        for series, values in ((EVENT_TIME, self._reached_us), (THROTTLED, throttled), (HELD_BACK, held_back)):
            yield _gauge(series, {(broker,): value for broker, value in values.items()})


def _gauge(series: Series, values: Mapping[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(series.name, series.meaning, labels=series.labels)
    for labels, value in values.items():
        family.add_metric(labels, value / series.per)
    return family


def _increments(table: OfTable, rows: pa.Table) -> Iterator[Increment]:
    prepared = table.prepared(rows)
    for by in dict.fromkeys(count.by for count in table.counts):
        counts = [count for count in table.counts if count.by == by]
        sums = _sums(prepared, by, tuple(count.column for count in counts))
        for labels, amounts in sorted(sums.items()):
            yield from _of_group(counts, labels, amounts)


def _of_group(counts: list[Count], labels: tuple[str, ...], amounts: tuple[int | None, ...]) -> Iterator[Increment]:
    for count, amount in zip(counts, amounts, strict=True):
        if amount is not None:
            yield Increment(count.series, (*labels, *count.fixed), amount)


def _sums(
    rows: pa.Table, by: tuple[str, ...], columns: tuple[str | None, ...]
) -> dict[tuple[str, ...], tuple[int | None, ...]]:
    """By the values of the columns `by`, as labels: the sum of each column, None if it is null; of None the number.

    Summed as floating-point numbers, as Prometheus has them: whole numbers near 2**63 must not become negative ones.
    """
    everything = pa.repeat(0, len(rows))  # one group where `by` is empty
    numbers = {f"sum of {name}": pc.cast(rows[name], pa.float64(), safe=False) for name in columns if name is not None}
    table = pa.table({name: rows[name] for name in by} | {"all rows": everything} | numbers)
    grouped = table.group_by([*by, "all rows"]).aggregate([([], "count_all"), *((name, "sum") for name in numbers)])
    sums = [grouped["count_all" if name is None else f"sum of {name}_sum"].to_pylist() for name in columns]
    labels = zip(*(grouped[name].to_pylist() for name in by), strict=True) if by else [()]
    amounts = (tuple(None if one is None else int(one) for one in group) for group in zip(*sums, strict=True))
    return {tuple(map(_label, one)): amount for one, amount in zip(labels, amounts, strict=True)}


def _label(value: object) -> str:
    """A null is an empty label, which to Prometheus is none."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
