"""What the metrics endpoint tells of a gate."""

from collections import defaultdict
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate.core.protocol.broker.broker_metrics import READS_OFF, TOPIC
from headgate.core.protocol.counters import Counters

_UNITS = {READS_OFF: f"{READS_OFF}.ms"}
"""Names that have their unit here alone: throttle-protocol 14 writes them without."""


class GateSeries(Collector):
    """The counters of a gate, with `_` for each dot of a name, summed over topics, of which there is no bound."""

    def __init__(self, *counted: Counters) -> None:
        self.registry = CollectorRegistry()
        self._counted = counted
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """For a scrape, in a thread of the endpoint."""
        sums: dict[str, dict[tuple[tuple[str, str], ...], int]] = defaultdict(lambda: defaultdict(int))
        for counters in self._counted:
            for (name, labels), count in counters.counts().items():
                told = tuple((_series_name(label), value) for label, value in labels if label != TOPIC)
                sums[_series_name(_UNITS.get(name, name).removesuffix(".count"))][told] += count
        for name, totals in sorted(sums.items()):
            names = [label for label, _ in next(iter(totals))]
            family = CounterMetricFamily(name, "As the gate prints it at its end.", labels=names)
            for told, total in totals.items():
                family.add_metric([value for _, value in told], total)
            yield family


def _series_name(name: str) -> str:
    return name.replace(".", "_")
