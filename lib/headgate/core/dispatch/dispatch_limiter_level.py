"""One level of a dispatch limiter: its message and byte dimensions and its rate (rate-limiters 6.1 to 6.3)."""

import math
from collections.abc import Mapping
from typing import Any, Self

from headgate.core.dispatch.dispatch_meter import BucketMeter, Implementation, Meter, WindowMeter, meter_from
from headgate.core.names import one_of
from headgate.core.numbers import MAX, at_least, flag, int64, sat
from headgate.core.state import PlainData, check_fields
from headgate.errors import InvalidArgument

Pair = tuple[int, int]


class DispatchLevel:
    """A dimension that is not limited is never charged, and `available` tells -1 for it, else what is left, >= 0.

    The level keeps no clock: its owner passes instants that never decrease.

    Arguments, each with its range:
        name: what its owner calls it.
        messages, bytes_: permits per period; 0 or below does not limit the dimension.
        created_ns: the first instant.
        period_s: seconds; below 1 counts as 1 on token buckets and is refused on classic windows.
        relative: the truncated average publish rate is added to each configured rate.
        implementation: `token_bucket` or `classic`.
        max_debt_ms: bounds each bucket's debt to this many ms of tokens, >= 0; None: no bound.
        averages: publish rates per second as known by now, messages and bytes, >= 0.

    Raises InvalidArgument for anything else. Source: rate-limiters 6.
    """

    __slots__ = (
        "averages",
        "configured",
        "implementation",
        "max_debt_ms",
        "meters",
        "name",
        "period_s",
        "relative",
    )

    def __init__(
        self,
        name: str,
        messages: int,
        bytes_: int,
        *,
        created_ns: int,
        period_s: int = 1,
        relative: bool = False,
        implementation: str = Implementation.TOKEN_BUCKET,
        max_debt_ms: int | None = None,
        averages: Pair = (0, 0),
    ) -> None:
        int64(created_ns, "created_ns")
        self.name = name
        self.implementation = one_of(Implementation, implementation, "implementation")
        self.max_debt_ms = None if max_debt_ms is None else at_least(0, max_debt_ms, "max_debt_ms")
        self.configured: Pair = _rates(messages, bytes_)
        self.period_s = self._period(period_s)
        self.relative = flag(relative, "relative")
        self.averages: Pair = (_average(averages[0], "messages"), _average(averages[1], "bytes"))
        self.meters: tuple[Meter | None, Meter | None] = (
            self._new_meter(self.effective[0], created_ns),
            self._new_meter(self.effective[1], created_ns),
        )

    @property
    def effective(self) -> Pair:
        """Messages and bytes per period in force; 0 is not limited. rate-limiters 6.2"""
        messages, bytes_ = (
            sat(configured + average) if self.relative and configured > 0 else configured
            for configured, average in zip(self.configured, self.averages, strict=True)
        )
        return messages, bytes_

    def available(self, at_ns: int) -> Pair:
        """Permits left per dimension, -1 where not limited. Both are read."""
        messages, bytes_ = (-1 if meter is None else meter.available(at_ns) for meter in self.meters)
        return messages, bytes_

    def consume(self, amounts: Pair, at_ns: int) -> None:
        """Charge each limited dimension; amounts below 1 are ignored."""
        for meter, amount in zip(self.meters, amounts, strict=True):
            if meter is not None and amount >= 1:
                meter.consume(amount, at_ns)

    def refund(self, amounts: Pair, at_ns: int) -> None:
        """Give back to each limited dimension; amounts below 1 are ignored."""
        for meter, amount in zip(self.meters, amounts, strict=True):
            if meter is not None and amount >= 1:
                meter.refund(amount, at_ns)

    def publish_rate(self, messages: float, bytes_: float, at_ns: int) -> None:
        """Remember the average publish rates per second and, on a relative level, follow them. rate-limiters 6.2"""
        self.averages = (_average(messages, "messages"), _average(bytes_, "bytes"))
        if not self.relative:
            return
        for meter, rate in zip(self.meters, self.effective, strict=True):
            if meter is not None:
                meter.follow(rate, at_ns)

    def update(self, messages: int, bytes_: int, at_ns: int, *, period_s: int = 1, relative: bool = False) -> None:
        """Set rates, period and relation; a dimension where none of its three changed keeps its permits and debt.

        A changed bucket is replaced by a full one; a changed window keeps its debt. rate-limiters 6.3, 7
        """
        before = [(configured, self.period_s, self.relative) for configured in self.configured]
        configured = _rates(messages, bytes_)
        period_s = self._period(period_s)
        self.configured, self.period_s, self.relative = configured, period_s, flag(relative, "relative")
        after = [(rate, period_s, relative) for rate in configured]
        message_meter, byte_meter = (
            meter if old == new else self._changed(meter, rate, at_ns)
            for meter, rate, old, new in zip(self.meters, self.effective, before, after, strict=True)
        )
        self.meters = (message_meter, byte_meter)

    def advance(self, at_ns: int) -> None:
        """Run the renewals due by `at_ns`; the level's windows do not see each other, so their order is free."""
        for meter in self.meters:
            if meter is not None:
                meter.advance(at_ns)

    def state(self) -> PlainData:
        """Parameters and state as plain data."""
        return {
            "name": self.name,
            "implementation": str(self.implementation),
            "max_debt_ms": self.max_debt_ms,
            "configured": list(self.configured),
            "period_s": self.period_s,
            "relative": self.relative,
            "averages": list(self.averages),
            "meters": [None if meter is None else meter.state() for meter in self.meters],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the level that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, DispatchLevel.__slots__)
        level = cls.__new__(cls)
        for name in ("name", "max_debt_ms", "period_s", "relative"):
            setattr(level, name, state[name])
        level.implementation = Implementation(state["implementation"])
        messages, bytes_ = state["configured"]
        level.configured = (messages, bytes_)
        average_messages, average_bytes = state["averages"]
        level.averages = (average_messages, average_bytes)
        message_meter, byte_meter = (meter_from(level.implementation, meter) for meter in state["meters"])
        level.meters = (message_meter, byte_meter)
        return level

    def _period(self, period_s: int) -> int:
        if self.implementation is Implementation.CLASSIC:
            return at_least(1, period_s, "period_s")
        return max(1, int64(period_s, "period_s"))

    def _new_meter(self, rate: int, at_ns: int) -> Meter | None:
        if rate == 0:
            return None
        if self.implementation is Implementation.CLASSIC:
            return WindowMeter(rate, self.period_s, at_ns, relative=self.relative)
        return BucketMeter(rate, self.period_s, at_ns, relative=self.relative, max_debt_ms=self.max_debt_ms)

    def _changed(self, meter: Meter | None, rate: int, at_ns: int) -> Meter | None:
        if rate > 0 and isinstance(meter, WindowMeter):
            meter.change(rate, self.period_s, at_ns, relative=self.relative)
            return meter
        return self._new_meter(rate, at_ns)


def _rates(messages: int, bytes_: int) -> Pair:
    return max(0, int64(messages, "messages")), max(0, int64(bytes_, "bytes"))


def _average(value: float, name: str) -> int:
    """An average as whole units, 0..MAX; negative, NaN and infinite count as 0. rate-limiters 6.2"""
    if type(value) is int:
        return max(0, int64(value, name))
    if type(value) is not float:
        raise InvalidArgument(f"{name}: got {value!r}, allowed is a number")
    return min(math.trunc(value), MAX) if math.isfinite(value) and value > 0 else 0
