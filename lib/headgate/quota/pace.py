"""Whether the batches of a job of one broker are short enough for its epochs, said in the log when they are not."""

import logging
from collections import deque
from statistics import median

LOG = logging.getLogger(__name__)

LOOKED_AT = 5
"""Batches: the first one of a job is long for other reasons, and so may be one among many."""
AGAIN_AFTER_S = 60.0
MARGIN = 1.5
"""A batch now and then is longer than most."""


class Pace:
    """Says so when most of the last batches were longer than an epoch, and again a minute later if they still are.

    Other jobs judge what this one reports by their own time: what is two epochs behind it they drop. interval_ms: of
    the trigger, which batches may not follow each other faster than.
    """

    def __init__(self, epoch_ms: int, interval_ms: int) -> None:
        self._epoch_ms = epoch_ms
        self._interval_ms = interval_ms
        self._lengths_ms: deque[float] = deque(maxlen=LOOKED_AT)
        self._said_at_s: float | None = None

    def took(self, batch_s: float, now_s: float) -> None:
        """A batch took so long. now_s: of any clock that goes on evenly."""
        self._lengths_ms.append(max(batch_s * 1000, self._interval_ms))
        length_ms = median(self._lengths_ms)
        if len(self._lengths_ms) < LOOKED_AT or length_ms <= self._epoch_ms:
            return
        if self._said_at_s is not None and now_s < self._said_at_s + AGAIN_AFTER_S:
            return
        self._said_at_s = now_s
        wanted_ms = -int(-length_ms * MARGIN // 1000) * 1000
        shorter = (
            "lower trigger.interval_ms" if length_ms == self._interval_ms else "give the job more cores or less input"
        )
        LOG.warning(
            "batches take %.1f s and an epoch is %.1f s: this job's reports come too late for the jobs of other "
            "brokers, and shares of quotas go wrong. Set resourceGroupEpochMillis to %d or more in the broker.conf of "
            "all of them, with a new --output; or %s",
            length_ms / 1000,
            self._epoch_ms / 1000,
            wanted_ms,
            shorter,
        )
