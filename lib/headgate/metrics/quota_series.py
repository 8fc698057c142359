"""What a job that shares quotas tells of the sharing: the series of resource-groups 15 that its loop knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from headgate.metrics.series import COUNTER, GAUGE, SUMMARY, Series

MOST_LIMITS = 10_000
"""Series of limits: brokers times groups times classes and dimensions would have no bound."""
CLASSES, DIMENSIONS = ("publish", "dispatch"), ("messages", "bytes")
LIMIT = Series(
    "headgate_rg_limit",
    GAUGE,
    "A second, what the broker may let in of the group; without a series it is not limited.",
    ("broker", "group", "class", "dimension"),
)
OF_LOOP = (
    Series("headgate_rg_members", GAUGE, "Brokers that share."),
    Series("headgate_rg_dangling_attachments", GAUGE, "Attachments to groups that do not exist."),
    Series("headgate_rg_degraded", GAUGE, "1 while this does not work and the job goes on without it.", ("cause",)),
    Series("headgate_rg_rows_dropped_total", COUNTER, "Rows of rg_usage without effect.", ("reason",)),
    Series("headgate_rg_reports_total", COUNTER, "Rows for rg_usage, by why they were sent.", ("reason",)),
    Series("headgate_rg_reports_suppressed_total", COUNTER, "Rows that were not sent, as they said nothing new."),
    Series("headgate_rg_evaluation_seconds", SUMMARY, "Time that the evaluations took."),
)


@dataclass(frozen=True)
class QuotaFigures:
    """What a quota loop says after a batch; none of it changes any more.

    of_loop: by the names of OF_LOOP a number, numbers by label, or count and sum. limits: messages and bytes a second
    by broker, group and class, None: not limited.
    """

    of_loop: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[tuple[str, str, int], tuple[int | None, int | None]] = field(default_factory=dict)


def quota_families(figures: QuotaFigures, groups: Sequence[str]) -> Iterator[Metric]:
    """groups: those that are told, in the order in which they get room."""
    for series in OF_LOOP:
        if series.name in figures.of_loop:
            yield _family(series, figures.of_loop[series.name])
    yield _limits(figures, groups)


def _family(series: Series, value: Any) -> Metric:
    if series.type == SUMMARY:
        return SummaryMetricFamily(series.name, series.meaning, value["count"], value["sum"])
    kind = CounterMetricFamily if series.type == COUNTER else GaugeMetricFamily
    family = kind(series.name, series.meaning, labels=series.labels)
    for label, number in (value if series.labels else {None: value}).items():
        family.add_metric([] if label is None else [label], number)
    return family


def _limits(figures: QuotaFigures, groups: Sequence[str]) -> Metric:
    """Groups are told whole, as long as there is room for all of their limits."""
    family = GaugeMetricFamily(LIMIT.name, LIMIT.meaning, labels=LIMIT.labels)
    by_group: dict[str, list[tuple[list[str], int]]] = {group: [] for group in groups}
    for (broker, group, traffic_class), rates in figures.limits.items():
        for dimension, rate in zip(DIMENSIONS, rates, strict=True):
            if rate is not None and group in by_group:
                by_group[group].append(([broker, group, CLASSES[traffic_class], dimension], rate))
    room = MOST_LIMITS
    for samples in by_group.values():
        if len(samples) > room:
            break
        room -= len(samples)
        for labels, rate in samples:
            family.add_metric(labels, rate)
    return family
