"""Dispatch levels of one domain in readable form: deliveries or reads, limit changes, retries, one event at a time.

The array form of the same rules is `headgate.core.kernels.dispatch.dispatch_domain`; tests hold the two equal.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from headgate.core.dispatch.dispatch_levels import LazyDispatchLevel, LazyGroupLevel, Level
from headgate.core.dispatch.dispatch_limiter_level import Pair
from headgate.core.group_waits import WaitLog
from headgate.core.numbers import SECOND_NS, sat
from headgate.core.publish.group_limiter import BLOCKED

RETRY_NS = SECOND_NS
NO_LEVEL = -1
PLACES = 4
"""Levels of a subscription at most."""
BROKER, TOPIC, OWN, GROUP = range(PLACES)
"""Places of levels in a chain, in the order in which they are examined; a subscription's own is a replicator's, too."""


class Read(NamedTuple):
    """A delivery (admitted traffic), or a read that wants to start. subscription is a position.

    charged: messages or entries, whatever levels count. is_exempt: no level is read or charged.
    """

    at_ns: int
    subscription: int
    messages: int
    bytes: int
    charged: int
    is_exempt: bool = False

    @property
    def amounts(self) -> Pair:
        """What levels take."""
        return self.charged, self.bytes


class Start(NamedTuple):
    """A read of offered traffic that started. is_counted: its group was charged."""

    at_ns: int
    subscription: int
    messages: int
    bytes: int
    arrived_ns: int
    is_counted: bool


@dataclass
class Line:
    """The withheld reads of one subscription, in order. due_ns: when the first is retried.

    held_by: the level that skipped it last, by its place from 1. is_counted: its group counts it as waiting; not so, if
    the topic has come to another group since the last retry.
    """

    due_ns: int
    reads: deque[Read] = field(default_factory=deque)
    held_by: int = 0
    is_counted: bool = False


@dataclass
class DispatchDomain:
    """Reads of one subscription start in the order in which they came, and each is charged as it starts.

    Lines are sorted by when they are due, since every retry is RETRY_NS later than now, and lines that move to another
    group are due at once and come to the front. So the first is always the next; both forms rely on it.

    levels: by position. chains: the levels of each subscription by position, in the order BROKER, TOPIC, OWN, GROUP,
    NO_LEVEL where there is none. tells: waits of groups are wanted.

    Admitted traffic: an event was delivered, and is charged to all its levels, whatever permits they have. A group's
    wait begins with a charge that leaves no permits and ends with the step that refills them.

    Offered traffic (`offered`): an event is a read that wants to start. Without a permit at every level it is skipped
    and retried 1 s later; until it starts, later reads of its subscription wait behind it. As it starts, the next of
    them is tried at the same instant, and so on until one is skipped. Nothing fails. A group's wait lasts while it
    withholds a read that no other level withholds.

    The order of things: time never goes back. At one instant retries come first, then changes of limits, then events in
    the order given. Retries go by (due time, order in which their reads were skipped). A read whose topic has come to
    another group is retried at that instant, before all others, and becomes the other group's.

    Source: rate-limiters 6.1, resource-groups 2.
    """

    levels: list[Level]
    chains: list[Sequence[int]]
    offered: bool = False
    tells: bool = False
    lines: "OrderedDict[int, Line]" = field(default_factory=OrderedDict)
    group_waits: WaitLog = field(default_factory=WaitLog)
    starts: list[Start] = field(default_factory=list)

    def begin(self, now_ns: int) -> None:
        """End the waits of groups that nobody waits at any longer, since their topics are another's (offered)."""
        for position in sorted(self.group_waits.open):
            if self.offered and self._group(position).waiting == 0:
                self.group_waits.end(position, now_ns)

    def read(self, event: Read) -> int:
        """Charge a delivery; or start a read, or withhold it behind those of its subscription.

        Returns the place from 1 of the first level without a permit, whose fault it is that a read waits; 0: none.
        """
        self._run_due(event.at_ns)
        if not self.offered:
            return self._deliver(event)
        line = self.lines.get(event.subscription)
        if line is not None:
            line.reads.append(event)
            return line.held_by
        place, causes = self._tried(event, event.at_ns)
        if place:
            self.lines[event.subscription] = Line(event.at_ns, deque([event]))
            self._skip(event.subscription, place, causes, event.at_ns)
        return place

    def set_limit(self, position: int, rates: Pair, now_ns: int, *, period_s: int = 1, relative: bool = False) -> None:
        """Change a level's rates at `now_ns`. Withheld reads wait for their retry."""
        self._run_due(now_ns)
        level = self.levels[position]
        if isinstance(level, LazyDispatchLevel):
            level.update(rates, now_ns, period_s=period_s, relative=relative)
            return
        level.rates = rates
        if level.made is None:
            return
        self._end_if_refilled(position, now_ns)
        level.made.update(*rates, now_ns)
        if self.offered or position not in self.group_waits.open:
            return
        if level.made.ready_ns() <= now_ns:
            self.group_waits.end(position, now_ns)
        elif level.made.blocking:
            self.group_waits.note(position, level.made.blocking, now_ns)

    def follow(self, position: int, averages: Pair, now_ns: int) -> None:
        """The topic of a level that is no group's is published to so fast: messages and bytes a second."""
        self._run_due(now_ns)
        level = self.levels[position]
        if isinstance(level, LazyDispatchLevel):
            level.follow(averages, now_ns)

    def advance(self, until_ns: int) -> None:
        """Run what is due by `until_ns`."""
        self._run_due(until_ns)
        for position in [] if self.offered else sorted(self.group_waits.open):
            self._end_if_refilled(position, until_ns)

    def _group(self, position: int) -> LazyGroupLevel:
        return cast("LazyGroupLevel", self.levels[position])

    def _deliver(self, event: Read) -> int:
        if event.is_exempt:
            return 0
        chain = self.chains[event.subscription]
        if chain[GROUP] != NO_LEVEL:
            self._end_if_refilled(chain[GROUP], event.at_ns)
        place, _ = self._first_missing(chain, event.at_ns)
        causes = self._charge(chain, event, event.at_ns)
        if causes and self.tells:
            self.group_waits.note(chain[GROUP], causes, event.at_ns)
        return place

    def _charge(self, chain: Sequence[int], event: Read, now_ns: int) -> int:
        """Charge every level; the dimensions of which the group has no permits left."""
        causes = 0
        for position in chain:
            if position != NO_LEVEL:
                causes = self.levels[position].charge(event.amounts, now_ns)
        return causes

    def _first_missing(self, chain: Sequence[int], now_ns: int) -> tuple[int, int]:
        """Place from 1 of the first level without permits and what it lacks, 0 and 0: a read may start.

        Later levels are not read.
        """
        for place, position in enumerate(chain, 1):
            if position != NO_LEVEL and (causes := self.levels[position].missing(now_ns)):
                return place, causes
        return 0, 0

    def _end_if_refilled(self, position: int, now_ns: int) -> None:
        made = self._group(position).made
        if self.offered or made is None or position not in self.group_waits.open:
            return
        ready_ns = made.ready_ns()
        if ready_ns <= now_ns:
            self.group_waits.end(position, ready_ns)

    def _tried(self, event: Read, now_ns: int) -> tuple[int, int]:
        """Start a read and return 0 and 0; or which level holds it, and what that lacks."""
        chain = self.chains[event.subscription]
        if not event.is_exempt:
            place, causes = self._first_missing(chain, now_ns)
            if place:
                return place, causes
            self._charge(chain, event, now_ns)
        is_counted = chain[GROUP] != NO_LEVEL and not event.is_exempt
        start = Start(now_ns, event.subscription, event.messages, event.bytes, event.at_ns, is_counted)
        self.starts.append(start)
        return 0, 0

    def _skip(self, subscription: int, place: int, causes: int, now_ns: int) -> None:
        line, group = self.lines[subscription], self.chains[subscription][GROUP]
        line.due_ns, line.held_by = sat(now_ns + RETRY_NS), place
        self.lines.move_to_end(subscription)
        is_counted = place == GROUP + 1
        if is_counted and not line.is_counted:
            self._group(group).waiting += 1
        elif line.is_counted and not is_counted:
            self._leave(group, now_ns)
        line.is_counted = is_counted
        if is_counted and self.tells:
            self.group_waits.note(group, causes, now_ns)

    def _retry(self, subscription: int, now_ns: int) -> bool:
        """Start the subscription's reads one after another; False if none started and none can while nothing changes:
        its group is blocked, and no other level, which would be read, limits it.
        """
        line, chain = self.lines[subscription], self.chains[subscription]
        place, causes, has_started = 0, 0, False
        while line.reads:
            place, causes = self._tried(line.reads[0], now_ns)
            if place:
                break
            line.reads.popleft()
            has_started = True
        if line.reads:
            self._skip(subscription, place, causes, now_ns)
        else:
            del self.lines[subscription]
            if line.is_counted:
                self._leave(chain[GROUP], now_ns)
        return has_started or not self._is_stuck(chain)

    def _is_stuck(self, chain: Sequence[int]) -> bool:
        if chain[GROUP] == NO_LEVEL or BLOCKED not in self._group(chain[GROUP]).rates:
            return False
        others = (self.levels[position] for position in chain[:GROUP] if position != NO_LEVEL)
        return not any(isinstance(level, LazyDispatchLevel) and level.limits for level in others)

    def _leave(self, position: int, now_ns: int) -> None:
        level = self._group(position)
        level.waiting -= 1
        if level.waiting == 0:
            self.group_waits.end(position, now_ns)

    def _run_due(self, until_ns: int) -> None:
        """All retries due by `until_ns`. Where all in line wait for blocked groups, whole seconds are passed over."""
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
