"""Levels of a domain's dispatches: of groups, and of brokers, topics, subscriptions and replicators."""

from dataclasses import dataclass

from headgate.core.dispatch.dispatch_limiter_level import DispatchLevel, Pair
from headgate.core.dispatch.dispatch_meter import Implementation
from headgate.core.dispatch.group_dispatch_level import GroupDispatchLevel


@dataclass
class LazyGroupLevel:
    """A group's level: made, full, at the first dispatch examined there; before that a limit only sets its rates.

    waiting: subscriptions whose reads it has skipped.
    """

    rates: Pair
    max_debt_ms: int | None = None
    made: GroupDispatchLevel | None = None
    waiting: int = 0

    def at(self, now_ns: int) -> GroupDispatchLevel:
        """The level, made if it is not."""
        if self.made is None:
            self.made = GroupDispatchLevel(*self.rates, created_ns=now_ns, max_debt_ms=self.max_debt_ms)
        return self.made

    def missing(self, now_ns: int) -> int:
        """The dimensions without a permit as bits."""
        return self.at(now_ns).missing(now_ns)

    def charge(self, amounts: Pair, now_ns: int) -> int:
        """Take the amounts; the dimensions left without permits as bits."""
        return self.at(now_ns).charge(amounts, now_ns)


@dataclass
class LazyDispatchLevel:
    """A level that limits nothing is not there; one that does is made, full, at the first dispatch examined there.

    configured: messages and bytes in period_s; 0 is off. averages: publish rates that a relative level adds to them.
    """

    configured: Pair
    period_s: int = 1
    relative: bool = False
    averages: Pair = (0, 0)
    implementation: Implementation = Implementation.TOKEN_BUCKET
    max_debt_ms: int | None = None
    made: DispatchLevel | None = None

    @property
    def limits(self) -> bool:
        """Whether any dimension is limited."""
        return max(self.configured) > 0

    def missing(self, now_ns: int) -> int:
        """The dimensions without a permit as bits. Both are read."""
        if not self.limits:
            return 0
        return sum(1 << kind for kind, permits in enumerate(self._at(now_ns).available(now_ns)) if permits == 0)

    def charge(self, amounts: Pair, now_ns: int) -> int:
        """Take the amounts, possibly into debt; nothing is read."""
        if self.limits:
            self._at(now_ns).consume(amounts, now_ns)
        return 0

    def update(self, configured: Pair, now_ns: int, *, period_s: int, relative: bool) -> None:
        """What changed begins anew (rate-limiters 6.3)."""
        self.configured, self.period_s, self.relative = configured, period_s, relative
        if not self.limits:
            self.made = None
        elif self.made is not None:
            self.made.update(*configured, now_ns, period_s=period_s, relative=relative)

    def follow(self, averages: Pair, now_ns: int) -> None:
        """The topic is published to so fast (rate-limiters 6.2)."""
        self.averages = averages
        if self.made is not None:
            self.made.publish_rate(*averages, now_ns)

    def _at(self, now_ns: int) -> DispatchLevel:
        if self.made is None:
            self.made = DispatchLevel(
                "rate",
                *self.configured,
                created_ns=now_ns,
                period_s=self.period_s,
                relative=self.relative,
                implementation=self.implementation,
                max_debt_ms=self.max_debt_ms,
                averages=self.averages,
            )
        return self.made


Level = LazyGroupLevel | LazyDispatchLevel
