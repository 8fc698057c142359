"""What a topic wants, from counters of what was let in (clusters 2)."""

from collections.abc import Sequence
from typing import NamedTuple

HELD_PERCENT = 85
"""Of the limit in force: who reaches it is held by it."""
MARGIN_PERCENT = 115
"""Of the largest rate: what who is not held may want."""
SPARE_MESSAGES_PER_S = 2
WINDOW_LOOKS = 6
SECOND_US = 1_000_000


class Look(NamedTuple):
    """What was let in of a topic in an interval, in one unit.

    interval_us: from 1. amount: messages or bytes. limit_per_s: that was in force in all of it; None: none. throttled:
    how often a limit of the topic held somebody; None: the source does not count it. spare: what it may want beyond
    MARGIN_PERCENT, a second: SPARE_MESSAGES_PER_S, or of bytes the mean size of its messages.
    """

    interval_us: int
    amount: int
    limit_per_s: int | None
    throttled: int | None
    spare: int


def demand(window: Sequence[Look]) -> int | None:
    """What it wants a second; None: it is held, so that nothing bounds its demand. 0 for an empty window.

    window: its looks since the limit changed last, WINDOW_LOOKS at most. One look does not do: if a client stalls for a
    second, it seems to want little; the level jumps to the quota, and in the next second everybody floods.
    Source: clusters 2
    """
    if any(map(_is_held, window)):
        return None
    return max((_with_margin(look) for look in window), default=0)


def _is_held(look: Look) -> bool:
    if look.limit_per_s is None:
        return False
    return bool(look.throttled) or (100 * SECOND_US * look.amount >= HELD_PERCENT * look.limit_per_s * look.interval_us)


def _with_margin(look: Look) -> int:
    """Rounded up."""
    return -(-MARGIN_PERCENT * SECOND_US * look.amount // (100 * look.interval_us)) + look.spare
