"""Queues of producers that wait at limiters, the marks that say so, and the open seconds of topics."""

from numpy import int64

from headgate.core.kernels.columns import NO_VALUE
from headgate.core.kernels.compiled import borrowing, inlined, inner
from headgate.core.kernels.int128 import MAX
from headgate.core.kernels.publish.agenda import push
from headgate.core.kernels.publish.publish_limiter import wake_time_ns
from headgate.core.kernels.publish.types import (
    CLOSED_COUNTS,
    CLOSED_ROWS,
    CLOSED_SECOND,
    CLOSED_TOPIC,
    ENTRIES,
    MARK,
    MARK_ROWS,
    TOLD,
    UNMARK,
    WAIT_ROWS,
    DomainArrays,
)
from headgate.core.numbers import SECOND_NS
from headgate.core.usage import THROTTLED_NS, USAGE_COLUMNS


@inner
def plan_drain(domain: DomainArrays, i: int64, due_ns: int64) -> None:
    domain.limiters[i].next_drain_ns = due_ns
    if due_ns != MAX:
        push(domain.agenda, domain.used, due_ns, i)


@inner
def close_second(domain: DomainArrays, topic: int64, until_ns: int64) -> None:
    """Append the topic's open second to the closed ones, with the time throttled up to `until_ns`, and start afresh."""
    of_topic, counts, closed = domain.limiters[topic], domain.counts, domain.closed
    if of_topic.waiting > 0:
        counts[topic, THROTTLED_NS] += until_ns - of_topic.since_ns
        of_topic.since_ns = until_ns
    n = domain.used[CLOSED_ROWS]
    closed[n, CLOSED_TOPIC], closed[n, CLOSED_SECOND] = topic, of_topic.second
    for column in range(USAGE_COLUMNS):
        closed[n, CLOSED_COUNTS + column] = counts[topic, column]
        counts[topic, column] = 0
    domain.used[CLOSED_ROWS] = n + 1
    of_topic.second = NO_VALUE


@inlined
def touch(domain: DomainArrays, topic: int64, now_ns: int64) -> None:
    """Make the second of `now_ns` the topic's open one."""
    second, of_topic = now_ns // SECOND_NS, domain.limiters[topic]
    if of_topic.second == second:
        return
    if of_topic.second != NO_VALUE:
        close_second(domain, topic, (of_topic.second + 1) * SECOND_NS)
    of_topic.second = second


@inner
def emit(
    domain: DomainArrays, now_ns: int64, i: int64, producer: int64, topic: int64, seq: int64, action: int, count: int64
) -> None:
    n = domain.used[MARK_ROWS]
    mark = domain.marks[n]
    mark.at_ns, mark.limiter, mark.producer, mark.topic = now_ns, i, producer, topic
    mark.seq, mark.action, mark.count = seq, action, count
    mark.messages_balance, mark.messages_rate, mark.bytes_balance, mark.bytes_rate = 0, 0, 0, 0
    if action == MARK:
        messages, in_bytes = domain.buckets[i, 0], domain.buckets[i, 1]
        mark.messages_balance, mark.messages_rate = messages.balance, messages.rate
        mark.bytes_balance, mark.bytes_rate = in_bytes.balance, in_bytes.rate
    domain.used[MARK_ROWS] = n + 1


@inner
def tell_wait(domain: DomainArrays, i: int64, until_ns: int64) -> None:
    """Tell the wait of a group up to `until_ns`; one without a length only if nothing of it was told before."""
    limiter = domain.limiters[i]
    if limiter.held_ns == until_ns and (limiter.cause & TOLD) != 0:
        return
    n = domain.used[WAIT_ROWS]
    row = domain.group_waits[n]
    row.limiter, row.from_ns, row.until_ns, row.causes = i, limiter.held_ns, until_ns, limiter.cause & ~TOLD
    domain.used[WAIT_ROWS] = n + 1


@inner
def note_cause(domain: DomainArrays, i: int64, causes: int64, now_ns: int64) -> None:
    """A group makes somebody wait for `causes`: a wait begins, or goes on, or goes on for more causes."""
    limiter = domain.limiters[i]
    if limiter.cause != 0:
        if (limiter.cause | causes) == limiter.cause:
            return
        tell_wait(domain, i, now_ns)
    limiter.cause = (limiter.cause & ~TOLD) | causes
    limiter.held_ns = now_ns


@inner
def end_wait(domain: DomainArrays, i: int64, now_ns: int64) -> None:
    """The queue of a limiter is empty: if it told of a wait, that ends."""
    limiter = domain.limiters[i]
    if limiter.cause != 0:
        tell_wait(domain, i, now_ns)
        limiter.cause = 0
        limiter.held_ns = 0


@borrowing
def enqueue(
    domain: DomainArrays, i: int64, producer: int64, topic: int64, seq: int64, causes: int64, now_ns: int64
) -> None:
    """Mark the producer's connection and append it to the queue of limiter `i` (rate-limiters 4.2)."""
    limiter, of_topic = domain.limiters[i], domain.limiters[topic]
    if domain.tells and limiter.keeps_debt != 0:
        note_cause(domain, i, causes, now_ns)
    emit(domain, now_ns, i, producer, topic, seq, MARK, int64(1))
    n = domain.used[ENTRIES]
    domain.used[ENTRIES] = n + 1
    entry = domain.entries[n]
    entry.next, entry.producer, entry.topic, entry.count = NO_VALUE, producer, topic, 1
    domain.waits[producer] += 1
    if of_topic.waiting == 0:
        of_topic.since_ns = now_ns
    of_topic.waiting += 1
    if limiter.head == NO_VALUE:
        limiter.head = n
        limiter.tail = n
        plan_drain(domain, i, wake_time_ns(domain.buckets, i, now_ns))
    else:
        domain.entries[limiter.tail].next = n
        limiter.tail = n


@inner
def let_go(domain: DomainArrays, i: int64, n: int64, now_ns: int64) -> None:
    """Unmark the producer of entry `n`, which has been taken out of the queue of limiter `i`."""
    entry = domain.entries[n]
    domain.waits[entry.producer] -= 1
    touch(domain, entry.topic, now_ns)
    of_topic = domain.limiters[entry.topic]
    of_topic.waiting -= entry.count
    if of_topic.waiting == 0:
        domain.counts[entry.topic, THROTTLED_NS] += now_ns - of_topic.since_ns
    emit(domain, now_ns, i, entry.producer, entry.topic, NO_VALUE, UNMARK, entry.count)
