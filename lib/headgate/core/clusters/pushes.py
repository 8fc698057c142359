"""Which limit to push, and when: each push gives every topic a new, full bucket (clusters 3.2)."""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.numbers import SECOND_MS

DEAD_BAND_PERCENT = 8
BEFORE_LOWER_MS, BEFORE_HIGHER_MS = 3000, 6000
MOST_RAISE_PERCENT = 130
MINUTE_MS = 60_000


class Pushed(NamedTuple):
    """A limit that was pushed for all topics of a resource, and when."""

    at_ms: int
    per_s: int


def next_push(pushes: Sequence[Pushed], level: int, now_ms: int) -> int | None:
    """The limit to push now, from 1; None: none. pushes: of this resource, oldest first, empty where none is in force.

    A first limit is pushed at once. After that: none within DEAD_BAND_PERCENT of the last; one that is lower
    BEFORE_LOWER_MS after the last push, one that is higher BEFORE_HIGHER_MS after it, and at most MOST_RAISE_PERCENT of
    it. level: 0 counts as 1, as brokers take a limit of 0 for none. Source: clusters 3.2
    """
    level = max(level, 1)
    if not pushes:
        return level
    last = pushes[-1]
    if 100 * abs(level - last.per_s) < DEAD_BAND_PERCENT * last.per_s or level == last.per_s:
        return None
    wait_ms = BEFORE_LOWER_MS if level < last.per_s else BEFORE_HIGHER_MS
    if now_ms - last.at_ms < wait_ms:
        return None
    return min(level, max(last.per_s * MOST_RAISE_PERCENT // 100, last.per_s + 1))


def without_bursts(quota: int, pushes: Sequence[Pushed], now_ms: int) -> int:
    """What is left of a quota a second, if each push of the last minute lets a second of it in at once, from 0.

    Source: clusters 3.2
    """
    bursts = sum(now_ms - push.at_ms < MINUTE_MS for push in pushes)
    return max(quota - quota * bursts * SECOND_MS // MINUTE_MS, 0)
