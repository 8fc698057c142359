"""The classic window limiter: permits per period, renewed all at once (rate-limiters 7)."""

from headgate.core.numbers import MAX, at_least, flag, int64, sat
from headgate.core.ordered_time import enter
from headgate.core.state import PlainState
from headgate.errors import Closed


class ClassicWindow(PlainState):
    """At most `permits` are acquired per period in normal mode; in dispatch mode the excess is debt.

    The first `try_acquire` starts the timer, and renewals are exactly one period apart from then on. A normal renewal
    forgets what was acquired, a dispatch renewal repays one period's permits. Operations act at the highest time
    seen, after all renewals due by then; a renewal at MAX stands for never.

    Arguments, each with its range:
        permits: per period, >= 1.
        period_ns: >= 1.
        created_ns: the first instant.
        dispatch_mode: debt instead of refusals.
        permit_updater: permits from the next renewal on; None, 0 or below: no change.

    Attributes, as of `high_ns` (call `advance` first): `acquired`, `next_renewal_ns` (None before the first
    `try_acquire`), `renewals` (number so far), `closed`.
    Raises InvalidArgument for values out of range, Closed after `close`. Source: rate-limiters 7.
    """

    __slots__ = (
        "acquired",
        "closed",
        "dispatch_mode",
        "high_ns",
        "next_renewal_ns",
        "period_ns",
        "permit_updater",
        "permits",
        "renewals",
    )

    def __init__(
        self,
        permits: int,
        period_ns: int,
        *,
        created_ns: int,
        dispatch_mode: bool = False,
        permit_updater: int | None = None,
    ) -> None:
        self.permits = at_least(1, permits, "permits")
        self.period_ns = at_least(1, period_ns, "period_ns")
        self.high_ns = int64(created_ns, "created_ns")
        self.dispatch_mode = flag(dispatch_mode, "dispatch_mode")
        self.permit_updater = None if permit_updater is None else int64(permit_updater, "permit_updater")
        self.acquired = 0
        self.next_renewal_ns: int | None = None
        self.renewals = 0
        self.closed = False

    def try_acquire(self, n: int, now_ns: int) -> bool:
        """Acquire `n` >= 0 permits. Normal mode: all or nothing. Dispatch mode: always, true while permits are left."""
        at_ns = self._enter_open(now_ns)
        at_least(0, n, "n")
        if self.next_renewal_ns is None:
            self.next_renewal_ns = sat(at_ns + self.period_ns)
        if self.dispatch_mode:
            self.acquired = sat(self.acquired + n)
            return self.acquired < self.permits
        if self.acquired + n > self.permits:
            return False
        self.acquired += n
        return True

    def available(self, now_ns: int) -> int:
        """Permits left, >= 0. Does not start the timer."""
        self._enter_open(now_ns)
        return max(0, self.permits - self.acquired)

    def give_back(self, n: int, now_ns: int) -> None:
        """Return `n` >= 0 acquired permits: the refund of reserve then settle. rate-limiters 6.4, 7"""
        self._enter_open(now_ns)
        self.acquired = max(0, self.acquired - at_least(0, n, "n"))

    def set_rate(self, permits: int, period_ns: int, now_ns: int) -> None:
        """Change permits and period, both >= 1; what is acquired stays, and a started timer restarts."""
        at_ns = self._enter_open(now_ns)
        at_least(1, permits, "permits")
        at_least(1, period_ns, "period_ns")
        self.permits = permits
        self.period_ns = period_ns
        if self.next_renewal_ns is not None:
            self.next_renewal_ns = sat(at_ns + period_ns)

    def set_updater(self, permits: int | None, now_ns: int) -> None:
        """Set the permits that the next renewal brings; None, 0 or below: renewals keep them."""
        self.advance(now_ns)
        self.permit_updater = None if permits is None else int64(permits, "permits")

    def close(self, now_ns: int) -> None:
        """End the window: acquiring, reading and rate changes raise Closed from here on; closing again does nothing."""
        self.advance(now_ns)
        self.closed = True

    def advance(self, now_ns: int) -> None:
        """Apply the renewals due by `now_ns` and move time there; no other effect. rate-limiters 3.1"""
        self.high_ns = enter(now_ns, self.high_ns)
        self._renew()

    def _enter_open(self, now_ns: int) -> int:
        self.advance(now_ns)
        if self.closed:
            raise Closed("the window was closed; create a new one")
        return self.high_ns

    def _renew(self) -> None:
        """Missed renewals in closed form: the updater counts from the second one on."""
        until_ns = min(self.high_ns, MAX - 1)
        if self.next_renewal_ns is None or self.next_renewal_ns > until_ns:
            return
        count = (until_ns - self.next_renewal_ns) // self.period_ns + 1
        renewed_permits = self.permits
        if self.permit_updater is not None and self.permit_updater > 0:
            renewed_permits = self.permit_updater
        repaid = self.permits + (count - 1) * renewed_permits
        self.acquired = max(0, self.acquired - repaid) if self.dispatch_mode else 0
        self.permits = renewed_permits
        self.renewals = sat(self.renewals + count)
        self.next_renewal_ns = sat(self.next_renewal_ns + count * self.period_ns)
