"""Keeps the topics of each resource within its quota: decides by what a collector counted, and pushes (clusters 3)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from headgate.cluster.feed import Feed, Looked, of_resource
from headgate.cluster.ledger import NOT_ENFORCEABLE, Step
from headgate.cluster.limits import InTheWayError, Limits
from headgate.cluster.pushing import Failed, Pushing
from headgate.conf.cluster import Resource
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import NONE, Decision, SharedQuota
from headgate.core.topic_names import without_partition
from headgate.errors import ClusterError

_FOUND_ANEW_US = 30 * SECOND_US
_RETRIED_US = 5 * SECOND_US
_SHOWN = 3
_LATE_US, _EARLY_US = 60 * SECOND_US, SECOND_US
"""Looks of another time say nothing of limits that are in force now. A round may be late, but none is of a time to
come: it would say of a limit what was let in before that limit was set.
"""
_READ_BACK_US = 30 * SECOND_US
"""So often what is set is looked at: the operator may have changed it, or a namespace of that name may be another."""
_REPEATED_US = 15 * SECOND_US
"""After limits were set once more for a topic that does not keep to them: if it does not then, it does not at all."""


@dataclass
class Enforced:
    """A resource in one direction, and what was last decided about it.

    paths: where its limits are. not_found: why these could not be looked up the last time. own: where topics have
    limits of their own, which precede those. not_set: where the limit in force is not set, and why. operators: where
    the operator's own limit is lower, and stays. repeated_us: when limits were set once more for topics that do not
    keep to them. not_enforceable: those for which that did not help. pushes: how often its limit was set.
    """

    resource: Resource
    direction: str
    quota: SharedQuota
    decision: Decision | None = None
    paths: Sequence[str] = ()
    found_us: int | None = None
    not_found: str | None = None
    own: set[str] = field(default_factory=set)
    not_set: Failed = field(default_factory=dict)
    operators: set[str] = field(default_factory=set)
    tried_us: int = 0
    read_back_us: int = 0
    repeated_us: dict[str, int] = field(default_factory=dict)
    not_enforceable: set[str] = field(default_factory=set)
    pushes: int = 0

    def begin_anew(self) -> None:
        """As if nothing had been looked at or set. Where its limits are stays."""
        self.quota, self.decision = SharedQuota(self.quota.quota, self.quota.averaged_us), None
        for each in (self.not_set, self.operators, self.repeated_us, self.not_enforceable):
            each.clear()

    @property
    def name(self) -> str:
        """In words."""
        return self.resource.in_words(self.direction)

    @property
    def places(self) -> Sequence[str]:
        """Where its limit is to be in force."""
        return [*self.paths, *self.own]

    @property
    def used(self) -> Limit:
        """What its topics get a second, in the units of its quota; none before the first decision."""
        if self.decision is None:
            return NONE
        units = zip(self.decision.used_per_s, self.quota.quota, strict=True)
        return Limit(*(None if quota is None else amount for amount, quota in units))


class Enforcer:
    """Within a minute every resource gets at most its quota, split max-min fairly over its topics.

    pushing: None decides alone and sets nothing. tell: takes a line. averaged_us: as `limits` has it. heard_us: when
    brokers answered last, of what could be used.

    Raises TableError, and ClusterError where the lease is lost; a cluster that refuses or does not answer is told, and
    asked again.
    """

    def __init__(
        self,
        resources: Sequence[Resource],
        limits: Limits,
        pushing: Pushing | None,
        tell: Callable[[str], None],
        averaged_us: int = 0,
    ) -> None:
        self._limits, self._pushing, self._tell, self._averaged_us = limits, pushing, tell, averaged_us
        self.enforced = list(self._enforced(resources))
        self._is_changed = False
        self._not_put_back: Failed = {}
        self._is_off = False
        self.heard_us = 0

    def _enforced(self, resources: Sequence[Resource]) -> Iterator[Enforced]:
        for resource in resources:
            for direction in ("in", "out"):
                if (quota := _quota(resource, direction)) != NONE:
                    yield Enforced(resource, direction, SharedQuota(quota, self._averaged_us))

    def change(self, resources: Sequence[Resource], now_us: int) -> None:
        """From now on these are the resources. Looks at topics begin anew: any may be another one's.

        Those that stay go on with the limit in force. Limits of others are put back.
        """
        before = {one.name: one for one in self.enforced}
        self.enforced = list(self._enforced(resources))
        for one in self.enforced:
            if (was := before.get(one.name)) is not None:
                one.paths, one.not_set, one.pushes = was.paths, was.not_set, was.pushes
                if was.quota.in_force != NONE:
                    one.quota.pushed(now_us, was.quota.in_force)
            one.found_us = now_us - _FOUND_ANEW_US
            self._find(one, now_us)
        self._is_changed = True

    def go_on(self, now_us: int) -> None:
        """Take limits that an earlier process has set, and not put back, for those in force; put back all others."""
        for one in self.enforced:
            self._find(one, now_us)
            found = self._pushing.in_force(one.paths) if self._pushing is not None else []
            if found:
                limits = zip(one.quota.quota, *found, strict=True)
                one.quota.pushed(
                    now_us,
                    Limit(
                        *(None if quota is None else max(filter(None, caps), default=None) for quota, *caps in limits)
                    ),
                )
                one.not_set = dict.fromkeys(one.paths, "not looked at yet")
        self._is_changed = True

    def _put_back_others(self) -> None:
        """Limits in places of no resource; one of a topic's own is found anew where the topic is above its limit.

        What cannot be put back is told once, and tried again with the next round.
        """
        if self._pushing is None:
            return
        places = {path for one in self.enforced for path in one.places}
        others = [path for path in self._pushing.open if path not in places]
        failed = self._pushing.release(Step("", reason="of no resource any more"), others)
        if done := [path for path in others if path not in failed]:
            self._tell(f"put back, as no resource has them any more: {named(done, _SHOWN)}")
        for path, why in failed.items():
            if self._not_put_back.get(path) != why:
                self._tell(f"not put back at {path}: {why}")
        self._not_put_back, self._is_changed = failed, bool(failed)

    def round(self, feed: Feed, now_us: int) -> Sequence[Looked]:
        """Take in what is new, and do what is due; what was new."""
        looked = list(feed.take())
        newest_us = max((one.look.at_us for one in looked), default=now_us)
        if not -_LATE_US <= (off_us := newest_us - now_us) <= _EARLY_US:
            if not self._is_off:
                self._tell(
                    f"the collector's clock is {off_us / SECOND_US:+,.0f} s off this one: nothing is decided; "
                    "set the clocks, and start headgate collect again"
                )
            self._is_off = True
            return ()
        self._is_off &= not looked
        if not self._is_off:
            self.heard_us = min(feed.newest_us, now_us)
        for one in self.enforced:
            for shared_by, look in of_resource(one.resource, one.direction, looked):
                one.quota.add(shared_by, look)
        if looked:
            for one in self.enforced:
                self._find_topics(one)
                self._decide(one, now_us)
            if self._is_changed:
                self._put_back_others()
        return looked

    def _decide(self, one: Enforced, now_us: int) -> None:
        decision = one.quota.decide(now_us, one.not_enforceable)
        if decision is None:
            return
        one.decision = decision
        self._find(one, now_us)
        if self._pushing is None or not one.places:
            return
        if decision.push is not None:
            self._push(one, decision.push, _reason(one, decision), now_us)
        else:
            self._set_what_is_not(one, now_us)
        self._check(one, decision, now_us)

    def _set_what_is_not(self, one: Enforced, now_us: int) -> None:
        """Try again what failed, and look now and then at all places."""
        is_due = one.quota.in_force != NONE and now_us - one.read_back_us >= _READ_BACK_US
        if self._pushing is None or not (is_due or (one.not_set and now_us - one.tried_us >= _RETRIED_US)):
            return
        before = self._pushing.writes
        places, reason = (one.places, "it was not there") if is_due else (list(one.not_set), "tried again")
        self._set(one, places, one.quota.in_force, reason, now_us)
        if is_due:
            one.read_back_us = now_us
        if self._pushing.writes > before:  # what came there before says nothing of the limit
            one.quota.pushed(now_us, one.quota.in_force)

    def _find(self, one: Enforced, now_us: int) -> None:
        """Where limits are to be; a new place gets the limit in force with the next round."""
        if one.found_us is not None and now_us - one.found_us < _FOUND_ANEW_US:
            return
        try:
            paths = self._limits.paths(one.resource, one.direction)
        except ClusterError as error:
            if one.found_us is None:
                raise
            is_in_the_way = isinstance(error, InTheWayError)
            if one.not_found != str(error):
                then = "; until then headgate limits it no more" if is_in_the_way and self._pushing else ""
                self._tell(f"{one.name}: {error}{then}")
            one.not_found, one.found_us = str(error), now_us - _FOUND_ANEW_US + _RETRIED_US
            if is_in_the_way:
                one.begin_anew()
                one.paths, self._is_changed = (), True  # so its limits are of no resource, and put back
            return
        if one.not_found is not None:
            self._tell(f"{one.name}: this is over: {one.not_found}")
        if one.quota.in_force != NONE:
            one.not_set |= {path: "it is new" for path in paths if path not in one.paths}
        one.not_set = {path: why for path, why in one.not_set.items() if path in paths or path in one.own}
        self._is_changed |= not set(one.paths) <= set(paths)
        one.paths, one.found_us, one.not_found = paths, now_us, None

    def _find_topics(self, one: Enforced) -> None:
        """Topics that are of the resource by themselves, whatever their namespace is, have limits of their own."""
        paths = {self._limits.own_path(topic, one.direction) for topic in one.resource.topics()}
        fresh = {path for path in paths if path is not None} - one.own
        one.own |= fresh
        if one.quota.in_force != NONE:
            one.not_set |= dict.fromkeys(fresh, "it is new")

    def _push(self, one: Enforced, limit: Limit, reason: str, now_us: int) -> None:
        self._tell(f"{one.name}: push {shown(limit)}; {reason}")
        self._set(one, one.places, limit, reason, now_us)
        one.read_back_us = now_us
        self._pushed(one, limit, now_us)

    def _set(
        self, one: Enforced, paths: Sequence[str], limit: Limit, reason: str, now_us: int, *, again: bool = False
    ) -> None:
        if self._pushing is None:
            return
        failed = self._pushing.push(Step(one.name, reason=reason), paths, limit, again=again)
        for path, why in failed.items():
            if one.not_set.get(path) != why:
                self._tell(f"{one.name}: not set at {path}: {why}")
        one.not_set = {path: why for path, why in one.not_set.items() if path not in paths} | failed
        one.operators = set(one.places) - one.not_set.keys() - set(self._pushing.open)
        one.tried_us = now_us

    def _check(self, one: Enforced, decision: Decision, now_us: int) -> None:
        """Topics above their limit: it is set once more, also where they have one of their own; then they are named."""
        for topic in one.not_enforceable - decision.above:
            self._tell(f"{one.name}: {topic} keeps to its limit again")
        one.not_enforceable &= decision.above
        one.repeated_us = {
            topic: at_us
            for topic, at_us in one.repeated_us.items()
            if topic in decision.above or now_us - at_us < 2 * _REPEATED_US
        }
        fresh = sorted(decision.above - one.repeated_us.keys() - one.not_enforceable)
        if fresh:
            are = "is" if len(fresh) == 1 else "are"
            self._tell(f"{one.name}: {named(fresh, 3)} {are} above the limit; it is set once more")
            self._repeat(one, fresh, now_us)
        stubborn = [
            topic
            for topic in sorted(decision.above - one.not_enforceable)
            if now_us - one.repeated_us.get(topic, now_us) >= _REPEATED_US
        ]
        for topic in stubborn:
            self._tell(f"{one.name}: {topic} is not enforceable: it goes on above its limit ({one.resource.escapes})")
            one.not_enforceable.add(topic)
        if stubborn and self._pushing is not None:
            self._pushing.note([Step(one.name, topic, NOT_ENFORCEABLE, reason="above its limit") for topic in stubborn])

    def _repeat(self, one: Enforced, topics: Sequence[str], now_us: int) -> None:
        limit = one.quota.in_force
        is_answered = True
        for topic in topics:
            path = self._limits.own_path(without_partition(topic), one.direction)
            try:
                if path is not None and is_answered and self._limits.read(path) is not None:
                    one.own.add(path)
            except ClusterError as error:
                self._tell(f"{one.name}: {error}")
                is_answered = error.status is not None
            one.repeated_us[topic] = now_us
        self._set(one, one.places, limit, "topics above it", now_us, again=True)
        self._pushed(one, limit, now_us)

    @staticmethod
    def _pushed(one: Enforced, limit: Limit, now_us: int) -> None:
        one.quota.pushed(now_us, limit)
        one.pushes += 1

    @property
    def open(self) -> int:
        """In how many places limits are that were not put back."""
        return 0 if self._pushing is None else len(self._pushing.open)

    def release(self, reason: str) -> Failed:
        """Put everything back. What is decided begins anew."""
        for one in self.enforced:
            one.begin_anew()
        if self._pushing is None:
            return {}
        return self._pushing.release(Step("", reason=reason), self._pushing.open)


def _quota(resource: Resource, direction: str) -> Limit:
    found = {rate.unit: quota for rate, quota in resource.quotas.items() if rate.direction == direction}
    return Limit(found.get("messages"), found.get("bytes"))


def _reason(one: Enforced, decision: Decision) -> str:
    if one.quota.in_force == NONE:
        return "the first limit"
    return f"{shown(one.used)} are used, {len(decision.held)} {one.resource.shares} are at {shown(one.quota.in_force)}"


def shown(limit: Limit) -> str:
    """In words."""
    units = zip(("msg/s", "B/s"), limit, strict=True)
    return " and ".join(f"{cap:,} {unit}" for unit, cap in units if cap is not None) or "no limit"


def named(topics: Sequence[str], most: int) -> str:
    """The first of them, and how many more there are."""
    others = f" and {len(topics) - most} more" if len(topics) > most else ""
    return f"{', '.join(topics[:most])}{others}"
