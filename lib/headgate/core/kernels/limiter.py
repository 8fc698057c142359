"""Array form of one publish limiter's buckets: refill, charge, pause, wake time.

Source: rate-limiters 2 and 4, with a period of 1 s and the rate as capacity.
"""

import numpy as np
from numpy import int64

from headgate.core.kernels import inlined, kernel
from headgate.core.kernels.domain_types import PERIOD_NS, RESOLUTION_NS, SLOWEST_FAST_RATE, Ints, Limiters
from headgate.core.kernels.int128 import MIN, credit, distance, earn, sat_add, sat_sub, wait_ns


@inlined
def gate_ns(rate: int64, remainder_ns: int64) -> int64:
    if rate <= SLOWEST_FAST_RATE:
        return max(int64(0), PERIOD_NS // rate - remainder_ns - 1)
    return RESOLUTION_NS


@inlined
def take(limiters: Limiters, kind: int, i: int64, tokens: int64, now_ns: int64) -> int64:
    """Refill, then charge: rate-limiters 2.2."""
    rate, remainder_ns, last_ns = limiters.rate[i, kind], limiters.remainder_ns[i, kind], limiters.last_ns[i, kind]
    if now_ns > sat_add(last_ns, gate_ns(rate, remainder_ns)):
        new, remainder_ns = earn(distance(last_ns, now_ns) + np.uint64(remainder_ns), rate, PERIOD_NS)
        limiters.remainder_ns[i, kind] = remainder_ns
        limiters.last_ns[i, kind] = now_ns
        if new > 0:
            limiters.balance[i, kind] = credit(limiters.balance[i, kind], new, rate)
    left = max(sat_sub(limiters.balance[i, kind], tokens), limiters.floor[i, kind])
    limiters.balance[i, kind] = left
    return left


@kernel
def bucket_pause_ns(limiters: Limiters, kind: int, i: int64, now_ns: int64) -> int64:
    rate = limiters.rate[i, kind]
    balance = take(limiters, kind, i, int64(0), now_ns)
    target = max(int64(1), rate // 100)
    if balance >= target:
        return int64(0)
    return wait_ns(distance(balance, target), PERIOD_NS, rate)


@kernel
def wake_time_ns(limiters: Limiters, i: int64, now_ns: int64) -> int64:
    """Rate-limiters 4.3, with the buckets just read at `now_ns`."""
    wake_ns = now_ns
    for kind in range(2):
        if limiters.rate[i, kind] == 0:
            continue
        pause_ns = bucket_pause_ns(limiters, kind, i, now_ns)
        if pause_ns > 0:
            gate = gate_ns(limiters.rate[i, kind], limiters.remainder_ns[i, kind])
            refill_due_ns = sat_add(sat_add(limiters.last_ns[i, kind], gate), int64(1))
            wake_ns = max(wake_ns, sat_add(now_ns, pause_ns), refill_due_ns)
    return wake_ns


@kernel
def fill(limiters: Limiters, kind: int, i: int64, now_ns: int64) -> None:
    """A new full bucket; where there is none, zeros, so that equal limiters have equal state."""
    limiters.balance[i, kind] = limiters.rate[i, kind]
    limiters.last_ns[i, kind] = now_ns if limiters.rate[i, kind] > 0 else int64(0)
    limiters.remainder_ns[i, kind] = 0


@inlined
def charge_limiter(limiters: Limiters, i: int64, messages: int64, bytes_: int64, now_ns: int64) -> bool:
    """Charge both dimensions of one limiter, which is made full at its first publish; True if it throttles."""
    born = limiters.born[i] != 0
    limiters.born[i] = 1
    left = True
    for kind in range(2):
        if limiters.rate[i, kind] == 0:
            continue
        if not born:
            fill(limiters, kind, i, now_ns)
        if take(limiters, kind, i, messages if kind == 0 else bytes_, now_ns) <= 0:
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
