"""Rows that read: hits, misses, and what the policies insert of these (entry-cache 5.2, 5.3)."""

from numpy import int64

from headgate.core.kernels.cache.cursors import is_at_most, move, note_end, rank, slowest, wake
from headgate.core.kernels.cache.marks import is_marked, mark_of, remove_mark
from headgate.core.kernels.cache.notes import note_at, reason_of
from headgate.core.kernels.cache.order import renew
from headgate.core.kernels.cache.pages import look_up
from headgate.core.kernels.cache.policies.capped import make_room
from headgate.core.kernels.cache.policies.farthest import expect, hold, next_read
from headgate.core.kernels.cache.store import insert, remove
from headgate.core.kernels.cache.types import (
    BELADY,
    DISTANCE,
    DROPPED,
    FIFO,
    LEDGER_DELETED,
    LRU,
    MISSES,
    NONE,
    NOT_ADMITTED,
    PARTIAL,
    PIP430,
    REFUSED,
    STORAGE,
    STORAGE_COPY,
    CacheArrays,
)
from headgate.core.kernels.compiled import inner


@inner
def size_of(c: CacheArrays, row: int64, offset: int64) -> int64:
    """The size of an entry of a row."""
    return c.sizes[c.rows[row].first_size + (offset if c.rows[row].has_sizes != 0 else 0)]


@inner
def put(c: CacheArrays, row: int64, place: int64, source: int64) -> int64:
    """Cache an entry of a row at a free position, as far as cursors decide; NONE where it is refused.

    Belady admits what is read again, and needs no cursors.
    """
    limits, state = c.state[0], c.state[0]
    space, number, size = int64(c.rows[row].space), c.rows[row].entry + place, size_of(c, row, place)
    upcoming, reason = int64(0), int64(REFUSED)
    if limits.policy == PIP430:
        has_room = limits.max_bytes > 0
    elif limits.policy == DISTANCE:
        has_room = size <= limits.max_bytes
    elif limits.policy == BELADY:
        upcoming = next_read(c, place)
        has_room = upcoming > 0 and make_room(c, size, upcoming)
        if upcoming == 0 or limits.max_bytes > 0:
            reason = int64(NOT_ADMITTED)
    else:
        has_room = make_room(c, size, int64(0))
    if not has_room:
        note_at(c, space, number, reason)
        return int64(NONE)
    entry = insert(c, space, number, size, c.rows[row].t_us, source)
    if limits.policy == BELADY:
        hold(c, entry, upcoming)
    if (limits.policy == PIP430 and state.current_bytes > limits.trigger_bytes) or (
        limits.policy == DISTANCE and state.current_bytes > limits.max_bytes
    ):
        state.is_over = 1
    return entry


@inner
def read(c: CacheArrays, row: int64) -> int64:
    """A range of one ledger is read; NONE, or why it is refused."""
    space, first, count, cursor = (
        int64(c.rows[row].space),
        c.rows[row].entry,
        int64(c.rows[row].count),
        int64(c.rows[row].cursor),
    )
    if c.spaces[space].is_deleted != 0:
        return int64(LEDGER_DELETED)
    is_registered = c.cursors[cursor].registration != 0
    if is_registered:
        wake(c, cursor, c.rows[row].t_us)
        move(c, cursor, space, first)
    note_end(c, space, first + count - 1)
    present = look_up(c, space, first, count)
    if present == count:
        _hit(c, row, count)
        _free_copies(c, count)
    else:
        _miss(c, row, present)
    if is_registered:
        move(c, cursor, space, first + count)
    return int64(NONE)


@inner
def replay_read(c: CacheArrays, row: int64) -> int64:
    """One position is read again; NONE, or why it is refused."""
    space, number, cursor = int64(c.rows[row].space), c.rows[row].entry, int64(c.rows[row].cursor)
    if c.spaces[space].is_deleted != 0:
        return int64(LEDGER_DELETED)
    topic = c.topics[c.spaces[space].topic]
    mark = mark_of(c, cursor, space, number)
    if mark != NONE:
        topic.replay_delay_us = (4 * topic.replay_delay_us + c.rows[row].t_us - c.marks[mark].at_us) // 5
        remove_mark(c, mark)
    note_end(c, space, number)
    if look_up(c, space, number, int64(1)) == 1:
        _hit(c, row, int64(1))
        _free_copies(c, int64(1))
        return int64(NONE)
    _count_misses(c, row, c.state[0].is_whole < 0)
    if c.state[0].policy == PIP430 or (c.state[0].policy == DISTANCE and not _is_awaited(c, space, number)):
        note_at(c, space, number, NOT_ADMITTED)
    else:
        put(c, row, int64(0), STORAGE)
    return int64(NONE)


@inner
def _is_awaited(c: CacheArrays, space: int64, number: int64) -> bool:
    """Whether a tracked cursor is at a position or before it, or any has it in its replay queue."""
    return is_behind(c, slowest(c, c.spaces[space].topic, NONE), space, number) or is_marked(c, space, number, NONE)


@inner
def is_behind(c: CacheArrays, cursor: int64, space: int64, number: int64) -> bool:
    """Whether a cursor, if it is one, is at a position or before it."""
    if cursor == NONE:
        return False
    return is_at_most(c.cursors[cursor].read_ledger, c.cursors[cursor].read_entry, c.spaces[space].ledger, number)


@inner
def _hit(c: CacheArrays, row: int64, count: int64) -> None:
    """All that was looked up counts as found."""
    hit_bytes = int64(0)
    for place in range(count):
        hit_bytes += c.entries[c.found[place]].size
    topic = c.topics[c.rows[row].topic]
    topic.hits += count
    topic.hit_bytes += hit_bytes
    c.rows[row].hits = count
    _touch(c, count)


@inner
def _touch(c: CacheArrays, count: int64) -> None:
    """What was found was accessed, in the order of positions."""
    policy = c.state[0].policy
    if policy == DISTANCE or policy == FIFO:  # noqa: PLR1714, SIM109  a tuple compiles longer
        return
    for place in range(count):
        entry = int64(c.found[place])
        if entry != NONE:
            c.entries[entry].accessed = 1
            if policy == LRU:
                renew(c, entry)
            elif policy == BELADY:
                _read_on(c, entry, next_read(c, place))


@inner
def _read_on(c: CacheArrays, entry: int64, upcoming: int64) -> None:
    """Note the next read of an entry; after its last one it leaves."""
    if upcoming == 0:
        remove(c, entry, DROPPED)
    else:
        expect(c, entry, upcoming)


@inner
def _free_copies(c: CacheArrays, count: int64) -> None:
    """The copies of what was found are freed: one read less is expected."""
    if c.state[0].policy == PIP430:
        for place in range(count):
            entry = c.found[place]
            if entry != NONE:
                c.entries[entry].count -= int64(c.entries[entry].is_handled)


@inner
def _miss(c: CacheArrays, row: int64, present: int64) -> None:
    """A range of which some entries, or all, are absent."""
    count, is_whole = int64(c.rows[row].count), c.state[0].is_whole != 0
    _count_misses(c, row, is_whole)
    if not is_whole:
        topic = c.topics[c.rows[row].topic]
        c.rows[row].hits = present
        topic.hits += present
        for place in range(count):
            if c.found[place] != NONE:
                topic.hit_bytes += c.entries[c.found[place]].size
    _touch(c, count)
    if c.state[0].policy == PIP430:
        _fetch_expected(c, row, is_whole)
    else:
        _fetch(c, row)


@inner
def _count_misses(c: CacheArrays, row: int64, is_whole: bool) -> None:
    """Misses, what they cost of the storage, and why they were."""
    space, first, topic = int64(c.rows[row].space), c.rows[row].entry, c.topics[c.rows[row].topic]
    was_missed = False
    for place in range(int64(c.rows[row].count)):
        is_absent = c.found[place] == NONE
        is_missed = is_whole or is_absent
        if is_missed:
            c.counts[MISSES, reason_of(c, space, first + place) if is_absent else PARTIAL] += 1
            topic.misses += 1
            topic.storage_bytes += size_of(c, row, place)
            topic.storage_ops += int64(not was_missed)
            c.rows[row].misses += 1
        was_missed = is_missed


@inner
def _fetch(c: CacheArrays, row: int64) -> None:
    """Insert the absent entries that the policy admits."""
    space, first, count = int64(c.rows[row].space), c.rows[row].entry, int64(c.rows[row].count)
    cursor, is_picky = int64(c.rows[row].cursor), c.state[0].policy == DISTANCE
    other = slowest(c, c.spaces[space].topic, cursor) if is_picky else int64(NONE)
    source = STORAGE_COPY if count > 1 else STORAGE
    for place in range(count):
        number = first + place
        if c.found[place] == NONE:
            if is_picky and not (is_behind(c, other, space, number) or is_marked(c, space, number, cursor)):
                note_at(c, space, number, NOT_ADMITTED)
            else:
                put(c, row, place, source)


@inner
def _fetch_expected(c: CacheArrays, row: int64, is_whole: bool) -> None:
    """Insert absent entries, expected by those at the reader's position or behind it, and free the copies."""
    space, first, count = int64(c.rows[row].space), c.rows[row].entry, int64(c.rows[row].count)
    expected = rank(c, int64(c.rows[row].topic), int64(c.rows[row].cursor))
    source = STORAGE_COPY if count > 1 else STORAGE
    for place in range(count):
        entry, number = int64(c.found[place]), first + place
        if entry != NONE:
            if not is_whole:
                c.entries[entry].count -= int64(c.entries[entry].is_handled)
            elif expected > 0 and c.state[0].adopts != 0:
                c.entries[entry].is_handled, c.entries[entry].count = 1, expected - 1
        elif expected == 0:
            note_at(c, space, number, NOT_ADMITTED)
        else:
            entry = put(c, row, place, source)
            if entry != NONE:
                c.entries[entry].is_handled, c.entries[entry].count = 1, expected - 1
