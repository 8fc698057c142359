"""The publish limiter of a resource group, which keeps its debt on a rate change (resource-groups 1, 2)."""

from headgate.core.numbers import MAX
from headgate.core.publish.publish_limiter import OnRateChange, PublishLimiter, Scope, check_amounts
from headgate.core.token_bucket import TokenBucket

BLOCKED = -1
"""A rate that lets nothing pass; 0 does not limit."""


class GroupLimiter(PublishLimiter):
    """As PublishLimiter, with rates of BLOCKED: who is charged there waits until the rate changes; nothing is drawn.

    Balance and debt of a dimension stay while it is blocked, and it earns nothing; it goes on from the instant at which
    it is limited again. One that was never limited before begins empty then: a block hands out no burst.

    Arguments: rates per second, 0 (not limited) or from 1, or BLOCKED; the others as in PublishLimiter.
    """

    __slots__ = ("blocked",)

    def __init__(
        self,
        messages_per_s: int,
        bytes_per_s: int,
        *,
        created_ns: int,
        max_debt_ms: int | None = None,
        release_quantum: int | None = None,
    ) -> None:
        super().__init__(
            Scope.GROUP,
            messages_per_s,
            bytes_per_s,
            created_ns=created_ns,
            max_debt_ms=max_debt_ms,
            release_quantum=release_quantum,
            on_rate_change=OnRateChange.REPRICE,
        )
        rates = (messages_per_s, bytes_per_s)
        self.blocked = (messages_per_s == BLOCKED, bytes_per_s == BLOCKED)
        messages, bytes_ = (
            _unearned() if rate == BLOCKED else bucket for rate, bucket in zip(rates, self.buckets, strict=True)
        )
        self.buckets = (messages, bytes_)

    @property
    def is_blocked(self) -> bool:
        return any(self.blocked)

    @property
    def blocking(self) -> int:
        """The blocked dimensions as bits: 1 messages, 2 bytes."""
        return self.blocked[0] + 2 * self.blocked[1]

    @property
    def rates(self) -> tuple[int, int]:
        """Messages and bytes per second; 0 is not limited."""
        messages, bytes_ = super().rates
        return BLOCKED if self.blocked[0] else messages, BLOCKED if self.blocked[1] else bytes_

    def causes(self, messages: int, bytes_: int, now_ns: int) -> int:
        """As PublishLimiter.causes; a blocked dimension is one of them, and nothing is drawn from it."""
        check_amounts(messages, bytes_)
        causes = 0
        for kind, amount in enumerate((messages, bytes_)):
            bucket = self.buckets[kind]
            if self.blocked[kind] or (bucket is not None and not bucket.consume_check(amount, now_ns)):
                causes |= 1 << kind
        self.throttled_publishes += causes != 0
        return causes

    def pause_ns(self, now_ns: int) -> int:
        """As PublishLimiter.pause_ns; MAX while blocked."""
        return MAX if self.is_blocked else super().pause_ns(now_ns)

    def wake_time_ns(self, now_ns: int) -> int:
        """As PublishLimiter.wake_time_ns; MAX, which is never, while blocked."""
        return MAX if self.is_blocked else super().wake_time_ns(now_ns)

    def update(self, messages_per_s: int, bytes_per_s: int, now_ns: int) -> list[object]:
        """Set both rates; where one changed, drain at once and return who was released."""
        rates = (messages_per_s, bytes_per_s)
        if rates == self.rates:
            return []
        old, (messages, bytes_) = self.rates, self.buckets
        self.buckets = (
            self._moved(messages, old[0], rates[0], now_ns),
            self._moved(bytes_, old[1], rates[1], now_ns),
        )
        self.blocked = (messages_per_s == BLOCKED, bytes_per_s == BLOCKED)
        return self.drain(now_ns)

    def _moved(self, bucket: TokenBucket | None, old: int, rate: int, now_ns: int) -> TokenBucket | None:
        if bucket is None or rate == 0:
            return _unearned() if rate == BLOCKED else self._bucket(rate, now_ns)
        if rate == old:
            return bucket
        if old == BLOCKED:
            bucket.last_ns = now_ns
        if rate == BLOCKED:
            bucket.take(0, now_ns)
        else:
            bucket.reprice(rate, self._max_debt(rate), now_ns)
        return bucket


def _unearned() -> TokenBucket:
    """The bucket of a dimension that is blocked before it was limited."""
    return TokenBucket(1, created_ns=0, initial=0)
