"""How the records of a machine are found: hash chains, lists in order, and a heap of the ends of windows."""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.columns import Ints
from headgate.core.kernels.compiled import borrowing, inner
from headgate.core.kernels.protocol.types import (
    ENDS,
    FREE_ID,
    IDS,
    IDS_IN_USE,
    NAMES,
    NONE,
    PRODUCERS,
    Machines,
)

_FIRST = uint64(0x9E3779B97F4A7C15)
_SECOND = uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = uint64(33)
_NAMES = int64(1_000_003)


@inner
def _chain(heads: Ints, life: int64, number: int64) -> int64:
    """The chain of a pair; the number of chains is a power of two."""
    mixed = (uint64(life) * _FIRST + uint64(number)) * _SECOND
    return int64((mixed ^ (mixed >> _SHIFT)) & uint64(heads.size - 1))


@inner
def find_producer(m: Machines, life: int64, id_: int64) -> int64:
    p = m.producers_by[_chain(m.producers_by, life, id_)]
    while p != NONE and (m.producers[p].life != life or m.producers[p].id != id_):
        p = m.producers[p].same
    return p


@inner
def add_producer(m: Machines, c: int64, id_: int64) -> int64:
    """A record for a producer that has none: not open, the last of the connection; see `sort_producers`."""
    p = m.used[PRODUCERS]
    m.used[PRODUCERS] += 1
    connection, producers = m.connections[c], m.producers
    chain = _chain(m.producers_by, connection.life, id_)
    producer = producers[p]
    producer.life, producer.id, producer.topic = connection.life, id_, NONE
    producer.is_open, producer.phase, producer.end_ms, producer.reason = 0, 0, uint64(0), 0
    producer.open_ids, producer.first_id, producer.place = 0, NONE, NONE
    producer.same = m.producers_by[chain]
    m.producers_by[chain] = p
    before = connection.last_producer
    producer.before, producer.next = before, NONE
    if before == NONE:
        connection.first_producer = p
    else:
        producers[before].next = p
        connection.is_unordered |= producers[before].id > id_
    connection.last_producer = p
    connection.producers += 1
    return p


@inner
def sort_producers(m: Machines, c: int64) -> None:
    """Have the connection's producers by id: a merge sort of their links, whose runs are `width` long."""
    connection, producers, width = m.connections[c], m.producers, 1
    while connection.is_unordered and width < connection.producers:
        one, last = connection.first_producer, int64(NONE)
        while one != NONE:
            other, left, right = one, 0, width
            while left < width and other != NONE:
                other, left = producers[other].next, left + 1
            while left > 0 or (right > 0 and other != NONE):
                if left > 0 and (right == 0 or other == NONE or producers[one].id <= producers[other].id):
                    p, one, left = one, producers[one].next, left - 1
                else:
                    p, other, right = other, producers[other].next, right - 1
                producers[p].before = last
                if last == NONE:
                    connection.first_producer = p
                else:
                    producers[last].next = p
                last = p
            one = other
        producers[last].next = NONE
        connection.last_producer = last
        width *= 2
    connection.is_unordered = 0


@inner
def drop_producer(m: Machines, c: int64, p: int64) -> None:
    """Forget a record that has no id and no window; the names that it has find nothing any more."""
    producer, connection, producers = m.producers[p], m.connections[c], m.producers
    if producer.before == NONE:
        connection.first_producer = producer.next
    else:
        producers[producer.before].next = producer.next
    if producer.next == NONE:
        connection.last_producer = producer.before
    else:
        producers[producer.next].before = producer.before
    chain = _chain(m.producers_by, producer.life, producer.id)
    if m.producers_by[chain] == p:
        m.producers_by[chain] = producer.same
    else:
        one = m.producers_by[chain]
        while producers[one].same != p:
            one = producers[one].same
        producers[one].same = producer.same
    producer.life, producer.is_open = NONE, 0
    connection.producers -= 1


@inner
def find_named(m: Machines, life: int64, topic: int64, name: int64) -> int64:
    named = m.named
    i = m.named_by[_chain(m.named_by, life, topic * _NAMES + name)]
    while i != NONE and (
        named[i].life != life
        or named[i].name != name
        or named[i].topic != topic
        or m.producers[named[i].producer].life == NONE
    ):
        i = named[i].same
    return i


@inner
def add_named(m: Machines, c: int64, topic: int64, name: int64, p: int64) -> None:
    i = m.used[NAMES]
    m.used[NAMES] += 1
    life = m.connections[c].life
    chain = _chain(m.named_by, life, topic * _NAMES + name)
    named = m.named[i]
    named.life, named.topic, named.name, named.producer = life, topic, name, p
    named.same = m.named_by[chain]
    m.named_by[chain] = i
    m.connections[c].names += 1


@inner
def find_id(m: Machines, life: int64, request_id: int64) -> int64:
    i = m.ids_by[_chain(m.ids_by, life, request_id)]
    while i != NONE and (m.ids[i].life != life or m.ids[i].request_id != request_id):
        i = m.ids[i].same
    return i


@inner
def open_id(m: Machines, c: int64, p: int64, request_id: int64, due_ms: uint64) -> None:
    """An id whose receipt is waited for, in its place by due time, then producer."""
    i = m.used[FREE_ID]
    if i == NONE:
        i = m.used[IDS]
        m.used[IDS] += 1
    else:
        m.used[FREE_ID] = m.ids[i].after
    m.used[IDS_IN_USE] += 1
    entry, connection = m.ids[i], m.connections[c]
    entry.life, entry.producer, entry.request_id, entry.due_ms = connection.life, p, request_id, uint64(due_ms)
    watch_id(m, c, i)


@inner
def watch_id(m: Machines, c: int64, i: int64) -> None:
    """Link an id whose fields are set."""
    entry, connection, ids = m.ids[i], m.connections[c], m.ids
    producer = m.producers[entry.producer]
    entry.is_queued = 0
    entry.previous, entry.next = NONE, producer.first_id
    if producer.first_id != NONE:
        ids[producer.first_id].previous = i
    producer.first_id = i
    producer.open_ids += 1
    chain = _chain(m.ids_by, entry.life, entry.request_id)
    entry.same = m.ids_by[chain]
    m.ids_by[chain] = i
    before = connection.last_id
    while before != NONE and (
        ids[before].due_ms > entry.due_ms
        or (ids[before].due_ms == entry.due_ms and m.producers[ids[before].producer].id > producer.id)
    ):
        before = ids[before].before
    after = connection.first_id if before == NONE else ids[before].after
    entry.before, entry.after = before, after
    if before == NONE:
        connection.first_id = i
    else:
        ids[before].after = i
    if after == NONE:
        connection.last_id = i
    else:
        ids[after].before = i


@inner
def close_id(m: Machines, c: int64, i: int64) -> None:
    """Forget an id, but for its place among those of its producer."""
    entry, connection, ids = m.ids[i], m.connections[c], m.ids
    if entry.before == NONE:
        connection.first_id = entry.after
    else:
        ids[entry.before].after = entry.after
    if entry.after == NONE:
        connection.last_id = entry.before
    else:
        ids[entry.after].before = entry.before
    chain = _chain(m.ids_by, entry.life, entry.request_id)
    if m.ids_by[chain] == i:
        m.ids_by[chain] = entry.same
    else:
        one = m.ids_by[chain]
        while ids[one].same != i:
            one = ids[one].same
        ids[one].same = entry.same
    entry.life = NONE
    entry.after = m.used[FREE_ID]
    m.used[FREE_ID] = i
    m.used[IDS_IN_USE] -= 1


@inner
def _is_before(one: Any, other: Any) -> bool:
    return one.end_ms < other.end_ms or (one.end_ms == other.end_ms and one.id < other.id)


@inner
def _sift(m: Machines, p: int64, i: int64) -> None:
    """Put `p` into the heap, from the free place `i`."""
    ends, producers, size = m.ends, m.producers, m.used[ENDS]
    while i > 0 and _is_before(producers[p], producers[ends[(i - 1) // 2]]):
        parent = (i - 1) // 2
        ends[i] = ends[parent]
        producers[ends[i]].place = i
        i = parent
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _is_before(producers[ends[child + 1]], producers[ends[child]]):
            child += 1
        if not _is_before(producers[ends[child]], producers[p]):
            break
        ends[i] = ends[child]
        producers[ends[i]].place = i
        i = child
    ends[i] = p
    producers[p].place = i


@inner
def watch_end(m: Machines, p: int64) -> None:
    """A window was announced, or another one."""
    if m.producers[p].place == NONE:
        m.used[ENDS] += 1
        _sift(m, p, m.used[ENDS] - 1)
    else:
        _sift(m, p, m.producers[p].place)


@inner
def drop_end(m: Machines, p: int64) -> None:
    """A window is void."""
    i = m.producers[p].place
    if i != NONE:
        m.producers[p].place = NONE
        m.used[ENDS] -= 1
        last = m.ends[m.used[ENDS]]
        if last != p:
            _sift(m, last, i)


@borrowing
def link_ids(m: Machines) -> None:
    """Begin the chains of ids anew, as the pool has grown."""
    m.ids_by[:] = NONE
    for i in range(m.used[IDS]):
        if m.ids[i].life != NONE:
            chain = _chain(m.ids_by, m.ids[i].life, m.ids[i].request_id)
            m.ids[i].same = m.ids_by[chain]
            m.ids_by[chain] = i
