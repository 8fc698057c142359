"""Compatibility profile `pip322`: the first token bucket, kept for comparison reports (rate-limiters 13)."""

from headgate.core.numbers import SECOND_NS, at_least, sat
from headgate.core.state import PlainState
from headgate.core.token_bucket import RESOLUTION_NS


class Pip322Bucket(PlainState):
    """Tokens move once per resolution slot; consumption between two updates is pending and its result is a guess.

    Kept with its defects: several callers inside one slot all pass, a clock step back removes tokens, and the cap
    before the subtraction loses debt accuracy. Never used inside limiters.

    Arguments, all integers of 64 bits:
        rate: tokens per period, >= 1.
        created_ns: > 0, like every `now_ns` here; construction is one read.
        period_ns: >= 1; capacity: >= 1, by default `rate`; initial: >= 0, by default `rate`.
        resolution_ns: slot length, >= 0; 0 updates on every call.

    Raises InvalidArgument for anything outside these ranges and for negative tokens.
    Source: PIP-322, PR 21681; rate-limiters 13.
    """

    __slots__ = (
        "capacity",
        "last_ns",
        "pending",
        "period_ns",
        "rate",
        "remainder_ns",
        "resolution_ns",
        "slot",
        "tokens",
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
    ) -> None:
        self.rate = at_least(1, rate, "rate")
        self.period_ns = at_least(1, period_ns, "period_ns")
        self.capacity = rate if capacity is None else at_least(1, capacity, "capacity")
        self.resolution_ns = at_least(0, resolution_ns, "resolution_ns")
        self.tokens = rate if initial is None else at_least(0, initial, "initial")
        self.pending = 0
        self.last_ns: int | None = None
        self.remainder_ns = 0
        self.slot = 0
        self.balance_at(at_least(1, created_ns, "created_ns"))

    def consume(self, n: int, now_ns: int) -> None:
        """Take `n` >= 0 tokens, at once in a new slot, else at the next update."""
        self._update(n, now_ns, force=False)

    def consume_check(self, n: int, now_ns: int) -> bool:
        """Take `n` >= 0 tokens and tell whether any are left; inside a slot a guess that forgets what is pending."""
        tokens = self._update(n, now_ns, force=False)
        return (self.tokens - n if tokens is None else tokens) > 0

    def balance_at(self, now_ns: int) -> int:
        """Tokens at `now_ns`, everything pending taken. Moves the state, back in time too."""
        self._update(0, now_ns, force=True)
        return self.tokens

    def contains(self, now_ns: int) -> bool:
        """Whether the balance at `now_ns` is above 0."""
        return self.balance_at(now_ns) > 0

    def pause_ns(self, now_ns: int) -> int:
        """0 while tokens are left, else the time until one resolution's tokens are expected, in ns, uncapped."""
        balance = self.balance_at(now_ns)
        if balance > 0:
            return 0
        target = max(1, self.resolution_ns * self.rate // self.period_ns)
        return sat((target - balance) * self.period_ns // self.rate)

    def _update(self, n: int, now_ns: int, *, force: bool) -> int | None:
        at_least(0, n, "n")
        at_least(1, now_ns, "now_ns")
        slot = 0 if self.resolution_ns == 0 else now_ns // self.resolution_ns
        advanced = slot > self.slot
        if advanced:
            self.slot = slot
        if not (slot == 0 or advanced or force):
            self.pending = sat(self.pending + n)
            return None
        new = self._accrue(now_ns)
        self.tokens = sat(min(self.tokens + new, self.capacity) - (n + self.pending))
        self.pending = 0
        return self.tokens

    def _accrue(self, now_ns: int) -> int:
        last_ns, self.last_ns = self.last_ns, now_ns
        if last_ns is None:
            return 0
        elapsed_ns = now_ns - last_ns + self.remainder_ns
        new = _truncated(elapsed_ns * self.rate, self.period_ns)
        self.remainder_ns = max(0, elapsed_ns - _truncated(new * self.period_ns, self.rate))
        return new


def _truncated(dividend: int, divisor: int) -> int:
    """Division towards zero by a positive divisor, as Java does it: floor differs after a step back in time."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)
