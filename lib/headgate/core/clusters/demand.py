"""What a topic wants, from counters of what was let in (clusters 2)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

HELD_PERCENT = 95
"""Of the limit in force: who reaches it is held by it."""
SECOND_US = 1_000_000


class Look(NamedTuple):
    """What was let in of a topic in an interval, in one unit.

    interval_us: from 1. amount: messages or bytes. limit_per_s: that was in force in all of it; None: none.
    """

    interval_us: int
    amount: int
    limit_per_s: int | None

    @property
    def is_held(self) -> bool:
        """Whether the topic reached its limit."""
        if self.limit_per_s is None:
            return False
        return 100 * SECOND_US * self.amount >= HELD_PERCENT * self.limit_per_s * self.interval_us


def demand(window: Sequence[Look], averaged_us: int = 0) -> int | None:
    """What it wants a second; None: it is held, so that nothing bounds its demand. 0 for an empty window.

    window: its looks since the limit changed last. averaged_us: over how long brokers average what they let in: Kafka
    lets in more than the limit for seconds, and then nothing, so only so many looks together say whether it is held;
    0: every look does.

    The result is the mean of the window, rounded up: the cap that all topics share leaves room to grow, so none is
    added (clusters 2 adds 15 % and 2 messages, which the others then lack). A topic that was held in any look is held:
    if a client stalls for a second, it seems to want little; the level jumps to the quota, and in the next second
    everybody floods. Source: clusters 2
    """
    if any(look.is_held for look in _together(window, averaged_us)):
        return None
    return (
        -(-SECOND_US * sum(look.amount for look in window) // sum(look.interval_us for look in window)) if window else 0
    )


def _together(window: Sequence[Look], averaged_us: int) -> Iterator[Look]:
    """Looks one after the other as one, as few as are so long, for each look at their end."""
    first, interval_us, amount = 0, 0, 0
    for look in window:
        interval_us, amount = interval_us + look.interval_us, amount + look.amount
        while interval_us - window[first].interval_us >= averaged_us and window[first] is not look:
            interval_us, amount = interval_us - window[first].interval_us, amount - window[first].amount
            first += 1
        if interval_us >= averaged_us:
            yield Look(interval_us, amount, look.limit_per_s)
