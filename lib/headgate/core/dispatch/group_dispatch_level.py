"""The dispatch level of a resource group, which keeps its debt on a rate change (resource-groups 1, 2)."""

from headgate.core.dispatch.dispatch_meter import BucketMeter
from headgate.core.numbers import MAX, SECOND_NS, sat
from headgate.core.publish.group_limiter import BLOCKED

Amounts = tuple[int, int]
PERIOD_S = 1


class GroupDispatchLevel:
    """A read starts only while every limited dimension has permits; a delivery is charged to each of them.

    Buckets are those of a dispatch level of 1 s: refills come in steps of strictly more than a second (rate-limiters
    6.1). A changed rate keeps balance, debt and remainder: nothing is refilled, nothing forgiven (4.4, reprice). Of a
    blocked dimension nothing is read or drawn and it earns nothing; it goes on from the instant at which it is limited
    again, with what it had. One that was never limited before begins empty then: a block hands out no burst.

    Arguments:
        messages_per_s, bytes_per_s: 0 (not limited), from 1, or BLOCKED.
        created_ns: the first instant; the caller passes instants that never decrease.
        max_debt_ms: bounds the debt to this many ms of tokens, >= 0; None: no bound.

    Never raises. Source: rate-limiters 6.1, 6.5; resource-groups 2.

    """

    __slots__ = ("_max_debt_ms", "meters", "rates")

    def __init__(
        self, messages_per_s: int, bytes_per_s: int, *, created_ns: int, max_debt_ms: int | None = None
    ) -> None:
        self._max_debt_ms = max_debt_ms
        self.rates = (messages_per_s, bytes_per_s)
        self.meters = (self._new(messages_per_s, created_ns), self._new(bytes_per_s, created_ns))

    @property
    def blocking(self) -> int:
        """The blocked dimensions as bits: 1 messages, 2 bytes."""
        return (self.rates[0] == BLOCKED) + 2 * (self.rates[1] == BLOCKED)

    def missing(self, at_ns: int) -> int:
        """The dimensions without a permit as bits; 0: a read may start. Both are read, of a blocked level none."""
        if self.blocking:
            return self.blocking
        return sum(
            1 << kind for kind, meter in enumerate(self.meters) if meter is not None and meter.available(at_ns) == 0
        )

    def charge(self, amounts: Amounts, at_ns: int) -> int:
        """Take each dimension's amount, possibly into debt, without a read; return those in which a read at this
        instant would find no permit.

        As bits; a blocked dimension is one of them. Amounts below 1 are ignored.
        """
        causes = 0
        for kind, (meter, rate, amount) in enumerate(zip(self.meters, self.rates, amounts, strict=True)):
            if rate == BLOCKED:
                causes |= 1 << kind
            elif meter is not None:
                if amount > 0:
                    meter.consume(amount, at_ns)
                if _refilled_ns(meter) > at_ns:
                    causes |= 1 << kind
        return causes

    def ready_ns(self) -> int:
        """The first instant at which a read would find permits in every dimension, if nothing is charged before.

        That is the step which refills the last of them; MAX while blocked.
        """
        if self.blocking:
            return MAX
        return max((_refilled_ns(meter) for meter in self.meters if meter is not None), default=0)

    def update(self, messages_per_s: int, bytes_per_s: int, at_ns: int) -> None:
        """Set both rates from this instant on."""
        old, rates = self.rates, (messages_per_s, bytes_per_s)
        self.meters = (
            self._moved(self.meters[0], old[0], rates[0], at_ns),
            self._moved(self.meters[1], old[1], rates[1], at_ns),
        )
        self.rates = rates

    def _moved(self, meter: BucketMeter | None, old: int, rate: int, at_ns: int) -> BucketMeter | None:
        if rate == old:
            return meter
        if meter is None or rate == 0:
            return self._new(rate, at_ns)
        bucket = meter.bucket
        if old == BLOCKED:
            bucket.last_ns = at_ns
        if rate == BLOCKED:
            bucket.take(0, at_ns)
        else:
            bucket.reprice(rate, None if self._max_debt_ms is None else sat(rate * self._max_debt_ms // 1000), at_ns)
        return meter

    def _new(self, rate: int, at_ns: int) -> BucketMeter | None:
        if rate == 0:
            return None
        if rate == BLOCKED:
            unearned = BucketMeter(1, PERIOD_S, 0, relative=False, max_debt_ms=None)
            unearned.bucket.balance = 0
            return unearned
        return BucketMeter(rate, PERIOD_S, at_ns, relative=False, max_debt_ms=self._max_debt_ms)


def _refilled_ns(meter: BucketMeter) -> int:
    """When a bucket without permits has one again, 0 for one that has."""
    bucket = meter.bucket
    if bucket.balance > 0:
        return 0
    earned_ns = -((bucket.balance - 1) * SECOND_NS // bucket.rate)
    return max(bucket.refill_due_ns(), sat(bucket.last_ns + earned_ns - bucket.remainder_ns))
