"""Publish limiters of one domain in readable form: publishes, limit changes, drains and usage, one event at a time.

The array form of the same rules is `headgate.core.kernels.publish.publish_domain`; tests hold the two equal.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headgate.core.group_waits import WaitLog
from headgate.core.numbers import MAX, SECOND_NS, sat
from headgate.core.publish.group_limiter import BLOCKED, GroupLimiter
from headgate.core.publish.publish_limiter import PublishLimiter, Scope
from headgate.core.usage import (
    ADMITTED,
    ADMITTED_BYTES,
    ADMITTED_MESSAGES,
    BY_GROUP,
    BY_TOPIC,
    BYTES,
    DELAY_NS,
    DELAYED,
    FAILED,
    FAILED_BYTES,
    FAILED_MESSAGES,
    MAX_DELAY_NS,
    MESSAGES,
    PUBLISHES,
    THROTTLED,
    THROTTLED_NS,
    USAGE_COLUMNS,
)

SCOPE_COLUMN = {scope: BY_TOPIC + position for position, scope in enumerate(Scope)}


class Publish(NamedTuple):
    """One publish. topic and producer are positions."""

    at_ns: int
    topic: int
    producer: int
    messages: int
    bytes: int
    seq: int


class Mark(NamedTuple):
    """A connection is marked (seq: of the publish) or unmarked (seq None) on behalf of a producer by a limiter.

    Of a mark there are the limiter's balances and rates, messages and bytes, 0 where it has none.
    """

    at_ns: int
    limiter: int
    producer: int
    topic: int
    seq: int | None
    marked: bool
    balances: tuple[int, int] = (0, 0)
    rates: tuple[int, int] = (0, 0)


class SecondOfUsage(NamedTuple):
    """What a topic did in one second; counts by the columns of `core.usage`."""

    topic: int
    second: int
    counts: tuple[int, ...]


@dataclass
class DomainLimiter:
    """A limiter that is made, full, at the first publish charged to it; before that a limit only sets its rates.

    Groups' limiters keep their debt on a rate change; a rate of BLOCKED (core.publish.group_limiter) lets nothing pass.
    """

    scope: Scope
    rates: tuple[int, int]
    made: PublishLimiter | None = None

    @property
    def is_blocked(self) -> bool:
        return BLOCKED in self.rates


class Admission(NamedTuple):
    """An arrival of offered traffic of a topic with a group, let in."""

    at_ns: int
    topic: int
    messages: int
    bytes: int


@dataclass
class TopicUsage:
    """A topic's open second (None: nothing happened yet) and its waiting queue entries.

    since_ns: from when on the time that they wait is not counted yet.
    """

    second: int | None = None
    counts: list[int] = field(default_factory=lambda: [0] * USAGE_COLUMNS)
    waiting: int = 0
    since_ns: int = 0


@dataclass
class PublishDomain:
    """Limiters do not look at one another: what ties topics together is a limiter they share. An entry of their queues
    is a producer, its topic, and how many marks it stands for: one, when it is made.

    limiters: by position, in order of registration. broker: position of the broker's limiter. groups: that of the group
    that a topic is charged to, by the topic's; it may change between calls (`leave`). exempt: producers that no group
    concerns, which are replicators (resource-groups 2). usage: by topic limiter.
    offered: publishes are arrivals; those of a producer that waits are withheld, charged in order at its release, and
    fail 1 ns after they have been withheld for `timeout_ns`. Of a blocked group the first of them waits, too.
    max_debt_ms, quantum: as in PublishLimiter. tells: waits for groups, and admissions, are wanted.
    """

    limiters: list[DomainLimiter]
    broker: int | None = None
    groups: dict[int, int] = field(default_factory=dict)
    exempt: frozenset[int] = frozenset()
    offered: bool = False
    timeout_ns: int = 0
    max_debt_ms: int | None = None
    quantum: int | None = None
    tells: bool = False
    usage: dict[int, TopicUsage] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)
    withheld: dict[int, deque[Publish]] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    closed: list[SecondOfUsage] = field(default_factory=list)
    group_waits: WaitLog = field(default_factory=WaitLog)
    admissions: list[Admission] = field(default_factory=list)

    def publish(self, event: Publish) -> None:
        """Count an arrival and charge it, or withhold it while its producer waits (offered traffic)."""
        self._run_due(event.at_ns)
        counts = self._touch(event.topic, event.at_ns).counts
        counts[PUBLISHES] += 1
        counts[MESSAGES] = sat(counts[MESSAGES] + event.messages)
        counts[BYTES] = sat(counts[BYTES] + event.bytes)
        if not self.offered:
            self._charge(event, event.at_ns)
        elif (
            self.waits.get(event.producer)
            or self.withheld.get(event.producer)
            or self._hold_blocked(event, event.at_ns)
        ):
            self.withheld.setdefault(event.producer, deque()).append(event)
        else:
            self._admit(event, event.at_ns)

    def set_limit(self, position: int, messages_per_s: int, bytes_per_s: int, now_ns: int) -> None:
        """Change a limiter's rates at `now_ns` (rate-limiters 4.4)."""
        self._run_due(now_ns)
        limiter = self.limiters[position]
        limiter.rates = (messages_per_s, bytes_per_s)
        if limiter.made is not None:
            self._released(position, limiter.made.update(messages_per_s, bytes_per_s, now_ns), now_ns)

    def leave(self, position: int, now_ns: int) -> None:
        """Release, out of turn, who waits at a group's limiter for a topic that is another's by now, or nobody's."""
        self._run_due(now_ns)
        limiter = self.limiters[position].made
        if limiter is None:
            return
        entries = list(limiter.queue)
        limiter.queue = deque(entry for entry in entries if self.groups.get(entry[1]) == position)
        if not limiter.queue:
            limiter.next_drain_ns = None
        self._released(position, [entry for entry in entries if self.groups.get(entry[1]) != position], now_ns)

    def advance(self, until_ns: int, *, finish: bool) -> None:
        """Run what is due by `until_ns` and close the seconds that have ended; `finish` closes the running ones too."""
        self._run_due(until_ns)
        for topic in sorted(self.usage):
            usage = self.usage[topic]
            if usage.second is not None and (usage.second + 1) * SECOND_NS <= until_ns:
                self._close(topic, (usage.second + 1) * SECOND_NS)
            if finish:
                if usage.waiting and usage.since_ns < until_ns:
                    self._touch(topic, until_ns)
                self._close(topic, until_ns)

    def _charge(self, event: Publish, now_ns: int) -> None:
        throttled = False
        counts = self.usage[event.topic].counts
        for position in (event.topic, self.broker, self._group_of(event)):
            if position is None:
                continue
            limiter = self.limiters[position]
            made = self._make(limiter, now_ns)
            if causes := made.causes(event.messages, event.bytes, now_ns):
                throttled = True
                counts[SCOPE_COLUMN[limiter.scope]] += 1
                self._enqueue(position, made, event, causes, now_ns)
        counts[THROTTLED] += throttled

    def _group_of(self, event: Publish) -> int | None:
        return None if event.producer in self.exempt else self.groups.get(event.topic)

    def _hold_blocked(self, event: Publish, now_ns: int) -> bool:
        """Whether the group of an arrival is blocked: its producer is queued then, and nothing is charged."""
        position = self._group_of(event)
        if position is None or not self.limiters[position].is_blocked:
            return False
        counts = self.usage[event.topic].counts
        counts[BY_GROUP] += 1
        counts[THROTTLED] += 1
        causes = sum(1 << kind for kind, rate in enumerate(self.limiters[position].rates) if rate == BLOCKED)
        self._enqueue(position, self._make(self.limiters[position], now_ns), event, causes, now_ns)
        return True

    def _make(self, limiter: DomainLimiter, now_ns: int) -> PublishLimiter:
        if limiter.made is None:
            limiter.made = self._made(limiter, now_ns)
        return limiter.made

    def _made(self, limiter: DomainLimiter, now_ns: int) -> PublishLimiter:
        options: Any = {"created_ns": now_ns, "max_debt_ms": self.max_debt_ms, "release_quantum": self.quantum}
        if limiter.scope is Scope.GROUP:
            return GroupLimiter(*limiter.rates, **options)
        return PublishLimiter(limiter.scope, *limiter.rates, **options)

    def _enqueue(self, position: int, limiter: PublishLimiter, event: Publish, causes: int, now_ns: int) -> None:
        if self.tells and limiter.scope is Scope.GROUP:
            self.group_waits.note(position, causes, now_ns)
        messages, bytes_ = (0 if bucket is None else bucket.balance for bucket in limiter.buckets)
        mark = Mark(now_ns, position, event.producer, event.topic, event.seq, True, (messages, bytes_), limiter.rates)
        self.marks.append(mark)
        self.waits[event.producer] = self.waits.get(event.producer, 0) + 1
        usage = self.usage[event.topic]
        if usage.waiting == 0:
            usage.since_ns = now_ns
        usage.waiting += 1
        limiter.enqueue((event.producer, event.topic, 1), now_ns)

    def _released(self, position: int, entries: list[tuple[int, int, int]], now_ns: int) -> None:
        made = self.limiters[position].made
        if made is not None and not made.queue:
            self.group_waits.end(position, now_ns)
        for producer, topic, count in entries:
            self.marks += [Mark(now_ns, position, producer, topic, None, marked=False)] * count
            self.waits[producer] -= count
            usage = self._touch(topic, now_ns)
            usage.waiting -= count
            if usage.waiting == 0:
                usage.counts[THROTTLED_NS] += now_ns - usage.since_ns
        for producer, _, _ in entries:
            held = self.withheld.get(producer)
            while held and not self.waits[producer] and not self._hold_blocked(held[0], now_ns):
                self._admit(held.popleft(), now_ns)

    def _admit(self, event: Publish, now_ns: int) -> None:
        counts = self._touch(event.topic, now_ns).counts
        counts[ADMITTED] += 1
        counts[ADMITTED_MESSAGES] = sat(counts[ADMITTED_MESSAGES] + event.messages)
        counts[ADMITTED_BYTES] = sat(counts[ADMITTED_BYTES] + event.bytes)
        delay_ns = now_ns - event.at_ns
        if delay_ns > 0:
            counts[DELAYED] += 1
            counts[DELAY_NS] = sat(counts[DELAY_NS] + delay_ns)
            counts[MAX_DELAY_NS] = max(counts[MAX_DELAY_NS], delay_ns)
        if self.tells and self._group_of(event) is not None:
            self.admissions.append(Admission(now_ns, event.topic, event.messages, event.bytes))
        self._charge(event, now_ns)

    def _fail_due(self, producer: int, due_ns: int) -> None:
        held = self.withheld[producer]
        while held and self._fails_ns(held[0]) <= due_ns:
            event = held.popleft()
            counts = self._touch(event.topic, due_ns).counts
            counts[FAILED] += 1
            counts[FAILED_MESSAGES] = sat(counts[FAILED_MESSAGES] + event.messages)
            counts[FAILED_BYTES] = sat(counts[FAILED_BYTES] + event.bytes)

    def _fails_ns(self, event: Publish) -> int:
        return sat(event.at_ns + self.timeout_ns + 1)

    def _run_due(self, until_ns: int) -> None:
        """All work due by `until_ns`, by due time, then limiters as registered, then producers: rate-limiters 3.1."""
        while True:
            due_ns, owner = min(self._due(), default=(MAX, 0))
            if due_ns > until_ns or due_ns == MAX:
                return
            if owner < len(self.limiters):
                limiter = self.limiters[owner].made
                if limiter is not None:
                    self._released(owner, limiter.drain(due_ns), due_ns)
            else:
                self._fail_due(owner - len(self.limiters), due_ns)

    def _due(self) -> Iterator[tuple[int, int]]:
        for position, limiter in enumerate(self.limiters):
            if limiter.made is not None and limiter.made.next_drain_ns is not None:
                yield limiter.made.next_drain_ns, position
        for producer, held in self.withheld.items():
            if held:
                yield self._fails_ns(held[0]), len(self.limiters) + producer

    def _touch(self, topic: int, now_ns: int) -> TopicUsage:
        """The topic's usage with the second of `now_ns` open."""
        usage = self.usage.setdefault(topic, TopicUsage())
        second = now_ns // SECOND_NS
        if usage.second is not None and usage.second != second:
            self._close(topic, (usage.second + 1) * SECOND_NS)
        usage.second = second
        return usage

    def _close(self, topic: int, until_ns: int) -> None:
        usage = self.usage[topic]
        if usage.second is None:
            return
        if usage.waiting:
            usage.counts[THROTTLED_NS] += until_ns - usage.since_ns
            usage.since_ns = until_ns
        self.closed.append(SecondOfUsage(topic, usage.second, tuple(usage.counts)))
        usage.second, usage.counts = None, [0] * USAGE_COLUMNS
