"""What is done about the producers of a connection, and the gate that it moves: the table of throttle-protocol 7.4.

The array form of core.protocol.broker.throttling, conditions, gate and announcements; numbers in comments are rows of
the table. `c` is a connection, `p` a producer.
"""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.compiled import inner
from headgate.core.kernels.protocol.links import (
    close_id,
    drop_end,
    drop_producer,
    find_id,
    open_id,
    sort_producers,
    watch_end,
)
from headgate.core.kernels.protocol.outbox import breach, command, count_off, decision
from headgate.core.kernels.protocol.pauses import extension, in_ms, longest_ns, until_second
from headgate.core.kernels.protocol.types import (
    CONDITION_CAUSE,
    CONDITIONS,
    EXTEND,
    FALLBACKS,
    FREE,
    FREE_QUEUED,
    HARD_FLOOR,
    HOLDING,
    IGNORED,
    IN_TIME,
    NEVER,
    NO_RECEIPT,
    NO_SUPPORT,
    NONE,
    NOTICE,
    PAUSE,
    QUEUE,
    QUEUE_IN_USE,
    READS_ON,
    READS_PAUSED,
    READS_RESUMED,
    RESUME,
    START,
    THROTTLED,
    TOLD,
    TRUSTED,
    UNKNOWN,
    UNTHROTTLED,
    VIOLATION,
    Machines,
)

_PENDING, _BROKER = 2, 4
"""The conditions that count more than the others."""


@inner
def _send(m: Machines, c: int64, p: int64, kind: int64, pause_ms: int64, reason: int64, now_ms: int64) -> None:
    """Tell a producer to stop; it has the wait of reading to answer."""
    connection, producer = m.connections[c], m.producers[p]
    settings = m.settings[connection.settings]
    request_id = command(m, c, p, kind, pause_ms, reason, now_ms)
    stands = settings.freezes != 0 and connection.off_at_ms != READS_ON
    reading_ms = (connection.off_at_ms if stands else now_ms) - connection.stood_ms
    producer.phase, producer.reason = TOLD, reason
    producer.end_ms = uint64(now_ms) + uint64(pause_ms)
    open_id(m, c, p, request_id, uint64(reading_ms) + uint64(settings.wait_ms))
    watch_end(m, p)


@inner
def next_deadline(m: Machines, c: int64) -> uint64:
    """When the earliest open id has to be answered; NEVER also while it is frozen."""
    connection = m.connections[c]
    if connection.first_id == NONE:
        return NEVER
    due_ms, stood_ms = m.ids[connection.first_id].due_ms, uint64(connection.stood_ms)
    if due_ms > NEVER - stood_ms:
        return NEVER
    due_ms += stood_ms
    freezes = m.settings[connection.settings].freezes != 0 and connection.off_at_ms != READS_ON
    return NEVER if freezes and due_ms > uint64(connection.off_at_ms) else due_ms


@inner
def _settle(m: Machines, c: int64, p: int64, phase: int64) -> None:
    """What the producer was told is void."""
    producer = m.producers[p]
    i = producer.first_id
    while i != NONE:
        close_id(m, c, i)
        i = m.ids[i].next
    drop_end(m, p)
    producer.first_id, producer.open_ids = NONE, 0
    producer.phase, producer.end_ms, producer.reason = phase, uint64(0), 0


@inner
def _hold(m: Machines, c: int64, p: int64, cause: int64, reason: int64, now_ms: int64) -> None:
    connection = m.connections[c]
    connection.holds += 1
    if connection.off_at_ms == READS_ON:
        connection.off_at_ms = now_ms
        row = decision(m, c, PAUSE, now_ms, reason)
        row.cause = cause
        if p != NONE:
            row.producer, row.topic = m.producers[p].id, m.producers[p].topic
        m.counters[READS_PAUSED] += 1


@inner
def _let_go(m: Machines, c: int64, now_ms: int64) -> None:
    """Remove a hold; the last one turns reads on, and what waited in the socket is read."""
    connection = m.connections[c]
    connection.holds -= 1
    if connection.holds > 0:
        return
    off_ms = now_ms - connection.off_at_ms
    connection.off_at_ms = READS_ON
    if m.settings[connection.settings].freezes:
        connection.stood_ms += off_ms
    row = decision(m, c, RESUME, now_ms, NONE)
    row.off_ms = off_ms
    m.counters[READS_RESUMED] += 1
    count_off(m, off_ms)
    i = connection.first_queued
    connection.first_queued = connection.last_queued = NONE
    while i != NONE:
        receipt(m, c, m.queued[i].request_id)
        after = m.queued[i].next
        m.queued[i].life, m.queued[i].next = NONE, m.used[FREE_QUEUED]
        m.used[FREE_QUEUED] = i
        m.used[QUEUE_IN_USE] -= 1
        i = after


@inner
def _fall_back(m: Machines, c: int64, p: int64, cause: int64, reason: int64, now_ms: int64) -> None:
    """Enter P."""
    _settle(m, c, p, HOLDING)
    m.counters[FALLBACKS + cause] += 1
    _hold(m, c, p, cause, reason, now_ms)


@inner
def receipt(m: Machines, c: int64, request_id: int64) -> None:
    """A receipt arrived. While reads are off that of an open id waits for them, but no copy of it and no other."""
    connection = m.connections[c]
    i = find_id(m, connection.life, request_id)
    if i == NONE:  # 10
        m.counters[IGNORED if 1 <= request_id <= connection.issued else UNKNOWN] += 1
    elif connection.off_at_ms == READS_ON:  # 8, 9
        _answer(m, c, i)
        m.counters[IN_TIME] += 1
    elif m.ids[i].is_queued:
        m.counters[IGNORED] += 1
    else:
        queue_receipt(m, c, request_id)


@inner
def _answer(m: Machines, c: int64, i: int64) -> None:
    p = m.ids[i].producer
    producer = m.producers[p]
    close_id(m, c, i)
    entry = m.ids[i]
    if entry.previous == NONE:
        producer.first_id = entry.next
    else:
        m.ids[entry.previous].next = entry.next
    if entry.next != NONE:
        m.ids[entry.next].previous = entry.previous
    producer.open_ids -= 1
    if producer.open_ids == 0:
        producer.phase = TRUSTED


@inner
def queue_receipt(m: Machines, c: int64, request_id: int64) -> None:
    """Keep a receipt until reads are on."""
    awaited = find_id(m, m.connections[c].life, request_id)
    if awaited != NONE:
        m.ids[awaited].is_queued = 1
    i = m.used[FREE_QUEUED]
    if i == NONE:
        i = m.used[QUEUE]
        m.used[QUEUE] += 1
    else:
        m.used[FREE_QUEUED] = m.queued[i].next
    m.used[QUEUE_IN_USE] += 1
    connection, entry = m.connections[c], m.queued[i]
    entry.life, entry.request_id, entry.next = connection.life, request_id, NONE
    if connection.last_queued == NONE:
        connection.first_queued = i
    else:
        m.queued[connection.last_queued].next = i
    connection.last_queued = i


@inner
def _note(limiter: Any, m: Machines, first: int64, buckets: int64, now_ms: int64) -> None:
    """Keep a limiter's balances."""
    limiter.quoted_ms, limiter.buckets = now_ms, buckets
    limiter.balance_0, limiter.rate_0 = m.buckets[first].balance, m.buckets[first].rate
    limiter.balance_1 = m.buckets[first + 1].balance if buckets > 1 else 0
    limiter.rate_1 = m.buckets[first + 1].rate if buckets > 1 else 0


@inner
def mark(m: Machines, c: int64, p: int64, operation: Any, now_ms: int64) -> None:
    """One publish tripped limiters; the pause is decided by those trips that are news."""
    connection, producer = m.connections[c], m.producers[p]
    settings = m.settings[connection.settings]
    longest, reason = int64(-1), int64(0)
    for k in range(min(operation.trips, 2)):
        trip = m.trips[operation.first_trip if k == 0 else operation.second_trip]
        limiter = m.limiters[p, trip.reason]
        was_held = limiter.marked > limiter.released
        ordinal = limiter.marks if operation.by_marks else trip.ordinal
        if ordinal <= limiter.marked:
            continue
        limiter.marked = ordinal
        if ordinal <= limiter.released:
            continue
        duration_ns = int64(0)
        if settings.looks_at_buckets:
            _note(limiter, m, trip.first_bucket, trip.buckets, now_ms)
            duration_ns = longest_ns(limiter, now_ms)
        if operation.flag and not was_held:
            breach(m, c, trip.reason, producer.topic)
        if duration_ns > longest or (duration_ns == longest and trip.reason < reason):
            longest, reason = duration_ns, trip.reason
    if longest < 0 or producer.phase == HOLDING:  # 6
        return
    pause_ms = max(int64(1), in_ms(longest))
    if not settings.looks_at_buckets:
        pause_ms = until_second(now_ms, settings.phase_ms)
    if not (connection.supports and settings.wait_ms > 0):  # 1
        _fall_back(m, c, p, NO_SUPPORT, reason, now_ms)
    elif 0 < settings.hard_floor_ms < pause_ms:  # 2
        _fall_back(m, c, p, HARD_FLOOR, reason, now_ms)
    elif producer.phase == FREE:  # 3
        _send(m, c, p, START, pause_ms, reason, now_ms)
    else:
        end_ms = uint64(now_ms) + uint64(pause_ms)
        gain_ms = uint64(settings.extension_step_ms)
        if settings.doubles_extensions:
            gain_ms = max(gain_ms, producer.end_ms - uint64(now_ms))
        if end_ms >= producer.end_ms and end_ms - producer.end_ms >= gain_ms:  # 4; else 5
            _send(m, c, p, EXTEND, pause_ms, reason, now_ms)


@inner
def quote(m: Machines, c: int64, p: int64, operation: Any, now_ms: int64) -> None:
    """Newer balances of a limiter; nothing where it does not hold the producer."""
    limiter = m.limiters[p, operation.reason]
    if limiter.marked > limiter.released and m.settings[m.connections[c].settings].looks_at_buckets:  # 7
        _note(limiter, m, operation.first_bucket, operation.buckets, now_ms)


@inner
def miss_deadline(m: Machines, c: int64, now_ms: int64) -> None:
    """The earliest open id was not answered in time."""
    p = m.ids[m.connections[c].first_id].producer
    _fall_back(m, c, p, NO_RECEIPT, m.producers[p].reason, now_ms)  # 11


@inner
def end_window(m: Machines, c: int64, now_ms: int64) -> None:
    """The earliest announced end came, and a limiter still holds."""
    p = m.ends[0]
    settings = m.settings[m.connections[c].settings]
    pause_ms, reason = extension(m.limiters, p, settings, now_ms)
    if 0 < settings.hard_floor_ms < pause_ms:  # 12
        _fall_back(m, c, p, HARD_FLOOR, reason, now_ms)
    else:  # 13
        _send(m, c, p, EXTEND, pause_ms, reason, now_ms)


@inner
def publish(m: Machines, c: int64, p: int64, now_ms: int64) -> None:
    """A message was read; from a client that promised not to write it turns reads off."""
    producer, settings = m.producers[p], m.settings[m.connections[c].settings]
    is_early = uint64(now_ms) + uint64(settings.slack_ms) < producer.end_ms
    if producer.phase == TRUSTED and settings.stops_violations and is_early:  # 14; else 15
        _fall_back(m, c, p, VIOLATION, producer.reason, now_ms)


@inner
def unmark(m: Machines, c: int64, p: int64, reason: int64, ordinal: int64, now_ms: int64) -> None:
    """A limiter released marks; the producer is free once none holds it, and only then."""
    limiter = m.limiters[p, reason]
    was_held = limiter.marked > limiter.released
    limiter.released = max(limiter.released, ordinal)
    other = m.limiters[p, 1 - reason]
    is_held = limiter.marked > limiter.released or other.marked > other.released
    if was_held and not is_held:  # 16, 17; else 18
        _leave(m, c, p, now_ms)


@inner
def _leave(m: Machines, c: int64, p: int64, now_ms: int64) -> None:
    held = m.producers[p].phase == HOLDING
    _settle(m, c, p, FREE)
    if held:
        _let_go(m, c, now_ms)


@inner
def close_producer(m: Machines, c: int64, p: int64, now_ms: int64) -> None:
    """The producer is gone, and its hold, names and numbers with it."""
    _leave(m, c, p, now_ms)  # 19
    drop_producer(m, c, p)


@inner
def condition_of(m: Machines, c: int64, reason: int64) -> Any:
    """The condition's record, a new one where there is none."""
    connection = m.connections[c]
    i = connection.condition
    while i != NONE and m.conditions[i].reason != reason:
        i = m.conditions[i].next
    if i == NONE:
        i = m.used[CONDITIONS]
        m.used[CONDITIONS] += 1
        new = m.conditions[i]
        new.life, new.reason, new.next = connection.life, reason, connection.condition
        new.marked = new.released = new.begun = new.is_set = 0
        connection.condition = i
    return m.conditions[i]


@inner
def set_condition(m: Machines, c: int64, tripped_by: int64, reason: int64, ordinal: int64, now_ms: int64) -> None:
    """The cause is there; nothing more if it was before, or is over already."""
    condition, connection = condition_of(m, c, reason), m.connections[c]
    was_active = condition.marked > condition.released
    if ordinal <= condition.marked:
        return
    condition.marked = ordinal
    if was_active or ordinal <= condition.released:
        return
    if reason == _PENDING:
        m.counters[THROTTLED] += 1
    if reason == _BROKER and tripped_by != NONE:
        breach(m, c, reason, m.producers[tripped_by].topic)
    if connection.supports and m.settings[connection.settings].wait_ms > 0 and reason <= _BROKER:
        sort_producers(m, c)
        p = connection.first_producer
        while p != NONE:
            if m.producers[p].is_open:
                command(m, c, p, NOTICE, int64(0), reason, now_ms)
            p = m.producers[p].next
    _hold(m, c, NONE, CONDITION_CAUSE, reason, now_ms)


@inner
def clear_condition(m: Machines, c: int64, reason: int64, ordinal: int64, now_ms: int64) -> None:
    """The cause is over, up to a setting. Nobody is told."""
    condition = condition_of(m, c, reason)
    was_active = condition.marked > condition.released
    condition.released = max(condition.released, ordinal)
    if was_active and condition.marked <= condition.released:
        if reason == _PENDING:
            m.counters[UNTHROTTLED] += 1
        _let_go(m, c, now_ms)
