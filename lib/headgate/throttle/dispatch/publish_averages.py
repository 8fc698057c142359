"""How fast topics are published to, for dispatch rates relative to that (rate-limiters 6.2).

Averages are those of whole intervals of event time, as Pulsar's stats have them: told at the end of each, where another
one than before, and 0 before the first.
"""

from typing import NamedTuple

import numpy as np

from headgate.arrow.columns import sums_by
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.numbers import MAX, MIN, SECOND_NS
from headgate.throttle.dispatch.dispatch_state import Averages


class ChangedAverages(NamedTuple):
    """Averages that changed, in the order of time: when, whose (positions of topics), messages and bytes a second."""

    at_us: Ints
    topic: Ints
    averages: Ints


def changed_averages(  # noqa: PLR0917  what was published, by column
    state: Averages, topic: Ints, second: Ints, amounts: Ints, topics: int, until_ns: int, interval_s: int
) -> ChangedAverages:
    """Take in seconds of publishes that have ended, and tell what averages follow up to `until_ns`.

    topic, second, amounts: a row a topic and second, with its messages and bytes. topics: how many there are. Later
    seconds all count: those up to `until_ns` are closed.
    """
    counts = second >= state.since_ns // SECOND_NS
    topic, second, amounts = topic[counts], second[counts], amounts[counts]
    state.since_ns = MIN + 1
    open_interval = until_ns // SECOND_NS // interval_s
    of_row = second // interval_s
    averages, sums = np.zeros((topics, 2), np.int64), np.zeros((topics, 2), np.int64)
    averages[state.topic], sums[state.topic] = state.averages, state.sums
    begun = of_row.min(initial=open_interval) if state.interval == NO_VALUE else state.interval
    told: list[tuple[int, Ints, Ints]] = []
    ended = begun - 1
    for interval in sorted({begun, *of_row.tolist()}):
        here = of_row == interval
        new = np.stack([sums_by(amounts[here, kind], topic[here], topics) for kind in range(2)], axis=1)
        sums = np.where(sums > MAX - new, MAX, sums + new)
        if interval >= open_interval:
            break
        _fade(told, averages, ended, interval, interval_s)
        _tell(told, averages, sums // interval_s, (interval + 1) * interval_s)
        sums[:] = 0
        ended = interval
    _fade(told, averages, ended, open_interval, interval_s)
    kept = np.flatnonzero((averages != 0).any(axis=1) | (sums != 0).any(axis=1))
    state.interval, state.topic, state.sums, state.averages = open_interval, kept, sums[kept], averages[kept]
    at_s = np.repeat(np.array([at for at, _, _ in told], np.int64), [len(whose) for _, whose, _ in told])
    none = np.empty(0, np.int64), np.empty((0, 2), np.int64)
    return ChangedAverages(
        at_s * 1_000_000,
        np.concatenate([none[0], *(whose for _, whose, _ in told)]),
        np.concatenate([none[1], *(new for _, _, new in told)]),
    )


def _fade(told: list[tuple[int, Ints, Ints]], averages: Ints, ended: int, interval: int, interval_s: int) -> None:
    """Where an interval passed between `ended` and `interval`, nothing was published in it."""
    if interval > ended + 1:
        _tell(told, averages, np.zeros_like(averages), (ended + 2) * interval_s)


def _tell(told: list[tuple[int, Ints, Ints]], averages: Ints, new: Ints, at_s: int) -> None:
    changed = np.flatnonzero((averages != new).any(axis=1))
    if len(changed):
        told.append((at_s, changed, new[changed].copy()))
        averages[:] = new
