"""The text format of Prometheus, as a scraper reads it."""

from urllib.request import urlopen

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from headgate.metrics import Metrics

Series = dict[str, dict[tuple[str, ...], float]]


def series_in(text: str) -> Series:
    """By name of a series its values by labels, in the order of their names."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def scraped(url: str) -> Series:
    """What an endpoint tells now."""
    with urlopen(url) as answer:
        return series_in(answer.read().decode())


def told(metrics: Metrics) -> Series:
    """What an endpoint would tell of these metrics."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return series_in(generate_latest(registry).decode())
