"""Array form of one publish limiter: two buckets with a period of 1 s and the rate as capacity, and when they wake.

Source: rate-limiters 4.
"""

from typing import Any

import numpy as np
from numpy import int64

from headgate.core.kernels.columns import Ints, Records
from headgate.core.kernels.compiled import borrowing, inlined, inner, kernel
from headgate.core.kernels.int128 import MAX, MIN, sat_add, wait_ns
from headgate.core.kernels.publish.types import PERIOD_NS, RESOLUTION_NS
from headgate.core.kernels.token_bucket import draw, pause_of, set_due, set_gate, target_of


@borrowing
def settle(buckets: Records) -> None:
    """Derive what follows from rate, last_ns and remainder_ns of every bucket."""
    for i in range(buckets.shape[0]):
        for kind in range(buckets.shape[1]):
            _settle(buckets[i, kind])


@inlined
def _settle(bucket: Any) -> None:
    bucket.period_ns, bucket.resolution_ns, bucket.capacity = PERIOD_NS, RESOLUTION_NS, bucket.rate
    set_gate(bucket)


@inner
def change_rate(bucket: Any, rate: int64, floor: int64) -> None:
    bucket.rate, bucket.floor = rate, floor
    _settle(bucket)


@borrowing
def fill(bucket: Any, now_ns: int64) -> None:
    """A new full bucket, an empty one if blocked; where there is none, zeros: equal limiters have equal state."""
    bucket.balance = max(bucket.rate, int64(0))
    bucket.last_ns = now_ns if bucket.rate > 0 else int64(0)
    bucket.remainder_ns = 0
    set_due(bucket)


@inner
def set_rate_of(bucket: Any, rate: int64, floor: int64, now_ns: int64, initialised: bool, keeps_debt: bool) -> None:
    """Give a bucket another rate (rate-limiters 4.4); before its limiter's first publish that only sets it.

    A group's balance, debt and remainder stay, also through a time in which it is blocked and earns nothing.
    """
    keeps = keeps_debt and bucket.rate != 0 and rate != 0
    if keeps and initialised and bucket.rate > 0:
        draw(bucket, int64(0), now_ns)
    elif keeps and initialised:
        bucket.last_ns = now_ns
    change_rate(bucket, rate, floor)
    if not keeps and initialised:
        fill(bucket, now_ns)


@borrowing
def bucket_pause_ns(bucket: Any, now_ns: int64) -> int64:
    return pause_of(bucket, now_ns, target_of(bucket))


@inlined
def blocking(buckets: Records, i: int64) -> int:
    """The blocked dimensions of a limiter as bits: 1 messages, 2 bytes."""
    return (buckets[i, 0].rate < 0) + 2 * (buckets[i, 1].rate < 0)


@inner
def limiter_pause_ns(buckets: Records, i: int64, now_ns: int64) -> int64:
    """Rate-limiters 4.3; MAX where a dimension is blocked, and then nothing is refilled."""
    if blocking(buckets, i) != 0:
        return int64(MAX)
    pause_ns = int64(0)
    for kind in range(2):
        if buckets[i, kind].rate > 0:
            pause_ns = max(pause_ns, bucket_pause_ns(buckets[i, kind], now_ns))
    return pause_ns


@inner
def wake_time_ns(buckets: Records, i: int64, now_ns: int64) -> int64:
    """Rate-limiters 4.3, with the buckets just read at `now_ns`; MAX where a dimension is blocked."""
    if blocking(buckets, i) != 0:
        return int64(MAX)
    wake_ns = now_ns
    for kind in range(2):
        bucket = buckets[i, kind]
        if bucket.rate > 0:
            pause_ns = bucket_pause_ns(bucket, now_ns)
            if pause_ns > 0:
                wake_ns = max(wake_ns, sat_add(now_ns, pause_ns), sat_add(bucket.due_ns, int64(1)))
    return wake_ns


@borrowing
def charge_limiter(limiter: Any, buckets: Records, i: int64, messages: int64, bytes_: int64, now_ns: int64) -> int:
    """Charge both dimensions of one limiter, which is made full at its first publish.

    Returns the dimensions for which it throttles as bits: 1 messages, 2 bytes. From a blocked one nothing is drawn.
    """
    initialised = limiter.initialised != 0
    limiter.initialised = 1
    causes = 0
    for kind in range(2):
        bucket = buckets[i, kind]
        if bucket.rate == 0:
            continue
        if not initialised:
            fill(bucket, now_ns)
        if bucket.rate < 0 or draw(bucket, messages if kind == 0 else bytes_, now_ns) <= 0:
            causes |= 1 << kind
    return causes


@inner
def initialise(limiter: Any, buckets: Records, i: int64, now_ns: int64) -> None:
    """Make a limiter that nothing was charged to yet."""
    if limiter.initialised != 0:
        return
    limiter.initialised = 1
    for kind in range(2):
        fill(buckets[i, kind], now_ns)


@kernel
def debt_floors(rates: Ints, max_debt_ms: int64) -> Ints:
    """-max_debt for each rate with the bound `max_debt_ms` (rate-limiters 4.5); MIN, no bound, if that is below 0."""
    floors = np.full(rates.shape, MIN)
    if max_debt_ms >= 0:
        for i in range(rates.shape[0]):
            for kind in range(rates.shape[1]):
                floors[i, kind] = -wait_ns(np.uint64(max(rates[i, kind], 0)), max_debt_ms, int64(1000))
    return floors
