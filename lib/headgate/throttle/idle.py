"""Which buckets are as good as new ones: full, after an hour of event time in which nothing came to them."""

import numpy as np
from numpy.typing import NDArray

from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.numbers import HOUR_NS, SECOND_NS

_SURELY = 1 - 1e-9
"""Of what a bucket has earned, floating-point numbers are sure of so much."""


def are_full(buckets: dict[str, Ints], period_s: Ints | int, at_ns: Ints | int) -> NDArray[np.bool_]:
    """Which buckets have surely earned all they can hold by `at_ns`. None at all is full, a blocked one never.

    What is full stays so until something comes to it.
    """
    rate, lacking = buckets["rate"], buckets["rate"].astype(np.float64) - buckets["balance"]
    earned = (at_ns - buckets["last_ns"]) / np.float64(SECOND_NS) * rate / np.maximum(period_s, 1)
    full: NDArray[np.bool_] = (rate == 0) | ((rate > 0) & (earned * _SURELY - 1 >= lacking))
    return full


def are_renewed(windows: dict[str, Ints], period_s: Ints, at_ns: int) -> NDArray[np.bool_]:
    """Which classic windows have surely nothing acquired by `at_ns`. last_ns: the next renewal, NO_VALUE: none is due.

    The first renewal gives `rate` back, each one after it `remainder_ns` if that is set, else the same.
    """
    rate, permits = windows["rate"].astype(np.float64), windows["remainder_ns"]
    is_due = (windows["last_ns"] != NO_VALUE) & (windows["last_ns"] < at_ns)
    since_ns = np.where(is_due, at_ns - windows["last_ns"], 0)
    more = np.maximum(since_ns / np.float64(SECOND_NS) / period_s * _SURELY - 1, 0)
    given = rate + more * np.where(permits > 0, permits, windows["rate"])
    renewed: NDArray[np.bool_] = (rate == 0) | (windows["balance"] == 0)
    renewed |= is_due & (given * _SURELY >= windows["balance"])
    return renewed


def are_forgotten(buckets: dict[str, Ints], period_s: Ints | int, at_ns: Ints | int) -> NDArray[np.bool_]:
    """Which of these buckets, told by their last refill, nobody remembers at `at_ns`: they were full as its hour began,
    and idle for all of the hour before.
    """
    hour = np.asarray(at_ns) // HOUR_NS
    forgotten: NDArray[np.bool_] = (buckets["last_ns"] // HOUR_NS < hour - 1) & are_full(
        buckets, period_s, hour * HOUR_NS
    )
    return forgotten
