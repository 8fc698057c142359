"""Array form of one level of dispatch: what it lacks, what it is charged, how its rate changes.

Buckets of a group's level keep their debt on a rate change; others have buckets, or classic windows, that begin anew as
they change. The readable forms are `headgate.core.dispatch.group_dispatch_level` and
`headgate.core.dispatch.dispatch_limiter_level`.
"""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.columns import NO_VALUE
from headgate.core.kernels.compiled import borrowing, inlined, inner
from headgate.core.kernels.dispatch.types import DispatchArrays
from headgate.core.kernels.int128 import MAX, MIN, distance, earn, sat_add, wait_ns
from headgate.core.kernels.publish.publish_limiter import blocking, initialise, set_rate_of
from headgate.core.kernels.publish.types import PERIOD_NS
from headgate.core.kernels.token_bucket import draw, set_gate, spend


@borrowing
def settle_levels(domain: DispatchArrays) -> None:
    """Derive what follows from rate, period, last_ns and remainder_ns of every bucket."""
    for i in range(domain.limiters.size):
        for kind in range(2):
            bucket = domain.buckets[i, kind]
            bucket.capacity = bucket.rate
            in_steps(bucket, domain.limiters[i].period_s)


@inner
def in_steps(bucket: Any, period_s: int64) -> None:
    """Refills come in steps of strictly more than a period (rate-limiters 6.1)."""
    bucket.period_ns = period_s * PERIOD_NS
    bucket.resolution_ns = bucket.period_ns
    set_gate(bucket)


@inlined
def is_limited(domain: DispatchArrays, i: int64) -> bool:
    return domain.limiters[i].limits != 0


@inner
def floor_of(rate: int64, period_s: int64, max_debt_ms: int64) -> int64:
    """-max_debt of a bucket of that rate; MIN: no bound (rate-limiters 6.3)."""
    if max_debt_ms < 0:
        return int64(MIN)
    return -wait_ns(uint64(max(rate, int64(0))), max_debt_ms, int64(1000) * period_s)


@inlined
def effective(domain: DispatchArrays, i: int64, kind: int64) -> int64:
    """The rate in force (rate-limiters 6.2)."""
    configured = domain.configured[i, kind]
    if configured > 0 and domain.limiters[i].relative != 0:
        return sat_add(configured, domain.averages[i, kind])
    return configured


@inner
def fill_bucket(bucket: Any, rate: int64, period_s: int64, max_debt_ms: int64, now_ns: int64) -> None:
    """A full bucket, zeros where the dimension is not limited."""
    bucket.rate = bucket.capacity = bucket.balance = rate
    bucket.last_ns = now_ns if rate > 0 else int64(0)
    bucket.remainder_ns = 0
    bucket.floor = floor_of(rate, period_s, max_debt_ms) if rate > 0 else int64(0)
    in_steps(bucket, period_s)


@inner
def open_window(bucket: Any, rate: int64, period_s: int64, relative: int64) -> None:
    """A window of which nothing is acquired, zeros where the dimension is not limited."""
    bucket.rate = bucket.capacity = rate
    bucket.balance = bucket.floor = int64(0)
    bucket.period_ns = period_s * PERIOD_NS
    bucket.last_ns = NO_VALUE if rate > 0 else int64(0)
    bucket.remainder_ns = rate if relative != 0 else int64(0)


@inlined
def new_meter(domain: DispatchArrays, i: int64, kind: int64, now_ns: int64) -> None:
    level, rate = domain.limiters[i], effective(domain, i, kind)
    if domain.classic:
        open_window(domain.buckets[i, kind], rate, level.period_s, int64(level.relative))
    else:
        fill_bucket(domain.buckets[i, kind], rate, level.period_s, int64(domain.max_debt_ms), now_ns)


@inlined
def bear_level(domain: DispatchArrays, i: int64, now_ns: int64) -> None:
    """Make a level, that is no group's, as it limits for the first time."""
    if domain.limiters[i].initialised == 0:
        domain.limiters[i].initialised = 1
        for kind in range(2):
            new_meter(domain, i, int64(kind), now_ns)


@inner
def renew(bucket: Any, now_ns: int64) -> None:
    """The renewals of a window that are due by now, in closed form (rate-limiters 7)."""
    until_ns = min(now_ns, int64(MAX - 1))
    if bucket.last_ns == NO_VALUE or bucket.last_ns > until_ns:
        return
    count = (until_ns - bucket.last_ns) // bucket.period_ns + 1
    permits = bucket.remainder_ns if bucket.remainder_ns > 0 else bucket.rate
    left = bucket.balance - min(bucket.balance, bucket.rate)
    left = int64(0) if count - 1 > left // permits else left - (count - 1) * permits
    bucket.balance, bucket.rate = left, permits
    bucket.last_ns = sat_add(bucket.last_ns + (count - 1) * bucket.period_ns, bucket.period_ns)


@inner
def permits_of(bucket: Any, classic: bool, now_ns: int64) -> int64:
    """Above 0 while any are left. A read is a refill."""
    if not classic:
        return draw(bucket, int64(0), now_ns)
    renew(bucket, now_ns)
    return int64(bucket.rate > bucket.balance)


@inlined
def missing_of_rate(domain: DispatchArrays, i: int64, now_ns: int64) -> int:
    """The dimensions of a level that is no group's without a permit as bits. Both are read."""
    if not is_limited(domain, i):
        return 0
    bear_level(domain, i, now_ns)
    causes = 0
    for kind in range(2):
        is_one = domain.limiters[i].limits & (1 << kind) != 0
        if is_one and permits_of(domain.buckets[i, kind], domain.classic, now_ns) <= 0:
            causes |= 1 << kind
    return causes


@inlined
def missing_of_group(domain: DispatchArrays, i: int64, now_ns: int64) -> int:
    """The same of a group's level; of a blocked one nothing is read."""
    if domain.limiters[i].initialised == 0:
        initialise(domain.limiters[i], domain.buckets, i, now_ns)
    causes = blocking(domain.buckets, i)
    if causes == 0:
        for kind in range(2):
            bucket = domain.buckets[i, kind]
            if bucket.rate > 0 and draw(bucket, int64(0), now_ns) <= 0:
                causes |= 1 << kind
    return causes


@inlined
def charge_rate(domain: DispatchArrays, i: int64, charged: int64, bytes_: int64, now_ns: int64) -> None:
    """Take the amounts, possibly into debt; nothing is read."""
    if not is_limited(domain, i):
        return
    bear_level(domain, i, now_ns)
    for kind in range(2):
        amount = charged if kind == 0 else bytes_
        if domain.limiters[i].limits & (1 << kind) != 0 and amount > 0:
            consume(domain.buckets[i, kind], domain.classic, amount, now_ns)


@inner
def consume(bucket: Any, classic: bool, amount: int64, now_ns: int64) -> None:
    if not classic:
        bucket.balance = spend(bucket.balance, amount, bucket.floor)
        return
    renew(bucket, now_ns)
    if bucket.last_ns == NO_VALUE:
        bucket.last_ns = sat_add(now_ns, bucket.period_ns)
    bucket.balance = sat_add(bucket.balance, amount)


@inner
def refilled_ns(bucket: Any) -> int64:
    """When a bucket without permits has one again, if nothing is charged before."""
    lacking = distance(bucket.balance, int64(1))
    earned_ns = wait_ns(lacking, bucket.period_ns, bucket.rate)
    new, _ = earn(uint64(earned_ns), bucket.rate, bucket.period_ns)
    if new < lacking:
        earned_ns = sat_add(earned_ns, int64(1))
    return max(sat_add(bucket.due_ns, int64(1)), sat_add(bucket.last_ns, earned_ns - bucket.remainder_ns))


@inlined
def charge_group(domain: DispatchArrays, i: int64, charged: int64, bytes_: int64, now_ns: int64) -> int:
    """Take the amounts without a read; the dimensions in which a read at this instant would find no permit as bits."""
    if domain.limiters[i].initialised == 0:
        initialise(domain.limiters[i], domain.buckets, i, now_ns)
    causes = blocking(domain.buckets, i)
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        if bucket.rate <= 0:
            continue
        amount = charged if kind == 0 else bytes_
        if amount > 0:
            bucket.balance = spend(bucket.balance, amount, bucket.floor)
        if bucket.balance <= 0 and refilled_ns(bucket) > now_ns:
            causes |= 1 << kind
    return causes


@inner
def set_group_rates(domain: DispatchArrays, i: int64, messages_per_s: int64, bytes_per_s: int64, now_ns: int64) -> None:
    """Reprice; before its first dispatch that only sets the rates (resource-groups 2)."""
    initialised = domain.limiters[i].initialised != 0
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        rate = messages_per_s if kind == 0 else bytes_per_s
        if bucket.rate != rate:
            set_rate_of(bucket, rate, floor_of(rate, int64(1), int64(domain.max_debt_ms)), now_ns, initialised, True)
            in_steps(bucket, int64(1))


@inner
def set_rates(
    domain: DispatchArrays, i: int64, messages: int64, bytes_: int64, period_s: int64, relative: int64, now_ns: int64
) -> None:
    """Change a level that is no group's: what changed begins anew, a window keeps its debt (rate-limiters 6.3, 7)."""
    level = domain.limiters[i]
    is_same = level.period_s == period_s and level.relative == relative
    level.period_s, level.relative = period_s, relative
    for kind in range(2):
        rate = messages if kind == 0 else bytes_
        if is_same and domain.configured[i, kind] == rate:
            continue
        had = domain.configured[i, kind] > 0
        domain.configured[i, kind] = rate
        if level.initialised == 0:
            continue
        if domain.classic and had and rate > 0:
            change_window(domain, i, int64(kind), now_ns)
        else:
            new_meter(domain, i, int64(kind), now_ns)
    level.limits = (domain.configured[i, 0] > 0) + 2 * (domain.configured[i, 1] > 0)
    if level.limits == 0:
        level.initialised = 0


@inner
def change_window(domain: DispatchArrays, i: int64, kind: int64, now_ns: int64) -> None:
    bucket, rate = domain.buckets[i, kind], effective(domain, i, kind)
    renew(bucket, now_ns)
    bucket.rate = rate
    bucket.period_ns = domain.limiters[i].period_s * PERIOD_NS
    bucket.remainder_ns = rate if domain.limiters[i].relative != 0 else int64(0)
    if bucket.last_ns != NO_VALUE:
        bucket.last_ns = sat_add(now_ns, bucket.period_ns)


@inner
def follow(domain: DispatchArrays, i: int64, messages_per_s: int64, bytes_per_s: int64, now_ns: int64) -> None:
    """The topic is published to so fast: a relative level follows, and its buckets earn at the new rate from their last
    refill on (rate-limiters 2.5, 6.2).
    """
    domain.averages[i, 0], domain.averages[i, 1] = messages_per_s, bytes_per_s
    level = domain.limiters[i]
    if level.initialised == 0 or level.relative == 0:
        return
    for kind in range(2):
        bucket, rate = domain.buckets[i, kind], effective(domain, i, int64(kind))
        if rate > 0 and domain.classic:
            renew(bucket, now_ns)
            bucket.remainder_ns = rate
        elif rate > 0:
            bucket.rate = bucket.capacity = rate
            set_gate(bucket)


@inner
def ready_ns(domain: DispatchArrays, i: int64) -> int64:
    """The first instant at which a read would find permits in every dimension of a group, if nothing is charged
    before.
    """
    if blocking(domain.buckets, i) != 0:
        return int64(MAX)
    at_ns = int64(0)
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        if bucket.rate > 0 and bucket.balance <= 0:
            at_ns = max(at_ns, refilled_ns(bucket))
    return at_ns
