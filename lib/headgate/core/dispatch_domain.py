"""Dispatch levels of one domain in readable form: deliveries or reads, limit changes, retries, one event at a time.

The array form of the same rules is `headgate.core.kernels.dispatch`; tests hold the two equal.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.core.group_dispatch_level import GroupDispatchLevel
from headgate.core.group_waits import WaitLog
from headgate.core.numbers import SECOND_NS, sat
from headgate.core.publish_domain import Admission

RETRY_NS = SECOND_NS


class Read(NamedTuple):
    """A delivery (admitted traffic), or a read that wants to start. topic and subscription are positions."""

    at_ns: int
    topic: int
    subscription: int
    messages: int
    bytes: int


@dataclass
class DomainLevel:
    """A level that is made, full, at the first dispatch examined there; before that a limit only sets its rates.

    waiting: subscriptions whose reads it has skipped.
    """

    rates: tuple[int, int]
    made: GroupDispatchLevel | None = None
    waiting: int = 0


@dataclass
class Line:
    """The withheld reads of one subscription, in order. due_ns: when the first is retried.

    is_counted: its level counts it as waiting; not so, if the topic has come to another level since the last retry.
    """

    topic: int
    due_ns: int
    reads: deque[Read] = field(default_factory=deque)
    is_counted: bool = True


@dataclass
class DispatchDomain:
    """Reads of one (topic, subscription) start in the order in which they came, and each is charged as it starts.

    Lines are sorted by when they are due, since every retry is RETRY_NS later than now, and lines that move to another
    level are due at once and come to the front. So the first is always the next; both forms rely on it.

    levels: by position. level_of: that of the group that a topic is charged to, by the topic's position; without one a
    read starts at once. max_debt_ms: as in GroupDispatchLevel. tells: waits of groups, and what started, are wanted.

    Admitted traffic: an event was delivered, and is charged. A group's wait begins with a charge that leaves no permits
    and ends with the step that refills them.

    Offered traffic (`offered`): an event is a read that wants to start. Without a permit it is skipped and retried 1 s
    later; until it starts, later reads of its subscription wait behind it. As it starts, the next of them is tried at
    the same instant, and so on until one is skipped. Nothing fails. A group's wait lasts while a read is withheld.

    The order of things: time never goes back. At one instant retries come first, then changes of limits, then events in
    the order given. Retries go by (due time, order in which their reads were skipped). A read whose topic has come to
    another group is retried at that instant, before all others, and becomes the other group's.

    Source: rate-limiters 6.1, resource-groups 2.
    """

    levels: list[DomainLevel]
    level_of: dict[int, int] = field(default_factory=dict)
    offered: bool = False
    max_debt_ms: int | None = None
    tells: bool = False
    lines: "OrderedDict[int, Line]" = field(default_factory=OrderedDict)
    group_waits: WaitLog = field(default_factory=WaitLog)
    admissions: list[Admission] = field(default_factory=list)

    def begin(self, now_ns: int) -> None:
        """End the waits of levels that nobody waits at any longer, since their topics are another's (offered)."""
        for position in sorted(self.group_waits.open):
            if self.offered and self.levels[position].waiting == 0:
                self.group_waits.end(position, now_ns)

    def read(self, event: Read) -> None:
        """Charge a delivery; or start a read, or withhold it behind those of its subscription."""
        self._run_due(event.at_ns)
        position = self.level_of.get(event.topic)
        if not self.offered:
            if position is not None:
                self._deliver(position, event)
        elif event.subscription in self.lines:
            self.lines[event.subscription].reads.append(event)
        elif causes := self._tried(event, event.at_ns):
            line = Line(event.topic, event.at_ns, deque([event]), is_counted=False)
            self.lines[event.subscription] = line
            self._skip(event.subscription, causes, event.at_ns)

    def set_limit(self, position: int, messages_per_s: int, bytes_per_s: int, now_ns: int) -> None:
        """Change a level's rates at `now_ns`. Withheld reads wait for their retry."""
        self._run_due(now_ns)
        level = self.levels[position]
        level.rates = (messages_per_s, bytes_per_s)
        if level.made is None:
            return
        self._end_if_refilled(position, now_ns)
        level.made.update(messages_per_s, bytes_per_s, now_ns)
        if self.offered or position not in self.group_waits.open:
            return
        if level.made.ready_ns() <= now_ns:
            self.group_waits.end(position, now_ns)
        elif level.made.blocking:
            self.group_waits.note(position, level.made.blocking, now_ns)

    def advance(self, until_ns: int) -> None:
        """Run what is due by `until_ns`."""
        self._run_due(until_ns)
        for position in [] if self.offered else sorted(self.group_waits.open):
            self._end_if_refilled(position, until_ns)

    def _deliver(self, position: int, event: Read) -> None:
        self._end_if_refilled(position, event.at_ns)
        causes = self._made(position, event.at_ns).charge((event.messages, event.bytes), event.at_ns)
        if causes and self.tells:
            self.group_waits.note(position, causes, event.at_ns)

    def _end_if_refilled(self, position: int, now_ns: int) -> None:
        made = self.levels[position].made
        if self.offered or made is None or position not in self.group_waits.open:
            return
        ready_ns = made.ready_ns()
        if ready_ns <= now_ns:
            self.group_waits.end(position, ready_ns)

    def _tried(self, event: Read, now_ns: int) -> int:
        """Start a read and return 0; or the dimensions for want of which it does not start, as bits."""
        position = self.level_of.get(event.topic)
        if position is None:
            return 0
        made = self._made(position, now_ns)
        causes = made.missing(now_ns)
        if causes == 0:
            made.charge((event.messages, event.bytes), now_ns)
            if self.tells:
                self.admissions.append(Admission(now_ns, event.topic, event.messages, event.bytes))
        return causes

    def _skip(self, subscription: int, causes: int, now_ns: int) -> None:
        line, position = self.lines[subscription], self.level_of[self.lines[subscription].topic]
        line.due_ns = sat(now_ns + RETRY_NS)
        self.lines.move_to_end(subscription)
        if not line.is_counted:
            line.is_counted = True
            self.levels[position].waiting += 1
        if self.tells:
            self.group_waits.note(position, causes, now_ns)

    def _retry(self, subscription: int, now_ns: int) -> bool:
        """Start the subscription's reads one after another; False if a blocked level skips the first."""
        line, causes = self.lines[subscription], 0
        position = self.level_of.get(line.topic)
        while line.reads and not (causes := self._tried(line.reads[0], now_ns)):
            line.reads.popleft()
        if line.reads:
            self._skip(subscription, causes, now_ns)
        else:
            del self.lines[subscription]
            if position is not None and line.is_counted:
                self._leave(position, now_ns)
        return position is None or not self._made(position, now_ns).blocking

    def _leave(self, position: int, now_ns: int) -> None:
        level = self.levels[position]
        level.waiting -= 1
        if level.waiting == 0:
            self.group_waits.end(position, now_ns)

    def _run_due(self, until_ns: int) -> None:
        """All retries due by `until_ns`. Where all in line wait for blocked levels, whole seconds are passed over."""
        idle = 0
        while self.lines:
            subscription, line = next(iter(self.lines.items()))
            if line.due_ns > until_ns:
                return
            idle = 0 if self._retry(subscription, line.due_ns) else idle + 1
            if idle and idle == len(self.lines):
                idle = 0
                self._pass_over(until_ns)

    def _pass_over(self, until_ns: int) -> None:
        seconds = (until_ns - next(reversed(self.lines.values())).due_ns) // RETRY_NS
        if seconds > 0:
            for line in self.lines.values():
                line.due_ns += seconds * RETRY_NS

    def _made(self, position: int, now_ns: int) -> GroupDispatchLevel:
        level = self.levels[position]
        if level.made is None:
            level.made = GroupDispatchLevel(*level.rates, created_ns=now_ns, max_debt_ms=self.max_debt_ms)
        return level.made
