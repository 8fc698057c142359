"""The water level: one cap for all topics of a quota, which splits it max-min fairly (clusters 3.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.numbers import at_least


class Wanted(NamedTuple):
    """What a topic, or a user on a broker, wants a second.

    demand: from 0; None: no bound, it is held. weight: from 1; its cap is so many times the level.
    """

    demand: int | None
    weight: int = 1


def water_level(wanted: Sequence[Wanted], quota: int) -> int:
    """The largest integer q, at most the quota, with which the sum of min(demand, q * weight) is at most the quota.

    It is the quota where all demands fit: no limit is needed. 0 where not even 1 for each weight fits; then no cap can
    keep to the quota. Raises InvalidArgument for a quota below 0. Source: clusters 3.1
    """
    low, high = 0, at_least(0, quota, "quota")
    while low < high:
        middle = (low + high + 1) // 2
        if admitted(wanted, middle) <= quota:
            low = middle
        else:
            high = middle - 1
    return low


def admitted(wanted: Sequence[Wanted], level: int) -> int:
    """What comes at most, a second, with caps of this level."""
    return sum(level * weight if demand is None else min(demand, level * weight) for demand, weight in wanted)
