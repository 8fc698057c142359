"""The one place where rows of the job meet the rules: a compiled form of them goes here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headgate.core.cache.broker import Cache
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Removed, Row


class Fed(NamedTuple):
    """What rows did. dead: the place of each refused row among them, and why. removed: entries that left, with the
    place of the row that they left with.
    """

    dead: list[tuple[int, DeadReason]]
    removed: list[tuple[int, Removed]]


Feed = Callable[[Cache, Sequence[Row]], Fed]
"""Takes rows of one second in order."""


def feed_rows(cache: Cache, rows: Sequence[Row]) -> Fed:
    """Feed the rows one by one, in plain Python."""
    dead: list[tuple[int, DeadReason]] = []
    removed: list[tuple[int, Removed]] = []
    for place, row in enumerate(rows):
        told = cache.feed(row)
        if told.dead is not None:
            dead.append((place, told.dead))
        if told.removed:
            removed += [(place, gone) for gone in told.removed]
    return Fed(dead, removed)
