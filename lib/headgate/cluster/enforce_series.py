"""What the metrics endpoint tells of `headgate enforce`."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate.cluster.enforce import Enforced
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.shared_quota import Amounts

_LABELS = ["resource", "direction"]
_UNITS = Amounts._fields


class EnforceSeries(Collector):
    """Series as of the last `take`: a scrape sees one round, and none of a resource that is gone.

    A rate that does not exist has no series: no quota in that unit, no limit in force, no round yet.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._told: Sequence[Metric] = ()
        self._round_us: int | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """For a scrape, in a thread of the endpoint."""
        yield from self._told

    def take(self, enforced: Iterable[Enforced], round_us: int | None = None) -> None:
        """Take in how things are now. round_us: when a round ended just now, None: none did."""
        self._round_us = round_us or self._round_us
        told: list[Metric] = [*_rates(enforced), *_counts(enforced)]
        if self._round_us is not None:
            told.append(
                GaugeMetricFamily(
                    "headgate_enforce_last_round_timestamp_seconds",
                    "When counters were last decided on.",
                    value=self._round_us / SECOND_US,
                )
            )
        self._told = told


def _rates(enforced: Iterable[Enforced]) -> Iterator[Metric]:
    def rate(name: str, help_: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"headgate_enforce_{name}_per_second", help_, labels=[*_LABELS, "unit"])

    used, quota = rate("used", "What all topics get together."), rate("quota", "What they may get together.")
    level = rate("level", "The cap on each topic that splits the quota; the quota where all demands fit.")
    limit = rate("limit", "The limit in force on each topic.")
    for one in enforced:
        found: list[tuple[GaugeMetricFamily, Iterable[int | None]]] = [
            (quota, one.quota.quota),
            (limit, one.quota.in_force),
        ]
        if one.decision is not None:
            found += [(used, one.decision.used_per_s), (level, one.decision.level)]
        for family, amounts in found:
            for unit, amount in zip(_UNITS, amounts, strict=True):
                if amount is not None:
                    family.add_metric([str(one.resource), one.direction, unit], amount)
    yield from (used, quota, level, limit)


def _counts(enforced: Iterable[Enforced]) -> Iterator[Metric]:
    def count(name: str, help_: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"headgate_enforce_{name}", help_, labels=_LABELS)

    held = count("topics_held", "Topics that are at their limit.")
    not_enforceable = count("topics_not_enforceable", "Topics that go on above their limit.")
    places = count("places", "Where limits are to be set.")
    not_set = count("places_not_set", "Where the limit in force could not be set.")
    pushes = CounterMetricFamily("headgate_enforce_pushes", "Limits that were set on a resource.", labels=_LABELS)
    for one in enforced:
        labels = [str(one.resource), one.direction]
        held.add_metric(labels, len(one.decision.held) if one.decision is not None else 0)
        not_enforceable.add_metric(labels, len(one.not_enforceable))
        places.add_metric(labels, len(one.places))
        not_set.add_metric(labels, len(one.not_set))
        pushes.add_metric(labels, one.pushes)
    yield from (held, not_enforceable, places, not_set, pushes)
