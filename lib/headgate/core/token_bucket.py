"""The token bucket of every limiter: whole tokens, exact remainders, debt (rate-limiters 2)."""

from headgate.core.numbers import MIN, SECOND_NS, at_least, flag, int64, sat
from headgate.core.state import PlainState
from headgate.errors import InvalidArgument

RESOLUTION_NS = 16_000_000


class TokenBucket(PlainState):
    """Over any time the bucket earns exactly `rate` tokens per `period_ns`, whenever it is looked at, up to `capacity`.

    Consumption is never refused: the balance may become negative (debt) and later tokens repay it. Time is an argument;
    a `now_ns` at or before `last_ns` adds nothing and moves nothing. Every read (`take`, `balance_at`, `contains`,
    `pause_ns`) is a refill and moves `last_ns`, so metrics must read a copy.

    Arguments, all integers of 64 bits:
        rate: tokens per period, >= 1.
        created_ns: instant from which tokens accrue.
        period_ns: >= 1, one second by default.
        capacity: tokens, >= 1, by default `rate`.
        initial: balance at creation, >= 0, by default `rate`; what exceeds the capacity is cut by the next refill.
        resolution_ns: >= 0; a fast bucket refills only after strictly more than this. 0: at every later instant.
        max_debt: tokens, >= 0; the balance never falls below -max_debt and the excess is forgiven. None: no bound.
        dynamic: the rate may change (`set_rate`); then capacity and initial must not be given.

    Raises InvalidArgument for anything outside these ranges, and in operations for negative tokens.
    Source: PIP-322 as corrected by PR 24012; rate-limiters 2.
    """

    __slots__ = (
        "balance",
        "capacity",
        "dynamic",
        "last_ns",
        "max_debt",
        "period_ns",
        "rate",
        "remainder_ns",
        "resolution_ns",
    )

    def __init__(
        self,
        rate: int,
        *,
        created_ns: int,
        period_ns: int = SECOND_NS,
        capacity: int | None = None,
        initial: int | None = None,
        resolution_ns: int = RESOLUTION_NS,
        max_debt: int | None = None,
        dynamic: bool = False,
    ) -> None:
        if flag(dynamic, "dynamic") and (capacity is not None or initial is not None):
            raise InvalidArgument("capacity, initial: a dynamic bucket takes both from its rate; leave them out")
        self.rate = at_least(1, rate, "rate")
        self.period_ns = at_least(1, period_ns, "period_ns")
        self.capacity = rate if capacity is None else at_least(1, capacity, "capacity")
        self.resolution_ns = at_least(0, resolution_ns, "resolution_ns")
        self.max_debt = None if max_debt is None else at_least(0, max_debt, "max_debt")
        self.dynamic = dynamic
        self.balance = rate if initial is None else at_least(0, initial, "initial")
        self.last_ns = int64(created_ns, "created_ns")
        self.remainder_ns = 0

    def refill(self, now_ns: int) -> int:
        """Account for the time up to `now_ns` and return the whole tokens it earned, not yet added to the balance.

        Nothing changes before `refill_due_ns`. Time that is no whole token stays in `remainder_ns`. rate-limiters 2.2
        """
        if int64(now_ns, "now_ns") <= self.last_ns + self._gate_ns():
            return 0
        elapsed_ns = now_ns - self.last_ns + self.remainder_ns
        new = elapsed_ns * self.rate // self.period_ns
        self.remainder_ns = elapsed_ns - new * self.period_ns // self.rate
        self.last_ns = now_ns
        return new

    def take(self, n: int, now_ns: int) -> int:
        """Refill, then take `n` >= 0 tokens, possibly into debt, and return the balance.

        The cap comes after earlier consumption and before this call's own cost, so nobody pays for another's
        overdraft twice. rate-limiters 2.2
        """
        at_least(0, n, "n")
        new = self.refill(now_ns)
        if new > 0:
            self.balance = min(self.balance + new, self.capacity)
        self._spend(n)
        return self.balance

    def consume(self, n: int) -> None:
        """Take `n` >= 0 tokens without a refill: no clock is read. rate-limiters 2.3"""
        self._spend(at_least(0, n, "n"))

    def consume_check(self, n: int, now_ns: int) -> bool:
        """Take `n` >= 0 tokens and tell whether any are left: the state after taking, never a refusal."""
        return self.take(n, now_ns) > 0

    def balance_at(self, now_ns: int) -> int:
        """Tokens at `now_ns`, negative in debt. A read is a refill. rate-limiters 2.3"""
        return self.take(0, now_ns)

    def contains(self, now_ns: int) -> bool:
        """Whether the balance at `now_ns` is above 0; exactly 0 is empty. rate-limiters 2.3"""
        return self.take(0, now_ns) > 0

    def pause_ns(self, now_ns: int, need: int | None = None) -> int:
        """Time until a balance of `need` tokens (>= 0; None: the target) is expected, 0 when it is there, in ns.

        Floored, and blind to time accrued since the last refill: one token may still be missing then, so callers
        check again. rate-limiters 2.3, 2.4
        """
        wanted = self.target if need is None else at_least(0, need, "need")
        balance = self.take(0, now_ns)
        if balance >= wanted:
            return 0
        return sat((wanted - balance) * self.period_ns // self.rate)

    @property
    def target(self) -> int:
        """The balance, in tokens, at which a pause ends: one percent of the capacity, at least 1. rate-limiters 2.4"""
        return max(1, self.capacity // 100)

    def refund(self, n: int) -> None:
        """Give back `n` >= 0 tokens, up to the capacity or to the balance where that is higher. No refill.

        Used by reserve then settle alone. rate-limiters 2.3, 6.4
        """
        self.balance = min(self.balance + at_least(0, n, "n"), max(self.balance, self.capacity))

    def refill_due_ns(self) -> int:
        """The first instant at which a refill can happen; MAX stands for never. rate-limiters 2.3"""
        return sat(self.last_ns + self._gate_ns() + 1)

    def set_rate(self, rate: int, now_ns: int, period_ns: int | None = None) -> None:
        """Change rate, capacity and (if given) period of a dynamic bucket, and nothing else.

        All time since the last refill is priced at the new rate; balance and debt are not rescaled. `now_ns` is only
        checked. Raises InvalidArgument on a bucket that is not dynamic. rate-limiters 2.5
        """
        int64(now_ns, "now_ns")
        if not self.dynamic:
            raise InvalidArgument("set_rate: the bucket is not dynamic; replace it with a new one")
        new_period_ns = self.period_ns if period_ns is None else at_least(1, period_ns, "period_ns")
        self.rate = self.capacity = at_least(1, rate, "rate")
        self.period_ns = new_period_ns

    def reprice(self, rate: int, max_debt: int | None, now_ns: int) -> None:
        """Refill at the old rate, then earn `rate` (>= 1, also the new capacity) from here on.

        Balance, debt and remainder stay: nothing is forgiven and no burst granted. `max_debt` is the bound in tokens
        from here on, None for no bound. rate-limiters 4.4
        """
        at_least(1, rate, "rate")
        bound = None if max_debt is None else at_least(0, max_debt, "max_debt")
        self.take(0, now_ns)
        self.rate = self.capacity = rate
        self.max_debt = bound

    def _gate_ns(self) -> int:
        one_ns = self.period_ns // self.rate
        if one_ns > self.resolution_ns:
            return max(0, one_ns - self.remainder_ns - 1)
        return self.resolution_ns

    def _spend(self, n: int) -> None:
        floor = MIN if self.max_debt is None else -self.max_debt
        self.balance = max(self.balance - n, floor)
