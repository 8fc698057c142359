"""Array form of the publish limiters of one domain: publishes, limit changes, drains and usage in one loop over events.

A domain is a set of limiters that share events: the topics of one broker that charge a common group or broker limiter,
or topics that share nothing. The readable form of the same rules is `headgate.core.publish.publish_domain`; tests hold
the two equal.

All instants are ns of event time and never decrease from one operation to the next; the caller clamps late ones
(rate-limiters 3.1). Per-limiter arrays have one row a limiter, in registration order.
"""

from typing import Any

from numpy import int64

from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.kernels.compiled import borrowing, inlined, inner
from headgate.core.kernels.int128 import MAX, sat_add
from headgate.core.kernels.publish.agenda import pop, push
from headgate.core.kernels.publish.publish_limiter import (
    blocking,
    charge_limiter,
    initialise,
    limiter_pause_ns,
    set_rate_of,
    wake_time_ns,
)
from headgate.core.kernels.publish.queues import close_second, end_wait, enqueue, let_go, plan_drain, touch
from headgate.core.kernels.publish.types import (
    ADMISSION_ROWS,
    DUES,
    LEAVE,
    NO_GROUP,
    RESOLUTION_NS,
    SET_LIMIT,
    WITHHELD_ROWS,
    DomainArrays,
    Operations,
)
from headgate.core.numbers import SECOND_NS
from headgate.core.usage import (
    ADMITTED,
    ADMITTED_BYTES,
    ADMITTED_MESSAGES,
    BY_GROUP,
    BY_TOPIC,
    BYTES,
    DELAY_NS,
    DELAYED,
    FAILED,
    FAILED_BYTES,
    FAILED_MESSAGES,
    MAX_DELAY_NS,
    MESSAGES,
    PUBLISHES,
    THROTTLED,
)


@inlined
def group_of(domain: DomainArrays, producer: int64, topic: int64) -> int64:
    """The group limiter that a publish is charged to, below 0 for none: replication has none (resource-groups 2).

    The producer is looked at first, group or not: the other way round the hot loop takes a fifth longer.
    """
    return int64(domain.limiters[topic].group) if not domain.exempt[producer] else int64(NO_GROUP)


@inlined
def charge(
    domain: DomainArrays, producer: int64, topic: int64, messages: int64, bytes_: int64, seq: int64, now_ns: int64
) -> None:
    """Charge topic, broker and group, without short-circuit; queue the producer where one throttles (4.2)."""
    throttled = False
    group = group_of(domain, producer, topic)
    for scope in range(3):
        i = topic if scope == 0 else (domain.broker if scope == 1 else group)
        if i < 0:
            continue
        causes = charge_limiter(domain.limiters[i], domain.buckets, i, messages, bytes_, now_ns)
        if causes != 0:
            throttled = True
            domain.counts[topic, BY_TOPIC + scope] += 1
            enqueue(domain, i, producer, topic, seq, causes, now_ns)
    if throttled:
        domain.counts[topic, THROTTLED] += 1


@inner
def hold_blocked(domain: DomainArrays, producer: int64, topic: int64, seq: int64, now_ns: int64) -> bool:
    """Queue the producer of an arrival whose group is blocked; False if it is not.

    The arrival is not admitted, and so not charged: it stays withheld.
    """
    i = group_of(domain, producer, topic)
    causes = blocking(domain.buckets, i) if i >= 0 else 0
    if causes == 0:
        return False
    initialise(domain.limiters[i], domain.buckets, i, now_ns)
    domain.counts[topic, BY_GROUP] += 1
    domain.counts[topic, THROTTLED] += 1
    enqueue(domain, i, producer, topic, seq, causes, now_ns)
    return True


@inner
def admit(
    domain: DomainArrays,
    arrival_ns: int64,
    producer: int64,
    topic: int64,
    messages: int64,
    bytes_: int64,
    seq: int64,
    now_ns: int64,
) -> None:
    """Charge an arrival of offered traffic and count it as admitted, with its delay."""
    touch(domain, topic, now_ns)
    counts = domain.counts
    counts[topic, ADMITTED] += 1
    counts[topic, ADMITTED_MESSAGES] = sat_add(counts[topic, ADMITTED_MESSAGES], messages)
    counts[topic, ADMITTED_BYTES] = sat_add(counts[topic, ADMITTED_BYTES], bytes_)
    delay_ns = now_ns - arrival_ns
    if delay_ns > 0:
        counts[topic, DELAYED] += 1
        counts[topic, DELAY_NS] = sat_add(counts[topic, DELAY_NS], delay_ns)
        counts[topic, MAX_DELAY_NS] = max(counts[topic, MAX_DELAY_NS], delay_ns)
    if domain.tells and group_of(domain, producer, topic) >= 0:
        n = domain.used[ADMISSION_ROWS]
        row = domain.admissions[n]
        row.at_ns, row.topic, row.messages, row.bytes = now_ns, topic, messages, bytes_
        domain.used[ADMISSION_ROWS] = n + 1
    charge(domain, producer, topic, messages, bytes_, seq, now_ns)


@inner
def withhold(domain: DomainArrays, ops: Operations, e: int, now_ns: int64) -> None:
    """Keep an arrival until its producer is released or the client's send time-out has passed."""
    queue = domain.withheld_by[ops.producer[e]]
    n = domain.used[WITHHELD_ROWS]
    domain.used[WITHHELD_ROWS] = n + 1
    row = domain.withheld[n]
    row.next, row.at_ns, row.topic = NO_VALUE, now_ns, ops.topic[e]
    row.messages, row.bytes, row.seq = ops.messages[e], ops.bytes[e], ops.seq[e]
    if queue.head == NO_VALUE:
        queue.head = n
        plan_timeout(domain, ops.producer[e])
    else:
        domain.withheld[queue.tail].next = n
    queue.tail = n


@inlined
def timeout_ns(domain: DomainArrays, row: Any) -> int64:
    """The first instant at which a withheld arrival has failed."""
    return sat_add(sat_add(row.at_ns, domain.timeout_ns), int64(1))


@inner
def plan_timeout(domain: DomainArrays, producer: int64) -> None:
    head = domain.withheld_by[producer].head
    if head == NO_VALUE:
        return
    due_ns = timeout_ns(domain, domain.withheld[head])
    if due_ns != MAX:
        push(domain.agenda, domain.used, due_ns, domain.limiters.size + producer)


@inner
def fail_due(domain: DomainArrays, producer: int64, due_ns: int64) -> None:
    """Fail the arrivals of a producer that have been withheld longer than the time-out at `due_ns`."""
    queue, counts = domain.withheld_by[producer], domain.counts
    changed = False
    while queue.head != NO_VALUE:
        row = domain.withheld[queue.head]
        if timeout_ns(domain, row) > due_ns:
            break
        touch(domain, row.topic, due_ns)
        counts[row.topic, FAILED] += 1
        counts[row.topic, FAILED_MESSAGES] = sat_add(counts[row.topic, FAILED_MESSAGES], row.messages)
        counts[row.topic, FAILED_BYTES] = sat_add(counts[row.topic, FAILED_BYTES], row.bytes)
        queue.head = row.next
        changed = True
    if changed:
        plan_timeout(domain, producer)


@inner
def resume(domain: DomainArrays, producer: int64, now_ns: int64) -> None:
    """Charge what a released producer had withheld, in order, until a limiter queues it again."""
    queue = domain.withheld_by[producer]
    moved = False
    while domain.waits[producer] == 0 and queue.head != NO_VALUE:
        row = domain.withheld[queue.head]
        if hold_blocked(domain, producer, row.topic, row.seq, now_ns):
            break
        queue.head = row.next
        moved = True
        admit(domain, row.at_ns, producer, row.topic, row.messages, row.bytes, row.seq, now_ns)
    if moved:
        plan_timeout(domain, producer)


@inner
def resume_all(domain: DomainArrays, first: int64, released: int64, now_ns: int64) -> None:
    """`resume` the producers of `released` linked entries, the first of which is `first` (offered traffic)."""
    n = first
    for _ in range(released):
        entry = domain.entries[n]
        n = entry.next
        resume(domain, entry.producer, now_ns)


@borrowing
def drain(domain: DomainArrays, i: int64, now_ns: int64) -> None:
    """Release waiting producers if nothing needs a pause and plan the next drain (rate-limiters 4.3)."""
    limiter = domain.limiters[i]
    pause_ns = limiter_pause_ns(domain.buckets, i, now_ns)
    first, released = limiter.head, 0
    while pause_ns == 0 and limiter.head != NO_VALUE and (domain.quantum == 0 or released < domain.quantum):
        n = limiter.head
        limiter.head = domain.entries[n].next
        released += 1
        let_go(domain, i, n, now_ns)
    if limiter.head == NO_VALUE:
        limiter.next_drain_ns = NO_VALUE
        end_wait(domain, i, now_ns)
    elif pause_ns > 0:
        plan_drain(domain, i, wake_time_ns(domain.buckets, i, now_ns))
    else:
        plan_drain(domain, i, sat_add(now_ns, RESOLUTION_NS))
    if domain.offered:
        resume_all(domain, first, released, now_ns)


@inner
def leave(domain: DomainArrays, i: int64, now_ns: int64) -> None:
    """Release, out of turn, the entries in the queue of group `i` of topics that are another's by now, or nobody's."""
    limiter = domain.limiters[i]
    n, last = limiter.head, int64(NO_VALUE)
    first, last_released, released = int64(NO_VALUE), int64(NO_VALUE), 0
    limiter.head = NO_VALUE
    while n != NO_VALUE:
        entry = domain.entries[n]
        after = entry.next
        entry.next = NO_VALUE
        if domain.limiters[entry.topic].group == i:
            if last == NO_VALUE:
                limiter.head = n
            else:
                domain.entries[last].next = n
            last = n
        else:
            if first == NO_VALUE:
                first = n
            else:
                domain.entries[last_released].next = n
            last_released = n
            released += 1
            let_go(domain, i, n, now_ns)
        n = after
    limiter.tail = last
    if limiter.head == NO_VALUE:
        limiter.next_drain_ns = NO_VALUE
        end_wait(domain, i, now_ns)
    if domain.offered:
        resume_all(domain, first, released, now_ns)


@borrowing
def run_due(domain: DomainArrays, until_ns: int64) -> None:
    """Run all work due by `until_ns` in the order (due time, registration) (rate-limiters 3.1)."""
    while is_due(domain, until_ns):
        due_ns, owner = domain.agenda[0].due_ns, domain.agenda[0].owner
        pop(domain.agenda, domain.used)
        if owner >= domain.limiters.size:
            fail_due(domain, owner - domain.limiters.size, due_ns)
        elif domain.limiters[owner].next_drain_ns == due_ns:  # else an update has moved it since
            drain(domain, owner, due_ns)


@inlined
def is_due(domain: DomainArrays, until_ns: int64) -> bool:
    return domain.used[DUES] > 0 and domain.agenda[0].due_ns <= until_ns


@borrowing
def set_limit(
    domain: DomainArrays, i: int64, messages_per_s: int64, bytes_per_s: int64, floor: Ints, now_ns: int64
) -> None:
    """Change a limiter's rates; before its first publish that only sets them (rate-limiters 4.4)."""
    limiter = domain.limiters[i]
    initialised, changed = limiter.initialised != 0, False
    for kind in range(2):
        bucket = domain.buckets[i, kind]
        rate = messages_per_s if kind == 0 else bytes_per_s
        if bucket.rate != rate:
            changed = True
            set_rate_of(bucket, rate, floor[kind], now_ns, initialised, limiter.keeps_debt != 0)
    if changed and initialised:
        drain(domain, i, now_ns)


@borrowing
def run(domain: DomainArrays, ops: Operations, floors: Ints, until_ns: int64, finish: bool) -> None:
    """Carry out `ops` in order, then all work due by `until_ns`, then close the seconds that have ended by then.

    floors: -max_debt of the new rates, by dimension and operation (SET_LIMIT only). finish: close the running second
    too, as far as `until_ns`. Capacities of the pools are the caller's business: see `headgate.throttle.array_form`.
    """
    counts = domain.counts
    for e in range(ops.at_ns.size):
        now_ns = ops.at_ns[e]
        if is_due(domain, now_ns):
            run_due(domain, now_ns)
        if ops.kind[e] == SET_LIMIT:
            set_limit(domain, ops.topic[e], ops.messages[e], ops.bytes[e], floors[e], now_ns)
            continue
        if ops.kind[e] == LEAVE:
            leave(domain, ops.topic[e], now_ns)
            continue
        topic, producer = ops.topic[e], ops.producer[e]
        touch(domain, topic, now_ns)
        counts[topic, PUBLISHES] += 1
        counts[topic, MESSAGES] = sat_add(counts[topic, MESSAGES], ops.messages[e])
        counts[topic, BYTES] = sat_add(counts[topic, BYTES], ops.bytes[e])
        if not domain.offered:
            charge(domain, producer, topic, ops.messages[e], ops.bytes[e], ops.seq[e], now_ns)
        elif (
            domain.waits[producer] > 0
            or domain.withheld_by[producer].head != NO_VALUE
            or hold_blocked(domain, producer, topic, ops.seq[e], now_ns)
        ):
            withhold(domain, ops, e, now_ns)
        else:
            admit(domain, now_ns, producer, topic, ops.messages[e], ops.bytes[e], ops.seq[e], now_ns)
    run_due(domain, until_ns)
    close_ended(domain, until_ns, finish)


@inner
def close_ended(domain: DomainArrays, until_ns: int64, finish: bool) -> None:
    """Close the seconds that have ended by `until_ns`; with `finish` also those that have not."""
    for topic in range(domain.limiters.size):
        of_topic = domain.limiters[topic]
        if of_topic.second != NO_VALUE and (of_topic.second + 1) * SECOND_NS <= until_ns:
            close_second(domain, int64(topic), (of_topic.second + 1) * SECOND_NS)
        if finish:
            if of_topic.waiting > 0 and of_topic.since_ns < until_ns:
                touch(domain, int64(topic), until_ns)
            if of_topic.second != NO_VALUE:
                close_second(domain, int64(topic), until_ns)


@borrowing
def plan_all(domain: DomainArrays) -> None:
    """Fill the agenda from the state: it is not stored."""
    for i in range(domain.limiters.size):
        due_ns = domain.limiters[i].next_drain_ns
        if due_ns != NO_VALUE and due_ns != MAX:  # noqa: PLR1714  numba knows no sets
            push(domain.agenda, domain.used, due_ns, int64(i))
    for producer in range(domain.withheld_by.size):
        plan_timeout(domain, int64(producer))
