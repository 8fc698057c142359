"""The broker's machines over arrays: operations of many connections in order, with their timers (throttle-protocol 7).

The array form of core.protocol.broker.connection, checked equal to it by test.
"""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.compiled import borrowing, inner
from headgate.core.kernels.protocol.checks import error_in, error_in_open
from headgate.core.kernels.protocol.links import (
    add_named,
    add_producer,
    find_named,
    find_producer,
    watch_end,
)
from headgate.core.kernels.protocol.outbox import count_off
from headgate.core.kernels.protocol.table import (
    clear_condition,
    close_producer,
    condition_of,
    end_window,
    mark,
    miss_deadline,
    next_deadline,
    publish,
    quote,
    receipt,
    set_condition,
    unmark,
)
from headgate.core.kernels.protocol.types import (
    ANSWERED,
    BAD_TIME,
    CLOSE,
    CLOSE_PRODUCER,
    COMMAND,
    CONDITION_CLEAR,
    CONDITION_SET,
    CONNECT,
    COUNTS,
    DECISIONS,
    ENDS,
    FREE,
    HAS_BEGUN,
    IDS_IN_USE,
    LETTERS,
    LIVES,
    MARK,
    NEVER,
    NONE,
    NOTICE,
    OPEN,
    OPERATION_NOW,
    PUBLISH,
    QUEUE_IN_USE,
    QUOTE,
    READS_ON,
    RECEIPT,
    REJECTED,
    TOLD,
    TRUSTED,
    TURN_NOW,
    UNKNOWN_CONNECTION,
    UNMARK,
    Machines,
)

_MAX = int64(2**63 - 1)
_ROOM = 4
"""Decisions of one operation, beside a notice for each producer."""


@borrowing
def run(m: Machines, until_ms: int64) -> bool:
    """Take the operations of each turn, then let its time come to `until_ms` (NONE: it stays where it is).

    False: a pool is full. Nothing is lost: with larger ones the next call goes on where this one stopped.
    """
    while m.used[TURN_NOW] < m.turns.size:
        turn = m.turns[m.used[TURN_NOW]]
        c = turn.connection
        if not m.used[HAS_BEGUN]:
            _begin(m, c)
            m.used[OPERATION_NOW], m.used[HAS_BEGUN] = turn.first, 1
        while m.used[OPERATION_NOW] < turn.end:
            if not _operate(m, c, m.operations[m.used[OPERATION_NOW]]):
                return False
            m.used[OPERATION_NOW] += 1
        if until_ms >= 0 and not _wait(m, c, until_ms):
            return False
        _end(m, c)
        m.used[TURN_NOW] += 1
        m.used[HAS_BEGUN] = 0
    return True


@inner
def _begin(m: Machines, c: int64) -> None:
    m.used[ENDS] = 0
    p = m.connections[c].first_producer
    while p != NONE:
        if m.producers[p].phase in (TOLD, TRUSTED):
            watch_end(m, p)
        p = m.producers[p].next


@inner
def _end(m: Machines, c: int64) -> None:
    due_ms = _due_ms(m, c) if m.connections[c].is_open else NEVER
    m.connections[c].due_ms = int64(min(due_ms, uint64(_MAX)))
    while m.used[ENDS] > 0:
        m.used[ENDS] -= 1
        m.producers[m.ends[m.used[ENDS]]].place = NONE
    for counter in range(m.counters.size):
        if m.counters[counter]:
            row = m.counts[m.used[COUNTS]]
            row.connection, row.counter, row.value = c, counter, m.counters[counter]
            m.used[COUNTS] += 1
            m.counters[counter] = 0


@inner
def _next_end(m: Machines) -> uint64:
    return m.producers[m.ends[0]].end_ms if m.used[ENDS] else NEVER


@inner
def _due_ms(m: Machines, c: int64) -> uint64:
    return min(next_deadline(m, c), _next_end(m))


@inner
def _has_room(m: Machines, c: int64) -> bool:
    """Whether the pools that time fills have room for one more operation or timer."""
    return (
        m.used[DECISIONS] + m.connections[c].producers + _ROOM <= m.decisions.size
        and m.used[IDS_IN_USE] < m.ids.size
        and m.used[QUEUE_IN_USE] + 1 < m.queued.size
    )


@inner
def _fire_until(m: Machines, c: int64, last_ms: int64) -> bool:
    """Fire timers due up to `last_ms`, each at its time: in one millisecond deadlines, then ends of windows."""
    while True:
        deadline_ms, end_ms = next_deadline(m, c), _next_end(m)
        due_ms = min(deadline_ms, end_ms)
        if due_ms > uint64(last_ms):
            return True
        if not _has_room(m, c):
            return False
        m.connections[c].now_ms = int64(due_ms)
        if deadline_ms <= end_ms:
            miss_deadline(m, c, int64(due_ms))
        else:
            end_window(m, c, int64(due_ms))


@inner
def _reach(m: Machines, c: int64, at_ms: int64) -> bool:
    if at_ms > m.connections[c].now_ms:
        if not _fire_until(m, c, at_ms - 1):
            return False
        m.connections[c].now_ms = at_ms
    return True


@inner
def _wait(m: Machines, c: int64, until_ms: int64) -> bool:
    """Millisecond `until_ms` is over; an obedient client answers in between."""
    if not m.connections[c].is_open:
        return True
    if m.obedient:
        while True:
            due_ms = _due_ms(m, c)
            if m.used[ANSWERED] < m.used[DECISIONS] and due_ms > uint64(m.connections[c].now_ms):
                if not _answer_all(m, c):
                    return False
            elif due_ms > uint64(until_ms):
                break
            elif not _advance(m, c, int64(due_ms)):
                return False
    return _advance(m, c, until_ms)


@inner
def _advance(m: Machines, c: int64, at_ms: int64) -> bool:
    return _reach(m, c, at_ms) and _fire_until(m, c, m.connections[c].now_ms)


@inner
def _answer_all(m: Machines, c: int64) -> bool:
    """What an obedient client does: a receipt for each command that asks it to stop, in the same millisecond."""
    while m.used[ANSWERED] < m.used[DECISIONS]:
        decision = m.decisions[m.used[ANSWERED]]
        if decision.kind == COMMAND and decision.command != NOTICE:
            if m.used[QUEUE_IN_USE] + 1 >= m.queued.size:
                return False
            receipt(m, c, decision.request_id)
        m.used[ANSWERED] += 1
    return True


@inner
def _operate(m: Machines, c: int64, operation: Any) -> bool:
    """Take one operation, after the timers before it; False where there is no room for what comes of it."""
    connection, at_ms = m.connections[c], operation.at_ms
    _begin_anew(m, c, at_ms)
    if m.obedient and at_ms > connection.now_ms and not _wait(m, c, at_ms - 1):
        return False
    if connection.is_open and at_ms >= 0 and not _reach(m, c, at_ms):
        return False
    if not _has_room(m, c):
        return False
    if m.obedient:
        _make_up(m, c, operation)
    if not _is_over(m, c, operation):
        _take(m, c, operation)
    if connection.is_open:
        connection.heard_ms = max(connection.heard_ms, at_ms)
    return not m.obedient or _answer_all(m, c)


@inner
def _take(m: Machines, c: int64, operation: Any) -> None:
    """Let the operation act, or say why it is refused."""
    connection, at_ms = m.connections[c], operation.at_ms
    p = _producer_of(m, c, operation)
    error = int64(NONE)
    if at_ms < 0:
        error = int64(BAD_TIME)
    elif connection.is_open:
        error = error_in(m, c, p, operation)
    elif operation.kind != CONNECT:
        error = int64(UNKNOWN_CONNECTION)
    if error != NONE:
        m.counters[REJECTED + error] += 1
        letter = m.letters[m.used[LETTERS]]
        m.used[LETTERS] += 1
        letter.row, letter.error = operation.row, error
        letter.at_ms = connection.now_ms if connection.is_open and error != BAD_TIME else at_ms
    else:
        _act(m, c, p, operation)


@inner
def _begin_anew(m: Machines, c: int64, at_ms: int64) -> None:
    """After too long a silence there is no connection: neither what it decided nor its close is known any more."""
    connection = m.connections[c]
    last_ms = connection.heard_ms if connection.is_open else connection.closed_ms
    reached_ms = m.horizon_ms if at_ms <= m.horizon_ms else at_ms - 1
    if m.silent_ms == 0 or last_ms > reached_ms - m.silent_ms:
        return
    if not connection.is_open or (m.ends_open and _is_free(m, c)):
        forget(connection)
        connection.seq, connection.closed_ms = 0, NONE


@inner
def _is_free(m: Machines, c: int64) -> bool:
    connection = m.connections[c]
    p = connection.first_producer
    while p != NONE and m.producers[p].phase == FREE:
        p = m.producers[p].next
    return p == NONE and connection.holds == 0


@inner
def _closed_ms(m: Machines, c: int64) -> int64:
    """Up to when rows of a life that is over come."""
    connection = m.connections[c]
    if connection.is_open or connection.closed_ms > m.horizon_ms:
        return connection.closed_ms
    return int64(m.horizon_ms)


@inner
def _is_over(m: Machines, c: int64, operation: Any) -> bool:
    """Whether this is of a life that has been closed: a copy, or one that comes too late. Of obedient clients a close
    says nothing new where nothing is open.
    """
    connection = m.connections[c]
    if m.obedient and operation.kind == CLOSE and not connection.is_open:
        return bool(operation.at_ms >= 0)
    begins_or_ends = operation.kind in (CONNECT, CLOSE) or (connection.is_open and operation.kind == OPEN)
    return begins_or_ends and 0 <= operation.at_ms <= _closed_ms(m, c)


@inner
def _make_up(m: Machines, c: int64, operation: Any) -> None:
    """What comes before a row where nobody says what clients there are."""
    connection, at_ms = m.connections[c], operation.at_ms
    if not connection.is_open and operation.kind not in (CONNECT, CLOSE):
        if at_ms < 0:
            m.counters[REJECTED + BAD_TIME] += 1
        elif at_ms > _closed_ms(m, c):
            _connect(m, c, at_ms, int64(1))
    if operation.name == NONE:
        return
    if not connection.is_open:
        m.counters[REJECTED + (BAD_TIME if at_ms < 0 else UNKNOWN_CONNECTION)] += 1
    elif find_named(m, connection.life, operation.topic, operation.name) == NONE:
        id_ = connection.names
        p = find_producer(m, connection.life, id_)
        if p == NONE:
            p = add_producer(m, c, id_)
        add_named(m, c, operation.topic, operation.name, p)
        error = int64(BAD_TIME) if at_ms < 0 else error_in_open(m, p, int64(1), id_, operation.topic)
        if error == NONE:
            _open(m, p, operation.topic)
        else:
            m.counters[REJECTED + error] += 1


@inner
def _producer_of(m: Machines, c: int64, operation: Any) -> int64:
    """The record of an operation's producer; what its row says of numbers is noted."""
    connection = m.connections[c]
    if not connection.is_open:
        return int64(NONE)
    if operation.by_marks:
        i = NONE if operation.name == NONE else find_named(m, connection.life, operation.topic, operation.name)
        p = int64(NONE) if i == NONE else m.named[i].producer
        _number(m, c, p, operation)
        return p
    p = find_producer(m, connection.life, operation.producer) if operation.has_producer else int64(NONE)
    if operation.kind == OPEN and operation.has_producer:
        if p == NONE and (operation.name != NONE or operation.producer >= 0):
            p = add_producer(m, c, operation.producer)
        if operation.name != NONE:
            i = find_named(m, connection.life, operation.topic, operation.name)
            if i == NONE:
                add_named(m, c, operation.topic, operation.name, p)
            else:
                m.named[i].producer = p
    return p


@inner
def _number(m: Machines, c: int64, p: int64, operation: Any) -> None:
    """Ordinals of rows of `marks`, counted in their order."""
    if operation.kind == MARK:
        for k in range(operation.trips if p != NONE else 0):
            m.limiters[p, m.trips[operation.first_trip if k == 0 else operation.second_trip].reason].marks += 1
    elif operation.kind == UNMARK:
        if p != NONE:
            m.limiters[p, operation.reason].unmarks += 1
            operation.number = m.limiters[p, operation.reason].unmarks
    elif operation.kind in (CONDITION_SET, CONDITION_CLEAR):
        condition = condition_of(m, c, operation.reason)
        if operation.kind == CONDITION_SET and not condition.is_set:
            condition.begun += 1
        condition.is_set = 1 if operation.kind == CONDITION_SET else 0
        operation.number = condition.begun


@inner
def _act(m: Machines, c: int64, p: int64, operation: Any) -> None:
    kind, now_ms = operation.kind, m.connections[c].now_ms
    if kind == CONNECT:
        if not m.connections[c].is_open:
            _connect(m, c, operation.at_ms, operation.flag)
    elif kind == OPEN:
        _open(m, p, operation.topic)
    elif kind == PUBLISH:
        publish(m, c, p, now_ms)
    elif kind == MARK:
        mark(m, c, p, operation, now_ms)
    elif kind == RECEIPT:
        receipt(m, c, operation.number)
    elif kind == QUOTE:
        quote(m, c, p, operation, now_ms)
    elif kind == CONDITION_SET:
        tripped_by = p if p != NONE and m.producers[p].is_open else int64(NONE)
        set_condition(m, c, tripped_by, operation.reason, operation.number, now_ms)
    elif kind == UNMARK:
        unmark(m, c, p, operation.reason, operation.number, now_ms)
    elif kind == CONDITION_CLEAR:
        clear_condition(m, c, operation.reason, operation.number, now_ms)
    elif kind == CLOSE_PRODUCER:
        close_producer(m, c, p, now_ms)
    elif kind == CLOSE:
        _close(m, c, operation.at_ms)


@inner
def _connect(m: Machines, c: int64, at_ms: int64, supports: int64) -> None:
    """A new life, with the settings of those that open from now on: the last ones."""
    connection = m.connections[c]
    connection.life = m.used[LIVES]
    m.used[LIVES] += 1
    connection.is_open, connection.supports, connection.now_ms = 1, supports, at_ms
    connection.settings = m.settings.size - 1


@inner
def _open(m: Machines, p: int64, topic: int64) -> None:
    m.producers[p].is_open, m.producers[p].topic = 1, topic


@inner
def _close(m: Machines, c: int64, at_ms: int64) -> None:
    """Forget everything but the number of the last decision, and when this was."""
    connection = m.connections[c]
    if connection.off_at_ms != READS_ON:
        count_off(m, connection.now_ms - connection.off_at_ms)
    forget(connection)
    connection.closed_ms = at_ms
    m.used[ENDS] = 0


@inner
def forget(connection: Any) -> None:
    """Be no connection."""
    connection.now_ms = connection.stood_ms = connection.issued = 0
    connection.heard_ms = NONE
    connection.is_open = connection.supports = connection.names = connection.holds = 0
    connection.producers = connection.is_unordered = 0
    connection.off_at_ms, connection.life, connection.settings = READS_ON, NONE, NONE
    connection.first_producer = connection.last_producer = connection.first_id = connection.last_id = NONE
    connection.first_queued = connection.last_queued = connection.condition = NONE
