"""Array form of the publish limiters of one domain: publishes, limit changes, drains and usage in one loop over events.

A domain is a set of limiters that share events: the topics of one broker that charge a common group or broker limiter,
or topics that share nothing. The readable form of the same rules is `headgate.core.publish_domain`; tests hold the two
equal.

All instants are ns of event time and never decrease from one operation to the next; the caller clamps late ones
(rate-limiters 3.1). Per-limiter arrays have one row a limiter, in registration order.
"""

from numpy import int64

from headgate.core.kernels import inlined, kernel
from headgate.core.kernels.agenda import pop, push
from headgate.core.kernels.domain_types import (
    MARK,
    NONE,
    RESOLUTION_NS,
    SET_LIMIT,
    UNMARK,
    Domain,
    Ints,
    Operations,
)
from headgate.core.kernels.int128 import MAX, sat_add
from headgate.core.kernels.limiter import bucket_pause_ns, charge_limiter, fill, take, wake_time_ns
from headgate.core.usage import (
    ADMITTED,
    ADMITTED_BYTES,
    ADMITTED_MESSAGES,
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
    SECOND_NS,
    THROTTLED,
    THROTTLED_NS,
    USAGE_COLUMNS,
)


@kernel
def plan_drain(domain: Domain, i: int64, due_ns: int64) -> None:
    domain.limiters.next_drain_ns[i] = due_ns
    if due_ns != MAX:
        push(domain.agenda, due_ns, i)


@inlined
def close_second(domain: Domain, topic: int64, until_ns: int64) -> None:
    """Append the topic's open second to the closed ones, with the time throttled up to `until_ns`, and start afresh."""
    usage, closed = domain.usage, domain.closed
    if usage.waiting[topic] > 0:
        usage.counts[topic, THROTTLED_NS] += until_ns - usage.since_ns[topic]
        usage.since_ns[topic] = until_ns
    n = closed.used[0]
    closed.topic[n], closed.second[n] = topic, usage.second[topic]
    for column in range(USAGE_COLUMNS):
        closed.counts[n, column] = usage.counts[topic, column]
        usage.counts[topic, column] = 0
    closed.used[0] = n + 1
    usage.second[topic] = NONE


@inlined
def touch(domain: Domain, topic: int64, now_ns: int64) -> None:
    """Make the second of `now_ns` the topic's open one."""
    second, open_second = now_ns // SECOND_NS, domain.usage.second[topic]
    if open_second == second:
        return
    if open_second != NONE:
        close_second(domain, topic, (open_second + 1) * SECOND_NS)
    domain.usage.second[topic] = second


@kernel
def emit(domain: Domain, now_ns: int64, i: int64, producer: int64, topic: int64, seq: int64, action: int) -> None:
    marks = domain.marks
    n = marks.used[0]
    marks.at_ns[n], marks.limiter[n], marks.producer[n], marks.topic[n] = now_ns, i, producer, topic
    marks.seq[n], marks.action[n] = seq, action
    marks.used[0] = n + 1


@kernel
def enqueue(domain: Domain, i: int64, producer: int64, topic: int64, seq: int64, now_ns: int64) -> None:
    """Mark the producer's connection and append it to the queue of limiter `i` (rate-limiters 4.2)."""
    entries, usage = domain.entries, domain.usage
    emit(domain, now_ns, i, producer, topic, seq, MARK)
    n = entries.used[0]
    entries.used[0] = n + 1
    entries.next[n], entries.producer[n], entries.topic[n] = NONE, producer, topic
    domain.waits[producer] += 1
    if usage.waiting[topic] == 0:
        usage.since_ns[topic] = now_ns
    usage.waiting[topic] += 1
    if domain.limiters.head[i] == NONE:
        domain.limiters.head[i] = n
        domain.limiters.tail[i] = n
        plan_drain(domain, i, wake_time_ns(domain.limiters, i, now_ns))
    else:
        entries.next[domain.limiters.tail[i]] = n
        domain.limiters.tail[i] = n


@inlined
def charge(
    domain: Domain,
    producer: int64,
    topic: int64,
    group: int64,
    messages: int64,
    bytes_: int64,
    seq: int64,
    now_ns: int64,
) -> None:
    """Charge topic, broker and group, without short-circuit; queue the producer where one throttles (4.2)."""
    throttled = False
    for scope in range(3):
        i = topic if scope == 0 else (domain.broker if scope == 1 else group)
        if i >= 0 and charge_limiter(domain.limiters, i, messages, bytes_, now_ns):
            throttled = True
            domain.usage.counts[topic, BY_TOPIC + scope] += 1
            enqueue(domain, i, producer, topic, seq, now_ns)
    if throttled:
        domain.usage.counts[topic, THROTTLED] += 1


@kernel
def admit(
    domain: Domain,
    arrival_ns: int64,
    producer: int64,
    topic: int64,
    group: int64,
    messages: int64,
    bytes_: int64,
    seq: int64,
    now_ns: int64,
) -> None:
    """Charge an arrival of offered traffic and count it as admitted, with its delay."""
    touch(domain, topic, now_ns)
    counts = domain.usage.counts
    counts[topic, ADMITTED] += 1
    counts[topic, ADMITTED_MESSAGES] = sat_add(counts[topic, ADMITTED_MESSAGES], messages)
    counts[topic, ADMITTED_BYTES] = sat_add(counts[topic, ADMITTED_BYTES], bytes_)
    delay_ns = now_ns - arrival_ns
    if delay_ns > 0:
        counts[topic, DELAYED] += 1
        counts[topic, DELAY_NS] = sat_add(counts[topic, DELAY_NS], delay_ns)
        counts[topic, MAX_DELAY_NS] = max(counts[topic, MAX_DELAY_NS], delay_ns)
    charge(domain, producer, topic, group, messages, bytes_, seq, now_ns)


@kernel
def withhold(domain: Domain, ops: Operations, i: int, now_ns: int64) -> None:
    """Keep an arrival until its producer is released or the client's send time-out has passed."""
    pool, producer = domain.withheld, ops.producer[i]
    n = pool.used[0]
    pool.used[0] = n + 1
    pool.next[n], pool.at_ns[n], pool.topic[n], pool.group[n] = NONE, now_ns, ops.topic[i], ops.group[i]
    pool.messages[n], pool.bytes[n], pool.seq[n] = ops.messages[i], ops.bytes[i], ops.seq[i]
    if pool.head[producer] == NONE:
        pool.head[producer] = n
        plan_timeout(domain, producer)
    else:
        pool.next[pool.tail[producer]] = n
    pool.tail[producer] = n


@kernel
def plan_timeout(domain: Domain, producer: int64) -> None:
    head = domain.withheld.head[producer]
    if head == NONE:
        return
    due_ns = sat_add(sat_add(domain.withheld.at_ns[head], domain.timeout_ns), int64(1))
    if due_ns != MAX:
        push(domain.agenda, due_ns, domain.limiters.born.size + producer)


@kernel
def fail_due(domain: Domain, producer: int64, due_ns: int64) -> None:
    """Fail the arrivals of a producer that have been withheld longer than the time-out at `due_ns`."""
    pool, counts = domain.withheld, domain.usage.counts
    changed = False
    while pool.head[producer] != NONE:
        n = pool.head[producer]
        if sat_add(sat_add(pool.at_ns[n], domain.timeout_ns), int64(1)) > due_ns:
            break
        topic = pool.topic[n]
        touch(domain, topic, due_ns)
        counts[topic, FAILED] += 1
        counts[topic, FAILED_MESSAGES] = sat_add(counts[topic, FAILED_MESSAGES], pool.messages[n])
        counts[topic, FAILED_BYTES] = sat_add(counts[topic, FAILED_BYTES], pool.bytes[n])
        pool.head[producer] = pool.next[n]
        changed = True
    if changed:
        plan_timeout(domain, producer)


@kernel
def resume(domain: Domain, producer: int64, now_ns: int64) -> None:
    """Charge what a released producer had withheld, in order, until a limiter queues it again."""
    pool = domain.withheld
    moved = False
    while domain.waits[producer] == 0 and pool.head[producer] != NONE:
        n = pool.head[producer]
        pool.head[producer] = pool.next[n]
        moved = True
        admit(
            domain,
            pool.at_ns[n],
            producer,
            pool.topic[n],
            pool.group[n],
            pool.messages[n],
            pool.bytes[n],
            pool.seq[n],
            now_ns,
        )
    if moved:
        plan_timeout(domain, producer)


@kernel
def drain(domain: Domain, i: int64, now_ns: int64) -> None:
    """Release waiting producers if nothing needs a pause and plan the next drain (rate-limiters 4.3)."""
    limiters, entries, usage = domain.limiters, domain.entries, domain.usage
    pause_ns = int64(0)
    for kind in range(2):
        if limiters.rate[i, kind] > 0:
            pause_ns = max(pause_ns, bucket_pause_ns(limiters, kind, i, now_ns))
    first, released = limiters.head[i], 0
    while pause_ns == 0 and limiters.head[i] != NONE and (domain.quantum == 0 or released < domain.quantum):
        n = limiters.head[i]
        limiters.head[i] = entries.next[n]
        released += 1
        producer, topic = entries.producer[n], entries.topic[n]
        domain.waits[producer] -= 1
        touch(domain, topic, now_ns)
        usage.waiting[topic] -= 1
        if usage.waiting[topic] == 0:
            usage.counts[topic, THROTTLED_NS] += now_ns - usage.since_ns[topic]
        emit(domain, now_ns, i, producer, topic, NONE, UNMARK)
    if limiters.head[i] == NONE:
        limiters.next_drain_ns[i] = NONE
    elif pause_ns > 0:
        plan_drain(domain, i, wake_time_ns(limiters, i, now_ns))
    else:
        plan_drain(domain, i, sat_add(now_ns, RESOLUTION_NS))
    if domain.offered:
        n = first
        for _ in range(released):
            following = entries.next[n]
            resume(domain, entries.producer[n], now_ns)
            n = following


@inlined
def run_due(domain: Domain, until_ns: int64) -> None:
    """Run all work due by `until_ns` in the order (due time, registration) (rate-limiters 3.1)."""
    agenda, limiters = domain.agenda, domain.limiters
    while agenda.size[0] > 0 and agenda.due_ns[0] <= until_ns:
        due_ns, owner = agenda.due_ns[0], agenda.owner[0]
        pop(agenda)
        if owner >= limiters.born.size:
            fail_due(domain, owner - limiters.born.size, due_ns)
        elif limiters.next_drain_ns[owner] == due_ns:  # else an update has moved it since
            drain(domain, owner, due_ns)


@kernel
def set_limit(domain: Domain, i: int64, messages_per_s: int64, bytes_per_s: int64, floor: Ints, now_ns: int64) -> None:
    """Change a limiter's rates; before its first publish that only sets them (rate-limiters 4.4)."""
    limiters = domain.limiters
    changed = False
    for kind in range(2):
        rate = messages_per_s if kind == 0 else bytes_per_s
        if limiters.rate[i, kind] == rate:
            continue
        changed = True
        keeps = limiters.reprice[i] != 0 and limiters.rate[i, kind] > 0 and rate > 0
        if keeps and limiters.born[i] != 0:
            take(limiters, kind, i, int64(0), now_ns)
        limiters.rate[i, kind] = rate
        limiters.floor[i, kind] = floor[kind]
        if not keeps and limiters.born[i] != 0:
            fill(limiters, kind, i, now_ns)
    if changed and limiters.born[i] != 0:
        drain(domain, i, now_ns)


@kernel
def run(domain: Domain, ops: Operations, floors: Ints, until_ns: int64, finish: bool) -> None:
    """Carry out `ops` in order, then all work due by `until_ns`, then close the seconds that have ended by then.

    floors: -max_debt of the new rates, by dimension and operation (SET_LIMIT only). finish: close the running second
    too, as far as `until_ns`. Capacities of the pools are the caller's business: see `headgate.throttle.array_engine`.
    """
    usage = domain.usage
    for i in range(ops.at_ns.size):
        now_ns = ops.at_ns[i]
        run_due(domain, now_ns)
        if ops.kind[i] == SET_LIMIT:
            set_limit(domain, ops.topic[i], ops.messages[i], ops.bytes[i], floors[i], now_ns)
            continue
        topic, producer = ops.topic[i], ops.producer[i]
        touch(domain, topic, now_ns)
        usage.counts[topic, PUBLISHES] += 1
        usage.counts[topic, MESSAGES] = sat_add(usage.counts[topic, MESSAGES], ops.messages[i])
        usage.counts[topic, BYTES] = sat_add(usage.counts[topic, BYTES], ops.bytes[i])
        if not domain.offered:
            charge(domain, producer, topic, ops.group[i], ops.messages[i], ops.bytes[i], ops.seq[i], now_ns)
        elif domain.waits[producer] > 0 or domain.withheld.head[producer] != NONE:
            withhold(domain, ops, i, now_ns)
        else:
            admit(domain, now_ns, producer, topic, ops.group[i], ops.messages[i], ops.bytes[i], ops.seq[i], now_ns)
    run_due(domain, until_ns)
    for topic in range(usage.second.size):
        if usage.second[topic] != NONE and (usage.second[topic] + 1) * SECOND_NS <= until_ns:
            close_second(domain, int64(topic), (usage.second[topic] + 1) * SECOND_NS)
        if finish:
            if usage.waiting[topic] > 0 and usage.since_ns[topic] < until_ns:
                touch(domain, int64(topic), until_ns)
            if usage.second[topic] != NONE:
                close_second(domain, int64(topic), until_ns)


@kernel
def plan_all(domain: Domain) -> None:
    """Fill the agenda from the state: it is not stored."""
    for i in range(domain.limiters.next_drain_ns.size):
        if domain.limiters.next_drain_ns[i] != NONE and domain.limiters.next_drain_ns[i] != MAX:
            push(domain.agenda, domain.limiters.next_drain_ns[i], int64(i))
    for producer in range(domain.withheld.head.size):
        plan_timeout(domain, int64(producer))
