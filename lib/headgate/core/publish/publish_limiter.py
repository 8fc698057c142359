"""One publish limiter: up to two buckets, a queue of throttled producers, one pending drain (rate-limiters 4)."""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from headgate.core.names import one_of
from headgate.core.numbers import MAX, at_least, int64, sat
from headgate.core.state import PlainData, check_fields
from headgate.core.token_bucket import RESOLUTION_NS, TokenBucket


class Scope(StrEnum):
    """What a limiter covers, in the order in which a publish charges limiters (rate-limiters 4.1, 4.2)."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"


class OnRateChange(StrEnum):
    """What a new rate does to an existing bucket (rate-limiters 4.4)."""

    REPLACE = "replace"
    REPRICE = "reprice"


class PublishLimiter:
    """A publish is charged in full and never refused; a producer that leaves a bucket empty waits in the queue.

    The queue is empty if and only if `next_drain_ns` is None; entries leave it in the order they came, each once.
    The limiter keeps no clock: its owner passes instants that never decrease and calls `drain` when one is due.

    Arguments, all whole numbers:
        scope: `topic`, `broker` or `group`.
        messages_per_s, bytes_per_s: rates; 0 or below does not limit the dimension (no bucket).
        created_ns: instant at which the buckets are full.
        max_debt_ms: bounds each bucket's debt to this many ms of tokens, >= 0; None: no bound.
        release_quantum: producers released by one drain at most, >= 1; None: all.
        on_rate_change: `replace` (a new rate means a new full bucket) or `reprice` (balance and debt stay).

    Raises InvalidArgument for anything else. Source: PRs 24799 and 25502; rate-limiters 4.
    """

    __slots__ = (
        "buckets",
        "max_debt_ms",
        "next_drain_ns",
        "on_rate_change",
        "queue",
        "release_quantum",
        "scope",
        "throttled_publishes",
    )

    def __init__(
        self,
        scope: str,
        messages_per_s: int,
        bytes_per_s: int,
        *,
        created_ns: int,
        max_debt_ms: int | None = None,
        release_quantum: int | None = None,
        on_rate_change: str = OnRateChange.REPLACE,
    ) -> None:
        self.scope = one_of(Scope, scope, "scope")
        self.on_rate_change = one_of(OnRateChange, on_rate_change, "on_rate_change")
        self.max_debt_ms = None if max_debt_ms is None else at_least(0, max_debt_ms, "max_debt_ms")
        self.release_quantum = None if release_quantum is None else at_least(1, release_quantum, "release_quantum")
        int64(created_ns, "created_ns")
        self.buckets = (
            self._bucket(_limit(messages_per_s, "messages_per_s"), created_ns),
            self._bucket(_limit(bytes_per_s, "bytes_per_s"), created_ns),
        )
        self.queue: deque[Any] = deque()
        self.next_drain_ns: int | None = None
        self.throttled_publishes = 0

    def charge(self, messages: int, bytes_: int, now_ns: int) -> bool:
        """Charge both dimensions, always, and tell whether the publish is throttled (a bucket has no token left).

        `messages` and `bytes_` are >= 0; 0 still checks the balance. A throttled publish is counted in
        `throttled_publishes`; the caller marks the connection and calls `enqueue`. rate-limiters 4.2
        """
        return self.causes(messages, bytes_, now_ns) != 0

    def causes(self, messages: int, bytes_: int, now_ns: int) -> int:
        """Charge as `charge` does, and return the dimensions without tokens left as bits: 1 messages, 2 bytes."""
        check_amounts(messages, bytes_)
        message_bucket, byte_bucket = self.buckets
        causes = 0
        if message_bucket is not None and not message_bucket.consume_check(messages, now_ns):
            causes |= 1
        if byte_bucket is not None and not byte_bucket.consume_check(bytes_, now_ns):
            causes |= 2
        self.throttled_publishes += causes != 0
        return causes

    def enqueue(self, producer: Any, now_ns: int) -> None:
        """Append `producer` (plain data) to the queue; the first one plans the drain. rate-limiters 4.2"""
        self.queue.append(producer)
        if len(self.queue) == 1:
            self.next_drain_ns = self.wake_time_ns(now_ns)

    def pause_ns(self, now_ns: int) -> int:
        """Time until every bucket is expected to reach its target, in ns; 0 without buckets. rate-limiters 4.3"""
        return max((bucket.pause_ns(now_ns) for bucket in self.buckets if bucket is not None), default=0)

    def wake_time_ns(self, now_ns: int) -> int:
        """The instant of the next useful look: no pause ends and no bucket refills before it. rate-limiters 4.3

        Without the refill times, a drain just below the target would wake every few ns without effect.
        """
        wake_ns = now_ns
        for bucket in self.buckets:
            if bucket is None:
                continue
            pause_ns = bucket.pause_ns(now_ns)
            if pause_ns > 0:
                wake_ns = max(wake_ns, now_ns + pause_ns, bucket.refill_due_ns())
        return sat(wake_ns)

    def drain(self, now_ns: int) -> list[Any]:
        """Release waiting producers if nothing needs a pause, plan the next drain, and return who was released.

        Releases take no tokens. A drain that finds a pause re-arms; one stopped by the quantum resumes 16 ms later.
        rate-limiters 4.3
        """
        pause_ns = self.pause_ns(now_ns)
        quantum = MAX if self.release_quantum is None else self.release_quantum
        released: list[Any] = []
        while pause_ns == 0 and self.queue and len(released) < quantum:
            released.append(self.queue.popleft())
        if not self.queue:
            self.next_drain_ns = None
        elif pause_ns > 0:
            self.next_drain_ns = self.wake_time_ns(now_ns)
        else:
            self.next_drain_ns = sat(now_ns + RESOLUTION_NS)
        return released

    def update(self, messages_per_s: int, bytes_per_s: int, now_ns: int) -> list[Any]:
        """Set both rates; where one changed, drain at once and return who was released.

        A dimension whose rate is unchanged keeps its bucket, so a quota push that repeats a rate hands out no burst.
        0 or below removes the bucket. rate-limiters 4.4
        """
        int64(now_ns, "now_ns")
        rates = (_limit(messages_per_s, "messages_per_s"), _limit(bytes_per_s, "bytes_per_s"))
        if rates == self.rates:
            return []
        message_bucket, byte_bucket = self.buckets
        self.buckets = (self._changed(message_bucket, rates[0], now_ns), self._changed(byte_bucket, rates[1], now_ns))
        return self.drain(now_ns)

    @property
    def rates(self) -> tuple[int, int]:
        """Messages and bytes per second; 0 is not limited."""
        message_bucket, byte_bucket = self.buckets
        return (
            0 if message_bucket is None else message_bucket.rate,
            0 if byte_bucket is None else byte_bucket.rate,
        )

    def state(self) -> PlainData:
        """Parameters and state as plain data, if the queued values are."""
        return {
            "scope": str(self.scope),
            "on_rate_change": str(self.on_rate_change),
            "max_debt_ms": self.max_debt_ms,
            "release_quantum": self.release_quantum,
            "buckets": [None if bucket is None else bucket.state() for bucket in self.buckets],
            "queue": list(self.queue),
            "next_drain_ns": self.next_drain_ns,
            "throttled_publishes": self.throttled_publishes,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the limiter that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, cls.__slots__)
        limiter = cls.__new__(cls)
        limiter.scope = Scope(state["scope"])
        limiter.on_rate_change = OnRateChange(state["on_rate_change"])
        limiter.max_debt_ms = state["max_debt_ms"]
        limiter.release_quantum = state["release_quantum"]
        messages, bytes_ = state["buckets"]
        limiter.buckets = (_bucket_from(messages), _bucket_from(bytes_))
        limiter.queue = deque(state["queue"])
        limiter.next_drain_ns = state["next_drain_ns"]
        limiter.throttled_publishes = state["throttled_publishes"]
        return limiter

    def _bucket(self, rate: int, created_ns: int) -> TokenBucket | None:
        if rate == 0:
            return None
        return TokenBucket(rate, created_ns=created_ns, max_debt=self._max_debt(rate))

    def _changed(self, bucket: TokenBucket | None, rate: int, now_ns: int) -> TokenBucket | None:
        if bucket is None or rate == 0:
            return self._bucket(rate, now_ns)
        if bucket.rate != rate and self.on_rate_change is OnRateChange.REPLACE:
            return self._bucket(rate, now_ns)
        if bucket.rate != rate:
            bucket.reprice(rate, self._max_debt(rate), now_ns)
        return bucket

    def _max_debt(self, rate: int) -> int | None:
        if self.max_debt_ms is None:
            return None
        return sat(rate * self.max_debt_ms // 1000)


def check_amounts(messages: int, bytes_: int) -> None:
    """Raise InvalidArgument unless both amounts of a publish are >= 0. rate-limiters 4.2"""
    at_least(0, messages, "messages")
    at_least(0, bytes_, "bytes")


def _limit(rate: int, name: str) -> int:
    return max(int64(rate, name), 0)


def _bucket_from(state: Mapping[str, Any] | None) -> TokenBucket | None:
    return None if state is None else TokenBucket.from_state(state)
