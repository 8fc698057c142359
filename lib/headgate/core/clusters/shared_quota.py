"""The quota of a resource in one direction: from looks at counters to the limit of each topic (clusters 2, 3)."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from headgate.core.clusters.demand import SECOND_US, Look, demand
from headgate.core.clusters.level import Wanted, water_level
from headgate.core.clusters.pushes import MINUTE_US, Limit, Pushed, next_push, without_bursts
from headgate.core.numbers import at_least

WINDOW_US = 10 * SECOND_US
"""A demand is of the looks that ended so long before the last one, or later."""
KEPT_US = 30 * SECOND_US
"""Looks that ended longer before the last one are forgotten, unless brokers average over longer."""
GONE_US = 60 * SECOND_US
"""A topic without a look for so long is gone."""
ABOVE_PERCENT = 115
NONE = Limit()
UNITS = (0, 1)


class Amounts(NamedTuple):
    """Of messages and of bytes, from 0."""

    messages: int
    bytes: int


_LEAST_SLACK, _MOST_SLACK = Amounts(50, 128 << 10), Amounts(1000, 5 << 20)
"""A bucket goes into debt for the last publish: a batch as clients make them, up to a message of the largest size."""


class TopicLook(NamedTuple):
    """What was let in of a topic from from_us to at_us, which is later."""

    from_us: int
    at_us: int
    amounts: Amounts


class _Since(NamedTuple):
    """Of a topic since its limit was set: its largest look, and what was too much (`SharedQuota._excess`)."""

    largest: Amounts
    excess: Sequence[int]


_NOTHING = _Since(_LEAST_SLACK, (0, 0))


class Decision(NamedTuple):
    """What a quota comes to.

    level: the cap that splits it; the quota where all demands fit. push: the limit to push now, None: none.
    used_per_s: of all topics, over the looks that demands are of. held: the topics that are at their limit. above:
    those that do not keep to it, or did not as far as is known.
    """

    level: Limit
    push: Limit | None
    used_per_s: Amounts
    held: frozenset[str]
    above: frozenset[str]


class SharedQuota:
    """All topics of a resource together get at most its quota a second over a minute, split max-min fairly.

    One cap holds for all topics: `in_force`, none before the first push. quota: in one unit or both. averaged_us: over
    how long brokers average what they let in, 0 where a topic has a bucket of a second, which each push fills. Until so
    much time has passed since a push, nothing is known.

    Source: clusters 2, 3.1, 3.2
    """

    def __init__(self, quota: Limit, averaged_us: int = 0) -> None:
        self.quota, self.averaged_us = quota, averaged_us
        self._kept_us = max(KEPT_US, 2 * averaged_us + WINDOW_US)
        self._pushes: list[Pushed] = []
        self._looks: dict[str, deque[TopicLook]] = {}
        self._since_push: dict[str, _Since] = {}

    @property
    def in_force(self) -> Limit:
        """The limit that was pushed last."""
        return self._pushes[-1].limit if self._pushes else NONE

    def add(self, topic: str, look: TopicLook) -> None:
        """Take in a look at a topic. Raises InvalidArgument for one that ends where it begins, or before."""
        at_least(look.from_us + 1, look.at_us, "at_us")
        looks = self._looks.setdefault(topic, deque())
        looks.append(look)
        while looks[0].at_us <= look.at_us - self._kept_us:
            looks.popleft()
        if self._pushes and look.from_us >= self._pushes[-1].at_us:
            before = self._since_push.get(topic, _NOTHING)
            largest = Amounts(*map(max, before.largest, look.amounts))
            self._since_push[topic] = _Since(largest, tuple(self._excess(before.excess, largest, look)))

    def pushed(self, at_us: int, limit: Limit) -> None:
        """`limit` is in force from now on. A look that began before says nothing of it."""
        recent = [push for push in self._pushes if push.at_us > at_us - MINUTE_US]
        self._pushes = [*recent, Pushed(at_us, limit)]
        self._since_push.clear()

    def decide(self, now_us: int, not_enforceable: AbstractSet[str] = frozenset()) -> Decision | None:
        """What to do now; None where no topic has a look that began after the last push, or that is too recent.

        not_enforceable: topics that no limit holds: what they use is used, and the others share what is left.
        """
        gone_us = now_us - max(GONE_US, self._kept_us)
        self._looks = {topic: looks for topic, looks in self._looks.items() if looks[-1].at_us > gone_us}
        self._since_push = {topic: since for topic, since in self._since_push.items() if topic in self._looks}
        since_us = self._pushes[-1].at_us if self._pushes else 0
        windows = {
            topic: recent
            for topic, looks in self._looks.items()
            if (recent := [look for look in looks if look.from_us >= since_us])
        }
        if self._looks and (not windows or now_us - since_us < self.averaged_us):
            return None
        fresh = windows.keys()
        # What a broker that missed a look lets in is not known; it is not nothing.
        windows = {topic: windows.get(topic) or list(looks) for topic, looks in self._looks.items()}
        held = frozenset(
            topic
            for topic, looks in windows.items()
            if topic not in not_enforceable
            and any(self.quota[unit] and self._demand(looks, unit, self.in_force[unit]) is None for unit in UNITS)
        )
        level = self._level(windows, not_enforceable, [])
        bursts = [] if self.averaged_us else [push for push in self._pushes if now_us - push.at_us < MINUTE_US]
        target = self._level(windows, not_enforceable, bursts)
        push = next_push(self._pushes, level, target, now_us, is_wanted=bool(held))
        used = Amounts(*(sum(self._demand(looks, unit, None) or 0 for looks in windows.values()) for unit in UNITS))
        still = frozenset(
            topic
            for topic in not_enforceable & windows.keys()
            if topic not in fresh or self._is_more_than_limit(windows[topic])
        )
        above = still.union(filter(self._is_above, fresh & self._since_push.keys()))
        return Decision(level, push, used, held, above)

    def _level(
        self, windows: Mapping[str, Sequence[TopicLook]], not_enforceable: AbstractSet[str], bursts: Sequence[Pushed]
    ) -> Limit:
        """The cap that splits what is left of the quota beside topics that no cap holds, and beside bursts."""
        levels: list[int | None] = [None, None]
        for unit, quota in enumerate(self.quota):
            if quota is not None:
                free = sum(self._demand(windows[topic], unit, None) or 0 for topic in windows.keys() & not_enforceable)
                wanted = [
                    Wanted(self._demand(looks, unit, self.in_force[unit]))
                    for topic, looks in windows.items()
                    if topic not in not_enforceable
                ]
                levels[unit] = water_level(wanted, without_bursts(max(quota - free, 0), len(bursts)))
        return Limit(*levels)

    def _demand(self, looks: Sequence[TopicLook], unit: int, cap: int | None) -> int | None:
        """Over the last WINDOW_US, or twice the time that brokers average over."""
        after_us = looks[-1].at_us - max(WINDOW_US, 2 * self.averaged_us)
        window = [Look(look.at_us - look.from_us, look.amounts[unit], cap) for look in looks if look.at_us > after_us]
        return demand(window, self.averaged_us)

    def _excess(self, before: Sequence[int], largest: Amounts, look: TopicLook) -> Iterator[int]:
        """By unit, what came since the limit was set above ABOVE_PERCENT of it, in hundredths and us of a second.

        A time with less makes up for it, but saves nothing up; and no more is kept than a second of the limit brings
        down again.
        """
        length_us = look.at_us - look.from_us
        units = zip(self.in_force, before, look.amounts, self._most_excess(largest), strict=True)
        for limit, excess, amount, most in units:
            rate = limit or 0
            came = excess + 100 * SECOND_US * amount - ABOVE_PERCENT * rate * length_us
            yield min(max(came, 0), most + 100 * SECOND_US * rate)

    def _most_excess(self, largest: Amounts) -> Iterator[int]:
        """What a full bucket, or what brokers average over, and the last publish let in beside the limit, by unit.

        A publish is no larger than the largest look since the limit was set.
        """
        for limit, amount, most in zip(self.in_force, largest, _MOST_SLACK, strict=True):
            full = ABOVE_PERCENT * (limit or 0) * (SECOND_US + self.averaged_us)
            yield full + (0 if self.averaged_us else 100 * SECOND_US * min(amount, most))

    def _is_more_than_limit(self, looks: Sequence[TopicLook]) -> bool:
        """Whether more than ABOVE_PERCENT of the limit came in these, since it was set."""
        length_us = sum(look.at_us - look.from_us for look in looks)
        return any(
            limit is not None
            and 100 * SECOND_US * sum(look.amounts[unit] for look in looks) > ABOVE_PERCENT * limit * length_us
            for unit, limit in enumerate(self.in_force)
        )

    def _is_above(self, topic: str) -> bool:
        """Whether more came than a limiter lets in."""
        since = self._since_push[topic]
        units = zip(self.in_force, since.excess, self._most_excess(since.largest), strict=True)
        return any(excess > most for limit, excess, most in units if limit is not None)
