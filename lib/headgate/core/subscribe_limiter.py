"""The subscribe limiter: one bucket per consumer, refused attempts take nothing (rate-limiters 8)."""

from headgate.core.numbers import SECOND_NS, sat
from headgate.core.token_bucket import TokenBucket


def full_bucket(rate: int, period_s: int, at_ns: int) -> TokenBucket:
    """A consumer's bucket at its first attempt, or after its limit has changed; rate and period >= 1."""
    return TokenBucket(rate, created_ns=at_ns, period_ns=sat(period_s * SECOND_NS))


def is_let_in(bucket: TokenBucket, at_ns: int) -> bool:
    """Whether one subscribe is let in; if so it takes a token, else nothing is taken."""
    if not bucket.contains(at_ns):
        return False
    bucket.consume(1)
    return True
