"""The dispatch limiter: levels that a read must pass and that a delivery is charged to (rate-limiters 6)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from headgate.core.dispatch.dispatch_limiter_level import DispatchLevel, Pair
from headgate.core.dispatch.dispatch_meter import Implementation
from headgate.core.names import known, unused
from headgate.core.numbers import at_least, flag, int64
from headgate.core.ordered_time import enter
from headgate.core.state import PlainData, check_fields
from headgate.errors import InvalidArgument

GROUP_LEVEL = "group"


class ForgivingGroupLevel(DispatchLevel):
    """The resource group's: token buckets with a period of 1 s, not relative; a change of rates forgives debt.

    That of jobs keeps it (core.dispatch.group_dispatch_level.GroupDispatchLevel), as resource-groups 2 asks for.
    Raises InvalidArgument for anything else.
    """

    __slots__ = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._check(self.period_s, relative=self.relative)

    def update(self, messages: int, bytes_: int, at_ns: int, *, period_s: int = 1, relative: bool = False) -> None:
        """As that of any level."""
        self._check(self._period(period_s), relative=flag(relative, "relative"))
        super().update(messages, bytes_, at_ns, period_s=period_s, relative=relative)

    def try_acquire(self, amounts: Pair, at_ns: int) -> bool:
        """Charge each limited dimension and tell whether all of them still contain tokens; without any, true.

        Amounts below 1 are not charged. rate-limiters 6.5
        """
        charged = [
            meter.consume_check(amount, at_ns)
            for meter, amount in zip(self.meters, amounts, strict=True)
            if meter is not None and amount >= 1
        ]
        return all(charged)

    def _check(self, period_s: int, *, relative: bool) -> None:
        if period_s != 1 or relative or self.implementation is Implementation.CLASSIC:
            raise InvalidArgument("level 'group': allowed are token buckets with a period of 1 s, not relative")


def _class_of(level: str) -> type[DispatchLevel]:
    return ForgivingGroupLevel if level == GROUP_LEVEL else DispatchLevel


class DispatchLimiter:
    """A read starts only while every level has permits in both dimensions; a delivery is charged to every level.

    Operations act at the highest time seen, after the renewals of classic levels that are due by then.

    Arguments, each with its range:
        created_ns: the first instant.
        on_batch: charge entries in place of messages.
        throttle_non_backlog: false exempts reads for caught-up consumers: nothing is read and nothing charged.
        reserve: reserve then settle, so that dispatchers cannot spend the same permits twice.
        max_debt_ms: debt bound of every token bucket, ms of tokens, >= 0; None: no bound.

    Every operation raises InvalidArgument for unknown levels and values out of range. Source: rate-limiters 6.
    """

    __slots__ = ("_levels", "high_ns", "max_debt_ms", "on_batch", "reserves", "throttle_non_backlog")

    def __init__(
        self,
        *,
        created_ns: int,
        on_batch: bool = False,
        throttle_non_backlog: bool = True,
        reserve: bool = False,
        max_debt_ms: int | None = None,
    ) -> None:
        self.high_ns = int64(created_ns, "created_ns")
        self.on_batch = flag(on_batch, "on_batch")
        self.throttle_non_backlog = flag(throttle_non_backlog, "throttle_non_backlog")
        self.reserves = flag(reserve, "reserve")
        self.max_debt_ms = None if max_debt_ms is None else at_least(0, max_debt_ms, "max_debt_ms")
        self._levels: dict[str, DispatchLevel] = {}

    def add_level(
        self,
        name: str,
        messages: int,
        bytes_: int,
        now_ns: int,
        *,
        period_s: int = 1,
        relative: bool = False,
        implementation: str = Implementation.TOKEN_BUCKET,
    ) -> None:
        """Append a level, full, to the order in which levels are examined."""
        at_ns = self._enter(now_ns)
        unused(self._levels, name, "level")
        self._levels[name] = _class_of(name)(
            name,
            messages,
            bytes_,
            created_ns=at_ns,
            period_s=period_s,
            relative=relative,
            implementation=implementation,
            max_debt_ms=self.max_debt_ms,
        )

    def available(self, level: str, now_ns: int) -> Pair:
        """The level's permits for messages and bytes, >= 0, -1 where not limited. A read is a refill. 6.1"""
        at_ns = self._enter(now_ns)
        return self._level(level).available(at_ns)

    def effective(self, level: str, now_ns: int) -> Pair:
        """The level's rates per period in force, 0 where not limited. rate-limiters 6.2"""
        self._enter(now_ns)
        return self._level(level).effective

    def may_dispatch(self, now_ns: int, *, caught_up: bool = False) -> bool:
        """Whether a read may start; levels after the first one without permits are not read. rate-limiters 6.1"""
        at_ns = self._enter(now_ns)
        return self._exempt(caught_up) or self._permits(at_ns) is not None

    def read_limits(self, messages: int, bytes_: int, now_ns: int, *, caught_up: bool = False) -> Pair | None:
        """How many messages and bytes a read that wishes for these may ask for, each >= 1; None: no read. 6.1"""
        at_ns = self._enter(now_ns)
        wish = (int64(messages, "messages"), int64(bytes_, "bytes"))
        if self._exempt(caught_up):
            return max(1, wish[0]), max(1, wish[1])
        return self._granted(wish, at_ns)

    def dispatched(
        self, messages: int, bytes_: int, now_ns: int, *, entries: int | None = None, caught_up: bool = False
    ) -> None:
        """Charge a delivery to every level, possibly into debt; amounts below 1 are ignored. rate-limiters 6.1

        `entries` defaults to `messages` and is charged in their place with `on_batch`.
        """
        at_ns = self._enter(now_ns)
        amounts = self._amounts(messages, bytes_, entries)
        if self._exempt(caught_up):
            return
        for level in self._levels.values():
            level.consume(amounts, at_ns)

    def reserve(self, messages: int, bytes_: int, now_ns: int) -> Pair | None:
        """Grant what `read_limits` allows and charge it to every level at once; None: nothing. rate-limiters 6.4"""
        at_ns = self._enter(now_ns)
        self._check_reserves("reserve")
        granted = self._granted((int64(messages, "messages"), int64(bytes_, "bytes")), at_ns)
        if granted is not None:
            for level in self._levels.values():
                level.consume(granted, at_ns)
        return granted

    def settle(
        self, granted: Sequence[int], messages: int, bytes_: int, now_ns: int, *, entries: int | None = None
    ) -> None:
        """After the delivery: charge what went beyond the grant, refund what stayed below it. rate-limiters 6.4"""
        at_ns = self._enter(now_ns)
        self._check_reserves("settle")
        granted_pair = _granted_pair(granted)
        actual = self._amounts(*_not_negative(messages, bytes_, entries))
        beyond = (actual[0] - granted_pair[0], actual[1] - granted_pair[1])
        for level in self._levels.values():
            level.consume(beyond, at_ns)
            level.refund((-beyond[0], -beyond[1]), at_ns)

    def publish_rate(self, level: str, messages: float, bytes_: float, now_ns: int) -> None:
        """The average publish rates per second that a relative level adds to its own. rate-limiters 6.2"""
        at_ns = self._enter(now_ns)
        self._level(level).publish_rate(messages, bytes_, at_ns)

    def update(
        self, level: str, messages: int, bytes_: int, now_ns: int, *, period_s: int = 1, relative: bool = False
    ) -> None:
        """Change a level's rates, period and relation. rate-limiters 6.3"""
        at_ns = self._enter(now_ns)
        self._level(level).update(messages, bytes_, at_ns, period_s=period_s, relative=relative)

    def try_acquire(self, level: str, messages: int, bytes_: int, now_ns: int) -> bool:
        """Charge the group's level and tell whether its charged buckets still contain tokens. rate-limiters 6.5"""
        at_ns = self._enter(now_ns)
        amounts = (int64(messages, "messages"), int64(bytes_, "bytes"))
        of_group = self._level(level)
        if not isinstance(of_group, ForgivingGroupLevel):
            raise InvalidArgument(f"try_acquire: level {level!r}, allowed is {GROUP_LEVEL!r} alone")
        return of_group.try_acquire(amounts, at_ns)

    def advance(self, now_ns: int) -> None:
        """Run the renewals due by `now_ns` and move time there; no other effect. rate-limiters 3.1"""
        self._enter(now_ns)

    def state(self) -> PlainData:
        """Parameters and state as plain data; levels are a list in their order."""
        return {
            "high_ns": self.high_ns,
            "on_batch": self.on_batch,
            "throttle_non_backlog": self.throttle_non_backlog,
            "reserve": self.reserves,
            "max_debt_ms": self.max_debt_ms,
            "levels": [level.state() for level in self._levels.values()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the limiter that `state` was taken from. Raises StateError for fields of another version."""
        options = ("on_batch", "throttle_non_backlog", "reserve", "max_debt_ms")
        check_fields(cls.__name__, state, ("high_ns", "levels", *options))
        limiter = cls(created_ns=state["high_ns"], **{name: state[name] for name in options})
        levels = (_class_of(level["name"]).from_state(level) for level in state["levels"])
        limiter._levels = {level.name: level for level in levels}
        return limiter

    def _enter(self, now_ns: int) -> int:
        self.high_ns = enter(now_ns, self.high_ns)
        for level in self._levels.values():
            level.advance(self.high_ns)
        return self.high_ns

    def _level(self, name: str) -> DispatchLevel:
        return known(self._levels, name, "level")

    def _exempt(self, caught_up: bool) -> bool:
        return flag(caught_up, "caught_up") and not self.throttle_non_backlog

    def _check_reserves(self, operation: str) -> None:
        if not self.reserves:
            raise InvalidArgument(f"{operation}: reserve then settle is off; switch the option on")

    def _permits(self, at_ns: int) -> list[Pair] | None:
        """Every level's permits, None at the first level that has none; later levels are then not read."""
        permits = []
        for level in self._levels.values():
            available = level.available(at_ns)
            if 0 in available:
                return None
            permits.append(available)
        return permits

    def _granted(self, wish: Pair, at_ns: int) -> Pair | None:
        permits = self._permits(at_ns)
        if permits is None:
            return None
        return (
            _least(wish[0], (messages for messages, _ in permits)),
            _least(wish[1], (bytes_ for _, bytes_ in permits)),
        )

    def _amounts(self, messages: int, bytes_: int, entries: int | None) -> Pair:
        int64(messages, "messages")
        counted = messages if entries is None else int64(entries, "entries")
        return counted if self.on_batch else messages, int64(bytes_, "bytes")


def _least(wish: int, permits: Iterable[int]) -> int:
    return max(1, min([wish, *(permit for permit in permits if permit > 0)]))


def _granted_pair(granted: Sequence[int]) -> Pair:
    if not isinstance(granted, (list, tuple)) or len(granted) != 2:
        raise InvalidArgument(f"granted: got {granted!r}, allowed is what reserve returned: messages and bytes")
    return at_least(0, granted[0], "granted messages"), at_least(0, granted[1], "granted bytes")


def _not_negative(messages: int, bytes_: int, entries: int | None) -> tuple[int, int, int | None]:
    counted = None if entries is None else at_least(0, entries, "entries")
    return at_least(0, messages, "messages"), at_least(0, bytes_, "bytes"), counted
