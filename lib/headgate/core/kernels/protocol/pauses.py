"""How long a producer is asked to stop, exact in 64 bits (throttle-protocol 8). See core.protocol.broker.pause."""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.columns import Records
from headgate.core.kernels.compiled import inner
from headgate.core.kernels.int128 import distance, multiply_divide, wait_ns
from headgate.core.kernels.protocol.types import LIMITERS

_SECOND_MS = 1000
_SECOND_NS = int64(1_000_000_000)
_MILLISECOND_NS = 1_000_000
_TARGET_DIVISOR = 100


@inner
def refill_ns(balance: int64, rate: int64, passed_ms: int64) -> int64:
    """Ns until a bucket is at its target, with the tokens that came in `passed_ms`; at most 2^63-1."""
    target = max(int64(1), rate // _TARGET_DIVISOR)
    if balance >= target:
        return int64(0)
    missing = distance(balance, target)
    earned, _ = multiply_divide(uint64(rate), uint64(passed_ms), uint64(_SECOND_MS))
    if earned >= missing:
        return int64(0)
    return wait_ns(missing - earned, _SECOND_NS, rate)


@inner
def longest_ns(limiter: Any, now_ms: int64) -> int64:
    """The longest refill of a limiter's buckets, by its quote carried forward."""
    passed_ms = now_ms - limiter.quoted_ms
    longest = refill_ns(limiter.balance_0, limiter.rate_0, passed_ms)
    if limiter.buckets > 1:
        longest = max(longest, refill_ns(limiter.balance_1, limiter.rate_1, passed_ms))
    return longest


@inner
def in_ms(duration_ns: int64) -> int64:
    """Rounded up."""
    return duration_ns // _MILLISECOND_NS + (1 if duration_ns % _MILLISECOND_NS else 0)


@inner
def until_second(now_ms: int64, phase_ms: int64) -> int64:
    """1 to 1000 ms."""
    return _SECOND_MS - (now_ms - phase_ms) % _SECOND_MS


@inner
def extension(limiters: Records, p: int64, settings: Any, now_ms: int64) -> tuple[int64, int64]:
    """Pause and reason at the end of a window, over the reasons that hold producer `p`."""
    longest, reason = int64(-1), int64(0)
    for code in range(LIMITERS):
        limiter = limiters[p, code]
        if limiter.marked > limiter.released:
            duration_ns = longest_ns(limiter, now_ms) if settings.looks_at_buckets else int64(0)
            if duration_ns > longest:
                longest, reason = duration_ns, int64(code)
    if not settings.looks_at_buckets:
        return until_second(now_ms, settings.phase_ms), reason
    return (in_ms(longest) if longest > 0 else settings.idle_extension_ms), reason
