"""Rounds of a broker's rows, and the horizon at which each ends (entry-cache 14)."""

from collections.abc import Sequence
from heapq import merge

from headgate.conformance.oracles.horizon.keyed_queue import Horizon
from headgate.conformance.oracles.horizon.sharded_policy import Report
from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.rows import WITH_SIZES, EventKind, Row
from headgate.core.cache.settings import CacheSettings

BUSY_SHARE = 0.2
"""Of the limit; rounds that insert more are counted, as the mode promises nothing of them."""


class Round:
    """A slice of the rows that are well formed and in time: its end depends on the rows alone, not on batches.

    Attributes: `rows`; `size_bytes` of their entries; `last_us`, the time of the last one. Source: entry-cache 14
    """

    __slots__ = ("last_us", "rows", "size_bytes")

    def __init__(self, rows: int = 0, size_bytes: int = 0, last_us: int = 0) -> None:
        self.rows = rows
        self.size_bytes = size_bytes
        self.last_us = last_us

    def ends_before(self, row: Row, settings: CacheSettings) -> bool:
        """Whether a row is the first of the next round."""
        if not self.rows:
            return False
        if row.kind == EventKind.CONF:
            return True
        share_bytes = settings.round_share * settings.max_bytes
        return not settings.round_rows and self.size_bytes + _size_bytes(row) > share_bytes

    def ends_now(self, settings: CacheSettings) -> bool:
        """Whether the round has as many rows as a round may have."""
        return 0 < settings.round_rows <= self.rows

    def take(self, row: Row) -> None:
        """A row of the round."""
        self.rows += 1
        self.size_bytes += _size_bytes(row)
        self.last_us = row.t_us


def _size_bytes(row: Row) -> int:
    if row.kind not in WITH_SIZES:
        return 0
    return int(row.sizes[0] * (row.count or 1)) if len(row.sizes) == 1 else sum(row.sizes)


def goal_bytes(reports: Sequence[Report], rows: int, limit: ByteLimit) -> int | None:
    """What may be cached after a round of so many rows; None where nothing has to leave.

    A round of one row is held to the trigger and the target as in exact mode, so is one that inserted no more than
    lies between them; a busier one is cut so that the mean size is that of exact mode.
    """
    total_bytes = sum(report.current_bytes for report in reports)
    inserted_bytes = sum(report.inserted_bytes for report in reports)
    trigger_bytes, goal = limit.trigger_bytes, limit.target_bytes
    if rows != 1 and inserted_bytes > trigger_bytes - goal:
        trigger_bytes = goal = max(0, (trigger_bytes + goal - inserted_bytes) // 2)
    return goal if total_bytes > trigger_bytes and total_bytes > goal else None


def horizon_of(reports: Sequence[Report], free_bytes: int) -> Horizon:
    """The place in the queue of the whole broker up to which `free_bytes`, which are more than 0, are freed."""
    horizon = None
    for line in merge(*(report.lines for report in reports)):
        horizon = Horizon(line.laps, line.key)
        free_bytes -= line.size_bytes
        if free_bytes <= 0:
            break
    assert horizon is not None  # noqa: S101  shards report all that they have, and there is something to free
    return horizon
