"""Array form of one publish limiter: two buckets with a period of 1 s and the rate as capacity, and when they wake.

Source: rate-limiters 4.
"""

from typing import Any

import numpy as np
from numpy import int64

from headgate.core.kernels import inlined, kernel
from headgate.core.kernels.domain_types import PERIOD_NS, RESOLUTION_NS, Ints, Records
from headgate.core.kernels.int128 import MIN, sat_add, wait_ns
from headgate.core.kernels.token_bucket import draw, pause_of, set_due, set_gate, target_of


@kernel
def settle(buckets: Records) -> None:
    """Derive what follows from rate, last_ns and remainder_ns of every bucket."""
    for i in range(buckets.shape[0]):
        for kind in range(buckets.shape[1]):
            _settle(buckets[i, kind])


@inlined
def _settle(bucket: Any) -> None:
    bucket.period_ns, bucket.resolution_ns, bucket.capacity = PERIOD_NS, RESOLUTION_NS, bucket.rate
    set_gate(bucket)


@kernel
def change_rate(bucket: Any, rate: int64, floor: int64) -> None:
    bucket.rate, bucket.floor = rate, floor
    _settle(bucket)


@kernel
def fill(bucket: Any, now_ns: int64) -> None:
    """A new full bucket; where there is none, zeros, so that equal limiters have equal state."""
    bucket.balance = bucket.rate
    bucket.last_ns = now_ns if bucket.rate > 0 else int64(0)
    bucket.remainder_ns = 0
    set_due(bucket)


@kernel
def bucket_pause_ns(bucket: Any, now_ns: int64) -> int64:
    return pause_of(bucket, now_ns, target_of(bucket))


@kernel
def wake_time_ns(buckets: Records, i: int64, now_ns: int64) -> int64:
    """Rate-limiters 4.3, with the buckets just read at `now_ns`."""
    wake_ns = now_ns
    for kind in range(2):
        bucket = buckets[i, kind]
        if bucket.rate > 0:
            pause_ns = bucket_pause_ns(bucket, now_ns)
            if pause_ns > 0:
                wake_ns = max(wake_ns, sat_add(now_ns, pause_ns), sat_add(bucket.due_ns, int64(1)))
    return wake_ns


@inlined
def charge_limiter(limiter: Any, buckets: Records, i: int64, messages: int64, bytes_: int64, now_ns: int64) -> bool:
    """Charge both dimensions of one limiter, which is made full at its first publish; True if it throttles."""
    born = limiter.born != 0
    limiter.born = 1
    left = True
    for kind in range(2):
        bucket = buckets[i, kind]
        if bucket.rate == 0:
            continue
        if not born:
            fill(bucket, now_ns)
        if draw(bucket, messages if kind == 0 else bytes_, now_ns) <= 0:
            left = False
    return not left


@kernel
def debt_floors(rates: Ints, max_debt_ms: int64) -> Ints:
    """-max_debt for each rate with the bound `max_debt_ms` (rate-limiters 4.5); MIN, no bound, if that is below 0."""
    floors = np.full(rates.shape, MIN)
    if max_debt_ms >= 0:
        for i in range(rates.shape[0]):
            for kind in range(rates.shape[1]):
                floors[i, kind] = -wait_ns(np.uint64(max(rates[i, kind], 0)), max_debt_ms, int64(1000))
    return floors
