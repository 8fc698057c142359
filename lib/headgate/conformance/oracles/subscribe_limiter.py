"""The subscribe limiter of a topic as one object: the buckets of its consumers (rate-limiters 8)."""

from collections.abc import Mapping
from typing import Any, Self

from headgate.core.numbers import int64
from headgate.core.ordered_time import enter
from headgate.core.state import PlainData, check_fields
from headgate.core.subscribe_limiter import full_bucket, is_let_in
from headgate.core.token_bucket import TokenBucket
from headgate.errors import InvalidArgument

SubscribeKey = tuple[str, str, int]


class SubscribeLimiter:
    """No balance is ever negative: an attempt is let in only while its bucket has a token, and takes one.

    A key is client host, consumer name and consumer id; its bucket is created full on its first attempt. Operations
    act at the highest time seen.

    Arguments, each with its range:
        rate: subscribes per period and key; 0 or below disables the limiter.
        period_s: seconds; 0 or below disables the limiter.
        created_ns: the first instant.

    Raises InvalidArgument for values outside 64 bits and malformed keys. Source: rate-limiters 8.
    """

    __slots__ = ("_buckets", "high_ns", "period_s", "rate")

    def __init__(self, rate: int, period_s: int, *, created_ns: int) -> None:
        self.rate = int64(rate, "rate")
        self.period_s = int64(period_s, "period_s")
        self.high_ns = int64(created_ns, "created_ns")
        self._buckets: dict[SubscribeKey, TokenBucket] = {}

    @property
    def enabled(self) -> bool:
        """Whether attempts are limited at all."""
        return self.rate > 0 and self.period_s > 0

    def attempt(self, host: str, consumer: str, id_: int, now_ns: int) -> bool:
        """Whether the subscribe is let in; if so it takes a token. Always true while disabled."""
        at_ns = self._enter(now_ns)
        key = _key(host, consumer, id_)
        if not self.enabled:
            return True
        if key not in self._buckets:
            self._buckets[key] = full_bucket(self.rate, self.period_s, at_ns)
        return is_let_in(self._buckets[key], at_ns)

    def available(self, host: str, consumer: str, id_: int, now_ns: int) -> int:
        """Subscribes left to the key, -1 if it has no bucket. A read is a refill."""
        at_ns = self._enter(now_ns)
        bucket = self._buckets.get(_key(host, consumer, id_))
        return -1 if bucket is None else bucket.balance_at(at_ns)

    def update(self, rate: int, period_s: int, now_ns: int) -> None:
        """Set rate and period. An equal pair changes nothing; any other makes every bucket full, or removes them."""
        at_ns = self._enter(now_ns)
        int64(rate, "rate")
        int64(period_s, "period_s")
        if (rate, period_s) == (self.rate, self.period_s):
            return
        self.rate, self.period_s = rate, period_s
        self._buckets = {key: full_bucket(rate, period_s, at_ns) for key in self._buckets} if self.enabled else {}

    def keys(self, now_ns: int) -> list[SubscribeKey]:
        """The keys that have a bucket, in the order of their first attempts."""
        self._enter(now_ns)
        return list(self._buckets)

    def advance(self, now_ns: int) -> None:
        """Move time to `now_ns`; no other effect. rate-limiters 3.1"""
        self._enter(now_ns)

    def state(self) -> PlainData:
        """Parameters and state as plain data; buckets are a list of [host, consumer, id, bucket]."""
        return {
            "rate": self.rate,
            "period_s": self.period_s,
            "high_ns": self.high_ns,
            "buckets": [[*key, bucket.state()] for key, bucket in self._buckets.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the limiter that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, ("rate", "period_s", "high_ns", "buckets"))
        limiter = cls(state["rate"], state["period_s"], created_ns=state["high_ns"])
        for host, consumer, id_, bucket in state["buckets"]:
            limiter._buckets[host, consumer, id_] = TokenBucket.from_state(bucket)
        return limiter

    def _enter(self, now_ns: int) -> int:
        self.high_ns = enter(now_ns, self.high_ns)
        return self.high_ns


def _key(host: str, consumer: str, id_: int) -> SubscribeKey:
    if not isinstance(host, str) or not isinstance(consumer, str):
        raise InvalidArgument(f"host, consumer: got {host!r}, {consumer!r}, allowed are strings")
    return host, consumer, int64(id_, "id")
