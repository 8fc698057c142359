"""Rates of limiters, from marks: sums by scope, limiter and broker, of limits of topics by topic as well, with the
highest and the lowest rates per second.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headgate.quota.usage.excess import OWN, UNITS, Limiter, limiter_of
from headgate.tables.sums import LOWEST

RATES = tuple(f"{unit}_per_s" for unit in UNITS)
Rows = Sequence[Mapping[str, Any]]
"""With columns RATES: the highest; LOWEST and their names: the lowest."""
QuotaOf = Callable[[str, str], int | None]
"""The quota per second of a group in a unit; None: it has none, or it is not known."""


def rates_of(marks: Rows) -> dict[tuple[Limiter, str], int]:
    """The highest rate that a limiter had on each broker in a unit, summed over brokers."""
    highest: dict[tuple[Limiter, str], dict[str, int]] = defaultdict(dict)
    for row in marks:
        for unit, rate in zip(UNITS, RATES, strict=True):
            of_brokers = highest[limiter_of(row), unit]
            of_brokers[row["broker"]] = max(of_brokers.get(row["broker"], 0), row[rate] or 0)
    return {key: sum(of_brokers.values()) for key, of_brokers in highest.items()}


def own_rates_of(marks: Rows) -> dict[tuple[str, str], dict[str, float]]:
    """By topic and broker, the highest rates of its own limit, by unit."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in marks:
        for unit, name in zip(UNITS, RATES, strict=True):
            if limiter_of(row) == OWN and (rate := row[name]):
                of_topic = found[row["topic"], row["broker"]]
                of_topic[unit] = max(rate, of_topic.get(unit, 0))
    return found


def blocked_of(groups: Iterable[str], quota_of: QuotaOf) -> set[Limiter]:
    """The groups of which a quota is 0."""
    return {("group", group) for group in groups if any(quota_of(group, unit) == 0 for unit in UNITS)}


def shares_of(marks: Rows, quota_of: QuotaOf) -> set[Limiter]:
    """The groups of which a broker had less than the whole quota."""
    return {
        limiter
        for row in marks
        for unit, name in zip(UNITS, RATES, strict=True)
        if (limiter := limiter_of(row))[0] == "group"
        and (rate := row[LOWEST + name]) is not None
        and rate < (quota_of(limiter[1], unit) or 0)
    }
