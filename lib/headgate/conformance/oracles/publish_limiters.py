"""Named publish limiters, their producers and the connections' trackers, in one ordered time (rate-limiters 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from headgate.core.names import known, unused
from headgate.core.numbers import MAX, at_least, flag, int64
from headgate.core.ordered_time import enter
from headgate.core.publish.publish_limiter import OnRateChange, PublishLimiter, Scope, check_amounts
from headgate.core.publish.throttle_tracker import SCOPE_TYPES, ThrottleTracker, ThrottleType
from headgate.core.state import PlainData, check_fields

SCOPE_ORDER = {scope: position for position, scope in enumerate(Scope)}


@dataclass(slots=True)
class Producer:
    """A producer's connection, the names of its limiters, and its topic where the rate-limited count is wanted."""

    connection: str
    limiters: list[str]
    topic: str | None = None


class PublishLimiters:
    """Each counter of a connection equals the queue entries of its producers in limiters of that scope.

    Operations act at the highest time seen, and every drain due by then runs first, in the order (due time,
    registration of the limiter). A late operation is never an error.

    Arguments, all whole numbers but the last:
        created_ns: the first instant, where registered limiters are full.
        release_quantum, max_debt_ms: of every limiter, as in PublishLimiter.
        auto_drain: false runs drains only by the `drain` operation and by updates.

    Every operation takes `now_ns` last and raises InvalidArgument for unknown names and values out of range.
    Source: rate-limiters 3.1, 4, 5.3.
    """

    __slots__ = (
        "_limiters",
        "_producers",
        "_rate_limited",
        "_releases",
        "_trackers",
        "auto_drain",
        "high_ns",
        "max_debt_ms",
        "release_quantum",
    )

    def __init__(
        self,
        *,
        created_ns: int,
        release_quantum: int | None = None,
        max_debt_ms: int | None = None,
        auto_drain: bool = True,
    ) -> None:
        self.high_ns = int64(created_ns, "created_ns")
        self.release_quantum = None if release_quantum is None else at_least(1, release_quantum, "release_quantum")
        self.max_debt_ms = None if max_debt_ms is None else at_least(0, max_debt_ms, "max_debt_ms")
        self.auto_drain = flag(auto_drain, "auto_drain")
        self._limiters: dict[str, PublishLimiter] = {}
        self._producers: dict[str, Producer] = {}
        self._trackers: dict[str, ThrottleTracker] = {}
        self._rate_limited: dict[str, int] = {}
        self._releases: list[list[Any]] = []

    def add_limiter(
        self,
        name: str,
        scope: str,
        messages_per_s: int,
        bytes_per_s: int,
        now_ns: int,
        *,
        on_rate_change: str = OnRateChange.REPLACE,
    ) -> None:
        """Register a limiter with full buckets; the order of registration is that of drains due together."""
        at_ns = self._enter(now_ns)
        unused(self._limiters, name, "limiter")
        self._limiters[name] = PublishLimiter(
            scope,
            messages_per_s,
            bytes_per_s,
            created_ns=at_ns,
            max_debt_ms=self.max_debt_ms,
            release_quantum=self.release_quantum,
            on_rate_change=on_rate_change,
        )

    def add_producer(
        self, name: str, connection: str, limiters: Sequence[str], now_ns: int, topic: str | None = None
    ) -> None:
        """Open a producer on `connection`, which is created where it is new, with the limiters it is charged to."""
        self._enter(now_ns)
        unused(self._producers, name, "producer")
        for limiter in limiters:
            self._limiter(limiter)
        self._producers[name] = Producer(connection, list(limiters), topic)
        self._trackers.setdefault(connection, ThrottleTracker())

    def close_producer(self, producer: str, now_ns: int) -> None:
        """The producer is gone; its queue entries stay and are released as usual. rate-limiters 4.5"""
        self._enter(now_ns)
        self._producer(producer)
        del self._producers[producer]

    def close_connection(self, connection: str, now_ns: int) -> None:
        """The connection's tracker becomes inactive; entries stay and releases still move its counts. 4.5"""
        self._enter(now_ns)
        self._tracker(connection).close()

    def attach(self, producer: str, limiter: str, now_ns: int) -> None:
        """Charge the producer to `limiter` too, from its next publish on; attached already, nothing changes. 4.5"""
        self._enter(now_ns)
        self._limiter(limiter)
        attached = self._producer(producer).limiters
        if limiter not in attached:
            attached.append(limiter)

    def detach(self, producer: str, limiter: str, now_ns: int) -> None:
        """Stop charging the producer to `limiter`; entries that wait there are released as usual. 4.5"""
        self._enter(now_ns)
        self._limiter(limiter)
        attached = self._producer(producer).limiters
        if limiter in attached:
            attached.remove(limiter)

    def publish(self, producer: str, messages: int, bytes_: int, now_ns: int) -> list[str]:
        """Charge one publish to every attached limiter, topic before broker before group, and return who throttles.

        Within a scope the order is that of attachment. There is no short-circuit, and the publish itself is neither
        rejected nor delayed. Each limiter that throttles marks the connection once and queues the producer, even
        where the mark is dropped. rate-limiters 4.2
        """
        at_ns = self._enter(now_ns)
        publisher = self._producer(producer)
        check_amounts(messages, bytes_)
        throttling = []
        for name in sorted(publisher.limiters, key=self._charge_order):
            limiter = self._limiters[name]
            if limiter.charge(messages, bytes_, at_ns):
                self._mark(publisher.connection, SCOPE_TYPES[limiter.scope])
                limiter.enqueue([producer, publisher.connection], at_ns)
                throttling.append(name)
        return throttling

    def update(self, limiter: str, messages_per_s: int, bytes_per_s: int, now_ns: int) -> None:
        """Change a limiter's rates; what that releases shows in `releases`. rate-limiters 4.4"""
        at_ns = self._enter(now_ns)
        self._release(limiter, self._limiter(limiter).update(messages_per_s, bytes_per_s, at_ns), at_ns)

    def drain(self, limiter: str, now_ns: int) -> list[str]:
        """Drain one limiter now and return the producers released. rate-limiters 4.3"""
        at_ns = self._enter(now_ns)
        return self._release(limiter, self._limiter(limiter).drain(at_ns), at_ns)

    def advance(self, now_ns: int) -> None:
        """Run the drains due by `now_ns` and move time there; no other effect. rate-limiters 3.1"""
        self._enter(now_ns)

    def releases(self, now_ns: int) -> list[list[Any]]:
        """Releases since the last call, oldest first, as [at_ns, limiter, producer]. They pile up until then."""
        self._enter(now_ns)
        taken, self._releases = self._releases, []
        return taken

    def balance(self, limiter: str, now_ns: int) -> tuple[int | None, int | None]:
        """Tokens left for messages and bytes, None where not limited. A read is a refill. rate-limiters 2.3"""
        at_ns = self._enter(now_ns)
        messages, bytes_ = self._limiter(limiter).buckets
        return (
            None if messages is None else messages.balance_at(at_ns),
            None if bytes_ is None else bytes_.balance_at(at_ns),
        )

    def pause_ns(self, limiter: str, now_ns: int) -> int:
        """Time until the limiter's buckets are expected to reach their targets, in ns. A read is a refill. 4.3"""
        at_ns = self._enter(now_ns)
        return self._limiter(limiter).pause_ns(at_ns)

    def next_drain_ns(self, limiter: str, now_ns: int) -> int | None:
        """The instant of the limiter's pending drain, None while nobody waits, MAX for never. rate-limiters 4.3"""
        self._enter(now_ns)
        return self._limiter(limiter).next_drain_ns

    def queue(self, limiter: str, now_ns: int) -> list[str]:
        """The producers that wait, first to be released first; one may wait several times. rate-limiters 4.2"""
        self._enter(now_ns)
        return [producer for producer, _ in self._limiter(limiter).queue]

    def throttled_publishes(self, limiter: str, now_ns: int) -> int:
        """How many publishes the limiter has throttled. rate-limiters 4.5"""
        self._enter(now_ns)
        return self._limiter(limiter).throttled_publishes

    def marks(self, connection: str, now_ns: int) -> dict[str, int]:
        """The connection's counts that are not 0, by type. rate-limiters 5.2"""
        self._enter(now_ns)
        return self._tracker(connection).counts()

    def auto_read(self, connection: str, now_ns: int) -> bool:
        """Whether the connection is being read. rate-limiters 5.2"""
        self._enter(now_ns)
        return self._tracker(connection).auto_read

    def metrics(self, connection: str, now_ns: int) -> dict[str, int]:
        """The connection's `paused`, `resumed` and `throttled_connections`. rate-limiters 5.3"""
        self._enter(now_ns)
        return self._tracker(connection).metrics()

    def rate_limited(self, topic: str, now_ns: int) -> int:
        """How often a connection was paused on which the topic had a producer. rate-limiters 5.3"""
        self._enter(now_ns)
        return self._rate_limited.get(topic, 0)

    def state(self) -> PlainData:
        """Parameters and state as plain data."""
        return {
            "high_ns": self.high_ns,
            "release_quantum": self.release_quantum,
            "max_debt_ms": self.max_debt_ms,
            "auto_drain": self.auto_drain,
            "limiters": {name: limiter.state() for name, limiter in self._limiters.items()},
            "producers": {name: asdict(producer) for name, producer in self._producers.items()},
            "trackers": {name: tracker.state() for name, tracker in self._trackers.items()},
            "rate_limited": dict(self._rate_limited),
            "releases": [list(release) for release in self._releases],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the set that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, tuple(name.lstrip("_") for name in cls.__slots__))
        limiters = cls(
            created_ns=state["high_ns"],
            release_quantum=state["release_quantum"],
            max_debt_ms=state["max_debt_ms"],
            auto_drain=state["auto_drain"],
        )
        limiters._limiters = {name: PublishLimiter.from_state(kept) for name, kept in state["limiters"].items()}
        limiters._producers = {name: Producer(**kept) for name, kept in state["producers"].items()}
        limiters._trackers = {name: ThrottleTracker.from_state(kept) for name, kept in state["trackers"].items()}
        limiters._rate_limited = dict(state["rate_limited"])
        limiters._releases = [list(release) for release in state["releases"]]
        return limiters

    def _enter(self, now_ns: int) -> int:
        at_ns = enter(now_ns, self.high_ns)
        if self.auto_drain:
            self._run_due_drains(at_ns)
        self.high_ns = at_ns
        return at_ns

    def _run_due_drains(self, until_ns: int) -> None:
        """Each at its own time, those of the same time as their limiters were registered; MAX stands for never."""
        last_ns = min(until_ns, MAX - 1)
        while due := {
            name: limiter.next_drain_ns
            for name, limiter in self._limiters.items()
            if limiter.next_drain_ns is not None and limiter.next_drain_ns <= last_ns
        }:
            name = min(due, key=due.__getitem__)
            self._release(name, self._limiters[name].drain(due[name]), due[name])

    def _limiter(self, name: str) -> PublishLimiter:
        return known(self._limiters, name, "limiter")

    def _producer(self, name: str) -> Producer:
        return known(self._producers, name, "producer")

    def _tracker(self, connection: str) -> ThrottleTracker:
        return known(self._trackers, connection, "connection")

    def _charge_order(self, limiter: str) -> int:
        return SCOPE_ORDER[self._limiters[limiter].scope]

    def _mark(self, connection: str, kind: ThrottleType) -> None:
        tracker = self._trackers[connection]
        paused_before = tracker.paused
        tracker.mark(kind)
        if tracker.paused > paused_before:
            on_connection = (producer for producer in self._producers.values() if producer.connection == connection)
            for topic in {producer.topic for producer in on_connection if producer.topic is not None}:
                self._rate_limited[topic] = self._rate_limited.get(topic, 0) + 1

    def _release(self, limiter: str, released: list[Any], at_ns: int) -> list[str]:
        kind = SCOPE_TYPES[self._limiters[limiter].scope]
        for producer, connection in released:
            self._trackers[connection].unmark(kind)
            self._releases.append([at_ns, limiter, producer])
        return [producer for producer, _ in released]
