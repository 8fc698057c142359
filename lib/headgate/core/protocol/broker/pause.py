"""How long a producer is asked to stop: pause_for_millis (throttle-protocol 8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.core.numbers import MAX, MILLISECOND_NS, SECOND_MS, SECOND_NS
from headgate.core.protocol.reasons import Reason

TARGET_DIVISOR = 100
"""A bucket lets go at one hundredth of its rate: target and pause of rate-limiters 2.4, where capacity = rate."""


class Bucket(NamedTuple):
    """A limiter's bucket as it was told of: tokens, negative in debt, and tokens per second, >= 1."""

    balance: int
    rate_per_s: int


class Pause(NamedTuple):
    """What a command announces: ms to stop, and why."""

    pause_ms: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Quote:
    """The balances of a limiter at one time; without buckets where only second boundaries count."""

    at_ms: int
    buckets: Sequence[Bucket]

    def at(self, now_ms: int) -> tuple[Bucket, ...]:
        """The balances with the tokens that came since, with no regard to charges and capacities."""
        passed_ms = now_ms - self.at_ms
        return tuple(
            Bucket(bucket.balance + bucket.rate_per_s * passed_ms // SECOND_MS, bucket.rate_per_s)
            for bucket in self.buckets
        )


def until_second(now_ms: int, phase_ms: int, reasons: Iterable[Reason]) -> Pause:
    """1 to 1000 ms, to the next boundary of a second that is shifted by `phase_ms`; the lowest code is the reason."""
    return Pause(SECOND_MS - (now_ms - phase_ms) % SECOND_MS, min(reasons))


def until_refilled(limiters: Mapping[Reason, Sequence[Bucket]]) -> Pause:
    """At least 1 ms, so that every bucket of every limiter that tripped is at its target at the end of the pause."""
    duration_ns, reason = _longest(limiters)
    return Pause(max(1, _ms(duration_ns)), reason)


def extension(quotes: Mapping[Reason, Quote], now_ms: int, idle_extension_ms: int) -> Pause:
    """As `until_refilled`, by quotes carried forward; `idle_extension_ms` where they say that all is refilled."""
    duration_ns, reason = _longest({reason: quote.at(now_ms) for reason, quote in quotes.items()})
    return Pause(_ms(duration_ns) if duration_ns else idle_extension_ms, reason)


def refill_ns(bucket: Bucket) -> int:
    """Time in ns until the bucket is at its target, 0 where it is, at most 2^63-1."""
    need = max(1, bucket.rate_per_s // TARGET_DIVISOR) - bucket.balance
    return 0 if need <= 0 else min(need * SECOND_NS // bucket.rate_per_s, MAX)


def _longest(limiters: Mapping[Reason, Sequence[Bucket]]) -> tuple[int, Reason]:
    """The longest refill in ns and its limiter; compared before rounding, ties to the lower code."""
    durations = {reason: max(map(refill_ns, buckets)) for reason, buckets in limiters.items()}
    reason = min(durations, key=lambda reason: (-durations[reason], reason))
    return durations[reason], reason


def _ms(duration_ns: int) -> int:
    return -(-duration_ns // MILLISECOND_NS)
