"""What meters one dimension of a dispatch level: a token bucket or a classic window (rate-limiters 6.1, 7)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from headgate.core.dispatch.classic_window import ClassicWindow
from headgate.core.numbers import SECOND_NS, sat
from headgate.core.state import PlainData
from headgate.core.token_bucket import TokenBucket


class Implementation(StrEnum):
    """How a dispatch level meters. Source: rate-limiters 6, 7"""

    TOKEN_BUCKET = "token_bucket"  # noqa: S105  tokens of a bucket, no secret
    CLASSIC = "classic"


class BucketMeter:
    """Permits are a bucket's balance; refills come in steps of strictly more than one period.

    `relative` makes the bucket dynamic, so that it can follow the publish rate. `max_debt_ms` bounds its debt to this
    many ms of tokens at the rate of its creation; None: no bound. Source: rate-limiters 6.1 to 6.3
    """

    __slots__ = ("bucket",)

    def __init__(self, rate: int, period_s: int, at_ns: int, *, relative: bool, max_debt_ms: int | None) -> None:
        period_ns = sat(period_s * SECOND_NS)
        self.bucket = TokenBucket(
            rate,
            created_ns=at_ns,
            period_ns=period_ns,
            resolution_ns=period_ns,
            max_debt=None if max_debt_ms is None else sat(rate * max_debt_ms // (1000 * period_s)),
            dynamic=relative,
        )

    def available(self, at_ns: int) -> int:
        """Permits left, >= 0. A read is a refill."""
        return max(0, self.bucket.balance_at(at_ns))

    def consume(self, n: int, at_ns: int) -> None:
        """Take `n` permits, possibly into debt; `at_ns` is not read."""
        del at_ns
        self.bucket.consume(n)

    def consume_check(self, n: int, at_ns: int) -> bool:
        """Take `n` permits and tell whether any are left."""
        return self.bucket.consume_check(n, at_ns)

    def refund(self, n: int, at_ns: int) -> None:
        """Give back `n` permits; `at_ns` is not read."""
        del at_ns
        self.bucket.refund(n)

    def follow(self, rate: int, at_ns: int) -> None:
        """The publish rate moved the effective rate to `rate`."""
        self.bucket.set_rate(rate, at_ns)

    def advance(self, at_ns: int) -> None:
        """A bucket has no deferred work."""

    def state(self) -> PlainData:
        """The bucket's state."""
        return self.bucket.state()


class WindowMeter:
    """Permits are those of a classic window in dispatch mode; its renewals are the level's deferred work.

    Source: rate-limiters 7
    """

    __slots__ = ("window",)

    def __init__(self, rate: int, period_s: int, at_ns: int, *, relative: bool) -> None:
        self.window = ClassicWindow(
            rate,
            sat(period_s * SECOND_NS),
            created_ns=at_ns,
            dispatch_mode=True,
            permit_updater=rate if relative else None,
        )

    def available(self, at_ns: int) -> int:
        """Permits left, >= 0."""
        return self.window.available(at_ns)

    def consume(self, n: int, at_ns: int) -> None:
        """Take `n` permits, possibly into debt; the first call starts the timer."""
        self.window.try_acquire(n, at_ns)

    def consume_check(self, n: int, at_ns: int) -> bool:
        """Take `n` permits and tell whether any are left."""
        return self.window.try_acquire(n, at_ns)

    def refund(self, n: int, at_ns: int) -> None:
        """Give back `n` permits."""
        self.window.give_back(n, at_ns)

    def follow(self, rate: int, at_ns: int) -> None:
        """The publish rate moved the effective rate to `rate`: it counts from the next renewal on."""
        self.window.set_updater(rate, at_ns)

    def change(self, rate: int, period_s: int, at_ns: int, *, relative: bool) -> None:
        """Take over a changed rate, period or relation; debt is kept."""
        self.window.set_rate(rate, sat(period_s * SECOND_NS), at_ns)
        self.window.set_updater(rate if relative else None, at_ns)

    def advance(self, at_ns: int) -> None:
        """Run the renewals due by `at_ns`."""
        self.window.advance(at_ns)

    def state(self) -> PlainData:
        """The window's state."""
        return self.window.state()


Meter = BucketMeter | WindowMeter


def meter_from(implementation: Implementation, state: Mapping[str, Any] | None) -> Meter | None:
    """Rebuild the meter that `state` was taken from, None for a dimension without a limit."""
    if state is None:
        return None
    if implementation is Implementation.CLASSIC:
        window_meter = WindowMeter.__new__(WindowMeter)
        window_meter.window = ClassicWindow.from_state(state)
        return window_meter
    bucket_meter = BucketMeter.__new__(BucketMeter)
    bucket_meter.bucket = TokenBucket.from_state(state)
    return bucket_meter
