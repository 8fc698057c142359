"""Pauses up to the wake time: at their end the limiter has drained, so nothing has to be prolonged."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.core.numbers import MILLISECOND_NS
from headgate.core.protocol.pause import Bucket, refill_ns, until_refilled, wake_ns
from headgate.core.protocol.reasons import Reason
from headgate.core.publish_limiter import PublishLimiter

TOPIC = Reason.TopicProduceQuotaExceeded
RATES = st.sampled_from((0, 1, 3, 7, 60, 62, 63, 100, 999, 1000, 12_345, 10**9))


def released_ns(limiter):
    """When the limiter lets its producer go, if nothing is charged meanwhile."""
    while limiter.queue:
        due_ns = limiter.next_drain_ns
        limiter.drain(due_ns)
    return due_ns


@settings(max_examples=300, deadline=None)
@given(
    rates=st.tuples(RATES, RATES).filter(any),
    charges=st.lists(st.tuples(st.integers(0, 50_000_000), st.integers(1, 500)), min_size=1, max_size=8),
)
def test_a_limiter_has_drained_when_the_pause_is_over_and_hardly_earlier(rates, charges):
    now_ns = 0
    limiter = PublishLimiter("topic", *rates, created_ns=0)
    for gap_ns, messages in charges:
        now_ns += gap_ns
        is_throttled = limiter.charge(messages, 10 * messages, now_ns)
    if not is_throttled:
        return
    limiter.enqueue("p", now_ns)
    buckets = [Bucket(one.balance, one.rate) for one in limiter.buckets if one is not None]
    end_ns = now_ns + until_refilled({TOPIC: buckets}, wake_ns).pause_ms * MILLISECOND_NS

    released = released_ns(limiter)
    assert released <= end_ns
    slowest = min(one.rate_per_s for one in buckets)
    assert end_ns - released <= 2 * max(16_000_000, 10**9 // slowest) + MILLISECOND_NS + 1


def test_the_wake_time_is_a_step_of_the_clock_or_a_token_later_than_the_refill():
    assert (refill_ns(Bucket(-9, 100)), wake_ns(Bucket(-9, 100))) == (100_000_000, 116_000_001)
    assert (refill_ns(Bucket(0, 2)), wake_ns(Bucket(0, 2))) == (500_000_000, 1_000_000_001)
    assert wake_ns(Bucket(1, 2)) == 0
    assert wake_ns(Bucket(-(2**63), 1)) == 2**63 - 1
