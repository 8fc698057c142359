"""Which limit to push, and when: each push gives every topic a new, full bucket (clusters 3.2)."""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.clusters.demand import SECOND_US

BAND_PERCENT, SETTLED_BAND_PERCENT = 8, 3
"""Of the last limit: a smaller change is not worth a push, soon after one and SETTLED_US later."""
SETTLED_US = 20 * SECOND_US
BEFORE_LOWER_US, BEFORE_HIGHER_US = 3 * SECOND_US, 6 * SECOND_US
MOST_RAISE = 2
MINUTE_US = 60 * SECOND_US


class Limit(NamedTuple):
    """A cap for each topic of a resource, a second, from 1. None: none in that unit."""

    messages: int | None = None
    bytes: int | None = None


class Pushed(NamedTuple):
    """A limit that was pushed for all topics of a resource, and when."""

    at_us: int
    limit: Limit


def next_push(pushes: Sequence[Pushed], level: Limit, target: Limit, now_us: int, *, is_wanted: bool) -> Limit | None:
    """The limit to push now; None: none. pushes: of this resource, oldest first, empty where none is in force.

    A first limit is pushed at once. After that, in each unit: none within the band of the last; one that is lower
    BEFORE_LOWER_US after the last push, one that is higher BEFORE_HIGHER_US after it, at most MOST_RAISE times the last
    and only if `is_wanted`: some topic is at its limit. 0 counts as 1, as brokers take a limit of 0 for none.

    level: what splits the quota; target: what splits it without the bursts of earlier pushes, so at most the level, and
    what is pushed. A burst alone is no reason for a push, which would make another one. Source: clusters 3.2
    """
    level, target = (Limit(*(cap if cap is None else max(cap, 1) for cap in one)) for one in (level, target))
    if not pushes:
        return target
    last = pushes[-1]
    age_us = now_us - last.at_us
    units = zip(last.limit, level, target, strict=True)
    pushed = Limit(*(_next(one, cap, aim, age_us, is_wanted=is_wanted) for one, cap, aim in units))
    return None if pushed == last.limit else pushed


def _next(last: int | None, level: int | None, target: int | None, age_us: int, *, is_wanted: bool) -> int | None:
    if last is None or level is None or target is None:
        return target
    band = BAND_PERCENT if age_us < SETTLED_US else SETTLED_BAND_PERCENT
    if 100 * (last - level) >= band * last and age_us >= BEFORE_LOWER_US:
        return target
    if 100 * (target - last) >= band * last and age_us >= BEFORE_HIGHER_US and is_wanted:
        return min(target, MOST_RAISE * last)
    return last


def without_bursts(quota: int, bursts: int) -> int:
    """What is left of a quota a second over a minute with so many pushes, each of which lets a second of it in at once.

    Source: clusters 3.2
    """
    return max(quota - quota * bursts * SECOND_US // MINUTE_US, 0)
