"""The water level: one cap for all topics of a quota, which splits it max-min fairly (clusters 3.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.numbers import at_least
from headgate.core.quota.allocation.share_out import level_by_weight


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
    more = at_least(0, quota, "quota") + 1
    demands = [more if demand is None else min(demand, more) for demand, _ in wanted]
    if sum(demands) <= quota:
        return quota
    _, rest, weight = level_by_weight(quota, demands, [weight for _, weight in wanted])
    return rest // weight
