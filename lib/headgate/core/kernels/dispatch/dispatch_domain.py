"""Array form of the dispatch levels of one domain: deliveries or reads, limit changes and retries in one loop.

The readable form of the same rules, which says what they are, is `headgate.core.dispatch.dispatch_domain`; tests hold
the two equal. Instants never decrease from one operation to the next; the caller clamps late ones (rate-limiters 3.1).
"""

from typing import Any

import numpy as np
from numpy import int64

from headgate.core.dispatch.dispatch_domain import GROUP, NO_LEVEL, PLACES, RETRY_NS
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.kernels.compiled import borrowing, inlined, inner, kernel
from headgate.core.kernels.dispatch.dispatch_levels import (
    charge_group,
    charge_rate,
    follow,
    is_limited,
    missing_of_group,
    missing_of_rate,
    ready_ns,
    set_group_rates,
    set_rates,
)
from headgate.core.kernels.dispatch.types import (
    COUNT,
    FIRST,
    FOLLOW,
    LAST,
    SET_RATE,
    DispatchArrays,
    DispatchOperations,
)
from headgate.core.kernels.int128 import sat_add
from headgate.core.kernels.publish.publish_limiter import blocking
from headgate.core.kernels.publish.queues import end_wait, note_cause
from headgate.core.kernels.publish.types import ADMISSION_ROWS, WAIT_ROWS, WITHHELD_ROWS

TOLD_AT_ONCE = 2
"""How many waits an operation or a retry tells at most: one for more causes, one that ends."""
DONE = -1


@inner
def end_if_refilled(domain: DispatchArrays, i: int64, now_ns: int64) -> None:
    """End a group's wait at the step that refilled it, if that has come (admitted traffic)."""
    if not domain.offered and domain.limiters[i].cause != 0:
        at_ns = ready_ns(domain, i)
        if at_ns <= now_ns:
            end_wait(domain, i, at_ns)


@inlined
def first_missing(domain: DispatchArrays, s: int64, now_ns: int64) -> tuple[int, int]:
    """Place from 1 of the first level without permits and what it lacks as bits, 0 and 0: a read may start.

    Later levels are not read.
    """
    for place in range(PLACES):
        i = domain.chains[s, place]
        if i == NO_LEVEL:
            continue
        causes = missing_of_group(domain, i, now_ns) if place == GROUP else missing_of_rate(domain, i, now_ns)
        if causes != 0:
            return place + 1, causes
    return 0, 0


@inlined
def charge(domain: DispatchArrays, s: int64, charged: int64, bytes_: int64, now_ns: int64) -> int:
    """Charge every level; the dimensions of which the group has no permits left as bits."""
    for place in range(GROUP):
        i = domain.chains[s, place]
        if i != NO_LEVEL:
            charge_rate(domain, i, charged, bytes_, now_ns)
    group = domain.chains[s, GROUP]
    return 0 if group == NO_LEVEL else charge_group(domain, group, charged, bytes_, now_ns)


@inner
def tried(domain: DispatchArrays, s: int64, read: Any, now_ns: int64) -> tuple[int, int]:
    """Start a read and return 0 and 0; or which level holds it, and what that lacks."""
    if read.exempt == 0:
        place, causes = first_missing(domain, s, now_ns)
        if place != 0:
            return place, causes
        charge(domain, s, read.charged, read.bytes, now_ns)
    n = domain.used[ADMISSION_ROWS]
    row = domain.starts[n]
    row.at_ns, row.subscription, row.arrived_ns = now_ns, s, read.at_ns
    row.messages, row.bytes = read.messages, read.bytes
    row.counted = int64(domain.chains[s, GROUP] != NO_LEVEL and read.exempt == 0)
    domain.used[ADMISSION_ROWS] = n + 1
    return 0, 0


@inner
def append(domain: DispatchArrays, s: int64) -> None:
    """Put a subscription at the end of the line."""
    line = domain.line
    domain.subscriptions[s].next = NO_VALUE
    if line[COUNT] == 0:
        line[FIRST] = s
    else:
        domain.subscriptions[line[LAST]].next = s
    line[LAST] = s
    line[COUNT] += 1


@inner
def skip(domain: DispatchArrays, s: int64, place: int64, causes: int64, now_ns: int64) -> None:
    subscription, group = domain.subscriptions[s], domain.chains[s, GROUP]
    subscription.due_ns, subscription.held_by = sat_add(now_ns, RETRY_NS), place
    append(domain, s)
    counted = int64(place == GROUP + 1)
    if counted > subscription.counted:
        domain.limiters[group].waiting += 1
    elif counted < subscription.counted:
        leave(domain, group, now_ns)
    subscription.counted = counted
    if counted != 0 and domain.tells:
        note_cause(domain, group, causes, now_ns)


@inner
def leave(domain: DispatchArrays, group: int64, now_ns: int64) -> None:
    """A group has one subscription less that waits for it."""
    domain.limiters[group].waiting -= 1
    if domain.limiters[group].waiting == 0:
        end_wait(domain, group, now_ns)


@inner
def withheld(domain: DispatchArrays, s: int64, ops: DispatchOperations, e: int64) -> int64:
    """Keep a read behind those of its subscription that wait already; its position."""
    subscription = domain.subscriptions[s]
    n = domain.used[WITHHELD_ROWS]
    domain.used[WITHHELD_ROWS] = n + 1
    read = domain.reads[n]
    read.next, read.at_ns, read.messages, read.bytes = NO_VALUE, ops.at_ns[e], ops.messages[e], ops.bytes[e]
    read.charged, read.exempt = ops.charged[e], ops.exempt[e]
    if subscription.head == NO_VALUE:
        subscription.head = n
    else:
        domain.reads[subscription.tail].next = n
    subscription.tail = n
    return n


@inner
def retry(domain: DispatchArrays, s: int64, now_ns: int64) -> bool:
    """Start the subscription's reads one after another; False if none started and none can while nothing changes: its
    group is blocked, and no other level, which would be read, limits it.
    """
    subscription, group = domain.subscriptions[s], domain.chains[s, GROUP]
    place, causes, has_started = 0, 0, False
    while subscription.head != NO_VALUE:
        place, causes = tried(domain, s, domain.reads[subscription.head], now_ns)
        if place != 0:
            break
        subscription.head = domain.reads[subscription.head].next
        has_started = True
    if place != 0:
        skip(domain, s, int64(place), int64(causes), now_ns)
    elif subscription.counted != 0:
        subscription.counted = 0
        leave(domain, group, now_ns)
    return has_started or not is_stuck(domain, s)


@inner
def is_stuck(domain: DispatchArrays, s: int64) -> bool:
    group = domain.chains[s, GROUP]
    if group == NO_LEVEL or blocking(domain.buckets, group) == 0:
        return False
    for place in range(GROUP):
        i = domain.chains[s, place]
        if i != NO_LEVEL and is_limited(domain, i):
            return False
    return True


@inlined
def has_room(domain: DispatchArrays, waits: int) -> bool:
    """Whether so many waits can be told."""
    return not domain.tells or domain.group_waits.size - domain.used[WAIT_ROWS] >= waits


@inner
def run_due(domain: DispatchArrays, until_ns: int64) -> bool:
    """All retries due by `until_ns`, False: up to the one for which there is no room.

    Where all in line wait for blocked levels, whole seconds are passed over.
    """
    line, idle = domain.line, 0
    while line[COUNT] > 0 and domain.subscriptions[line[FIRST]].due_ns <= until_ns:
        if not has_room(domain, TOLD_AT_ONCE):
            return False
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
    return True


@inner
def pass_over(domain: DispatchArrays, until_ns: int64) -> None:
    seconds = (until_ns - domain.subscriptions[domain.line[LAST]].due_ns) // RETRY_NS
    if seconds <= 0:
        return
    s = domain.line[FIRST]
    while s != NO_VALUE:
        domain.subscriptions[s].due_ns += seconds * RETRY_NS
        s = domain.subscriptions[s].next


@inner
def set_limit(domain: DispatchArrays, ops: DispatchOperations, e: int64) -> None:
    """Change a level's rates. Withheld reads wait for their retry."""
    i, now_ns = ops.target[e], ops.at_ns[e]
    if domain.limiters[i].group == 0:
        set_rates(domain, i, ops.messages[e], ops.bytes[e], ops.charged[e], ops.exempt[e], now_ns)
        return
    end_if_refilled(domain, i, now_ns)
    set_group_rates(domain, i, ops.messages[e], ops.bytes[e], now_ns)
    if domain.offered or domain.limiters[i].cause == 0:
        return
    if ready_ns(domain, i) <= now_ns:
        end_wait(domain, i, now_ns)
    elif blocking(domain.buckets, i) != 0:
        note_cause(domain, i, blocking(domain.buckets, i), now_ns)


@inlined
def deliver(domain: DispatchArrays, ops: DispatchOperations, e: int64) -> None:
    """Charge a delivery of admitted traffic."""
    if ops.exempt[e] != 0:
        return
    s, now_ns = ops.target[e], ops.at_ns[e]
    group = domain.chains[s, GROUP]
    if group != NO_LEVEL and domain.limiters[group].cause != 0:
        end_if_refilled(domain, group, now_ns)
    domain.held_by[e], _ = first_missing(domain, s, now_ns)
    causes = charge(domain, s, ops.charged[e], ops.bytes[e], now_ns)
    if causes != 0 and domain.tells:
        note_cause(domain, group, causes, now_ns)


@inner
def want(domain: DispatchArrays, ops: DispatchOperations, e: int64) -> None:
    """Start a read of offered traffic, or withhold it."""
    s, now_ns = ops.target[e], ops.at_ns[e]
    subscription = domain.subscriptions[s]
    if subscription.head != NO_VALUE:
        withheld(domain, s, ops, e)
        domain.held_by[e] = subscription.held_by
        return
    n = withheld(domain, s, ops, e)
    place, causes = tried(domain, s, domain.reads[n], now_ns)
    domain.held_by[e] = place
    if place != 0:
        skip(domain, s, int64(place), int64(causes), now_ns)
    else:
        subscription.head = NO_VALUE


@borrowing
def begin(domain: DispatchArrays, begin_ns: int64) -> None:
    """A run begins: waits of groups that nobody waits at any longer end, at most one a level."""
    for i in range(domain.limiters.size):
        if domain.offered and domain.limiters[i].waiting == 0:
            end_wait(domain, int64(i), begin_ns)


@borrowing
def run(domain: DispatchArrays, ops: DispatchOperations, first: int64, until_ns: int64) -> int:
    """Carry out `ops` from the place `first` on, in order, then all retries due by `until_ns`.

    Returns the place at which to go on when there is more room for waits, DONE: there is nothing more to do. How many
    waits are told follows from the length of a gap, so no bound is known beforehand; capacities of the other pools are
    the caller's business.
    """
    for e in range(first, ops.at_ns.size):
        if not run_due(domain, ops.at_ns[e]) or not has_room(domain, TOLD_AT_ONCE):
            return e
        if ops.kind[e] == SET_RATE:
            set_limit(domain, ops, int64(e))
        elif ops.kind[e] == FOLLOW:
            follow(domain, ops.target[e], ops.messages[e], ops.bytes[e], ops.at_ns[e])
        elif domain.offered:
            want(domain, ops, int64(e))
        else:
            deliver(domain, ops, int64(e))
    if not run_due(domain, until_ns) or not has_room(domain, domain.limiters.size):
        return ops.at_ns.size
    for i in range(domain.limiters.size):
        end_if_refilled(domain, int64(i), until_ns)
    return DONE


@kernel
def line_of(domain: DispatchArrays) -> Ints:
    """The subscriptions that wait, in the order of their retries."""
    line = np.empty(domain.line[COUNT], int64)
    s = domain.line[FIRST]
    for place in range(line.size):
        line[place] = s
        s = domain.subscriptions[s].next
    return line
