"""Array form of the dispatch levels of one domain: deliveries or reads, limit changes and retries in one loop.

The readable form of the same rules, which says what they are, is `headgate.core.dispatch_domain`; tests hold the two
equal. Instants never decrease from one operation to the next; the caller clamps late ones (rate-limiters 3.1).
"""

from typing import Any

import numpy as np
from numpy import int64, uint64

from headgate.core.kernels.compiled import inlined, kernel
from headgate.core.kernels.dispatch_types import (
    COUNT,
    FIRST,
    LAST,
    RETRY_NS,
    SET_RATE,
    DispatchArrays,
    DispatchOperations,
)
from headgate.core.kernels.domain_types import ADMISSION_ROWS, NONE, PERIOD_NS, WITHHELD_ROWS, Ints, Records
from headgate.core.kernels.int128 import MAX, distance, earn, sat_add, wait_ns
from headgate.core.kernels.limiter import bear, blocking, charge_limiter, set_rate_of
from headgate.core.kernels.queues import end_wait, note_cause
from headgate.core.kernels.token_bucket import draw, set_gate


@kernel
def settle_levels(buckets: Records) -> None:
    """Derive what follows from rate, last_ns and remainder_ns of every bucket."""
    for i in range(buckets.shape[0]):
        for kind in range(2):
            bucket = buckets[i, kind]
            bucket.period_ns, bucket.capacity = PERIOD_NS, bucket.rate
            in_steps(bucket)


@kernel
def in_steps(bucket: Any) -> None:
    """Refills come in steps of strictly more than a period (rate-limiters 6.1)."""
    bucket.resolution_ns = PERIOD_NS
    set_gate(bucket)


@inlined
def missing(domain: DispatchArrays, i: int64, now_ns: int64) -> int:
    """The dimensions without a permit as bits. Both are read, of a blocked level none."""
    causes = blocking(domain.buckets, i)
    if causes == 0:
        for kind in range(2):
            bucket = domain.buckets[i, kind]
            if bucket.rate > 0 and draw(bucket, int64(0), now_ns) <= 0:
                causes |= 1 << kind
    return causes


@kernel
def refilled_ns(bucket: Any) -> int64:
    """When a bucket without permits has one again, if nothing is charged before."""
    lacking = distance(bucket.balance, int64(1))
    earned_ns = wait_ns(lacking, bucket.period_ns, bucket.rate)
    new, _ = earn(uint64(earned_ns), bucket.rate, bucket.period_ns)
    if new < lacking:
        earned_ns = sat_add(earned_ns, int64(1))
    return max(sat_add(bucket.due_ns, int64(1)), sat_add(bucket.last_ns, earned_ns - bucket.remainder_ns))


@kernel
def ready_ns(domain: DispatchArrays, i: int64) -> int64:
    """The first instant at which a read would find permits in every dimension, if nothing is charged before."""
    if blocking(domain.buckets, i) != 0:
        return int64(MAX)
    at_ns = int64(0)
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        if bucket.rate > 0 and bucket.balance <= 0:
            at_ns = max(at_ns, refilled_ns(bucket))
    return at_ns


@kernel
def end_if_refilled(domain: DispatchArrays, i: int64, now_ns: int64) -> None:
    """End a level's wait at the step that refilled it, if that has come (admitted traffic)."""
    if not domain.offered and domain.limiters[i].cause != 0:
        at_ns = ready_ns(domain, i)
        if at_ns <= now_ns:
            end_wait(domain, i, at_ns)


@kernel
def tried(domain: DispatchArrays, topic: int64, messages: int64, bytes_: int64, now_ns: int64) -> int:
    """Start a read and return 0; or the dimensions for want of which it does not start, as bits."""
    i = domain.level_of[topic]
    if i < 0:
        return 0
    bear(domain.limiters[i], domain.buckets, i, now_ns)
    causes = missing(domain, i, now_ns)
    if causes == 0:
        charge_limiter(domain.limiters[i], domain.buckets, i, messages, bytes_, now_ns)
        if domain.tells:
            n = domain.used[ADMISSION_ROWS]
            row = domain.admissions[n]
            row.at_ns, row.topic, row.messages, row.bytes = now_ns, topic, messages, bytes_
            domain.used[ADMISSION_ROWS] = n + 1
    return causes


@kernel
def append(domain: DispatchArrays, s: int64) -> None:
    """Put a subscription at the end of the line."""
    line = domain.line
    domain.subscriptions[s].next = NONE
    if line[COUNT] == 0:
        line[FIRST] = s
    else:
        domain.subscriptions[line[LAST]].next = s
    line[LAST] = s
    line[COUNT] += 1


@kernel
def skip(domain: DispatchArrays, s: int64, causes: int64, now_ns: int64) -> None:
    subscription = domain.subscriptions[s]
    i = domain.level_of[subscription.topic]
    subscription.due_ns = sat_add(now_ns, RETRY_NS)
    append(domain, s)
    if subscription.counted == 0:
        subscription.counted = 1
        domain.limiters[i].waiting += 1
    if domain.tells:
        note_cause(domain, i, causes, now_ns)


@kernel
def withhold(domain: DispatchArrays, s: int64, messages: int64, bytes_: int64, now_ns: int64) -> None:
    """Keep a read behind those of its subscription that wait already."""
    subscription = domain.subscriptions[s]
    n = domain.used[WITHHELD_ROWS]
    domain.used[WITHHELD_ROWS] = n + 1
    read = domain.reads[n]
    read.next, read.at_ns, read.messages, read.bytes = NONE, now_ns, messages, bytes_
    if subscription.head == NONE:
        subscription.head = n
    else:
        domain.reads[subscription.tail].next = n
    subscription.tail = n


@kernel
def retry(domain: DispatchArrays, s: int64, now_ns: int64) -> bool:
    """Start the subscription's reads one after another; False if a blocked level skips the first."""
    subscription, causes = domain.subscriptions[s], 0
    i = domain.level_of[subscription.topic]
    while subscription.head != NONE:
        read = domain.reads[subscription.head]
        causes = tried(domain, subscription.topic, read.messages, read.bytes, now_ns)
        if causes != 0:
            break
        subscription.head = read.next
    if causes != 0:
        skip(domain, s, causes, now_ns)
    elif i >= 0 and subscription.counted != 0:
        domain.limiters[i].waiting -= 1
        if domain.limiters[i].waiting == 0:
            end_wait(domain, i, now_ns)
    return i < 0 or blocking(domain.buckets, i) == 0


@kernel
def run_due(domain: DispatchArrays, until_ns: int64) -> None:
    """All retries due by `until_ns`. Where all in line wait for blocked levels, whole seconds are passed over."""
    line, idle = domain.line, 0
    while line[COUNT] > 0 and domain.subscriptions[line[FIRST]].due_ns <= until_ns:
        s = line[FIRST]
        line[FIRST] = domain.subscriptions[s].next
        line[COUNT] -= 1
        if retry(domain, s, domain.subscriptions[s].due_ns):
            idle = 0
        else:
            idle += 1
        if idle > 0 and idle == line[COUNT]:
            idle = 0
            pass_over(domain, until_ns)


@kernel
def pass_over(domain: DispatchArrays, until_ns: int64) -> None:
    seconds = (until_ns - domain.subscriptions[domain.line[LAST]].due_ns) // RETRY_NS
    if seconds <= 0:
        return
    s = domain.line[FIRST]
    while s != NONE:
        domain.subscriptions[s].due_ns += seconds * RETRY_NS
        s = domain.subscriptions[s].next


@kernel
def set_rates(
    domain: DispatchArrays, i: int64, messages_per_s: int64, bytes_per_s: int64, floor: Ints, now_ns: int64
) -> None:
    """Change a level's rates; before its first dispatch that only sets them (resource-groups 2)."""
    born = domain.limiters[i].born != 0
    end_if_refilled(domain, i, now_ns)
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        rate = messages_per_s if kind == 0 else bytes_per_s
        if bucket.rate != rate:
            set_rate_of(bucket, rate, floor[kind], now_ns, born, True)
            in_steps(bucket)
    if domain.offered or domain.limiters[i].cause == 0:
        return
    if ready_ns(domain, i) <= now_ns:
        end_wait(domain, i, now_ns)
    elif blocking(domain.buckets, i) != 0:
        note_cause(domain, i, blocking(domain.buckets, i), now_ns)


@kernel
def run(domain: DispatchArrays, ops: DispatchOperations, floors: Ints, begin_ns: int64, until_ns: int64) -> None:
    """Carry out `ops` in order, then all retries due by `until_ns`.

    floors: -max_debt of the new rates, by dimension and operation (SET_RATE only). begin_ns: when the run begins: waits
    of levels that nobody waits at any longer end then. Capacities of the pools are the caller's business.
    """
    for i in range(domain.limiters.size):
        if domain.offered and domain.limiters[i].waiting == 0:
            end_wait(domain, int64(i), begin_ns)
    for e in range(ops.at_ns.size):
        now_ns, topic = ops.at_ns[e], ops.topic[e]
        run_due(domain, now_ns)
        if ops.kind[e] == SET_RATE:
            set_rates(domain, topic, ops.messages[e], ops.bytes[e], floors[e], now_ns)
        elif domain.offered:
            want(domain, ops.subscription[e], ops.messages[e], ops.bytes[e], now_ns)
        else:
            deliver(domain, domain.level_of[topic], ops.messages[e], ops.bytes[e], now_ns)
    run_due(domain, until_ns)
    for i in range(domain.limiters.size):
        end_if_refilled(domain, int64(i), until_ns)


@kernel
def line_of(domain: DispatchArrays) -> Ints:
    """The subscriptions that wait, in the order of their retries."""
    line = np.empty(domain.line[COUNT], int64)
    s = domain.line[FIRST]
    for place in range(line.size):
        line[place] = s
        s = domain.subscriptions[s].next
    return line


@kernel
def deliver(domain: DispatchArrays, i: int64, messages: int64, bytes_: int64, now_ns: int64) -> None:
    """Charge a delivery of admitted traffic."""
    if i < 0:
        return
    end_if_refilled(domain, i, now_ns)
    causes = charge_limiter(domain.limiters[i], domain.buckets, i, messages, bytes_, now_ns)
    if causes != 0 and domain.tells:
        note_cause(domain, i, causes, now_ns)


@kernel
def want(domain: DispatchArrays, s: int64, messages: int64, bytes_: int64, now_ns: int64) -> None:
    """Start a read of offered traffic, or withhold it."""
    subscription = domain.subscriptions[s]
    if subscription.head != NONE:
        withhold(domain, s, messages, bytes_, now_ns)
        return
    causes = tried(domain, subscription.topic, messages, bytes_, now_ns)
    if causes != 0:
        withhold(domain, s, messages, bytes_, now_ns)
        subscription.counted = 0
        skip(domain, s, causes, now_ns)
