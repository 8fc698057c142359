"""Rows in order through the arrays of one broker (entry-cache 4)."""

from numpy import int64

from headgate.core.kernels.cache.policies import queue
from headgate.core.kernels.cache.policies.capped import make_room
from headgate.core.kernels.cache.policies.distance import evict_farthest, note_change, sweep
from headgate.core.kernels.cache.policies.farthest import pass_row
from headgate.core.kernels.cache.reading import read, replay_read
from headgate.core.kernels.cache.steps import add, ledger_delete, replay_add, step_cursor, topic_clear
from headgate.core.kernels.cache.types import (
    ADD,
    AT_CONF,
    BELADY,
    CONF,
    DISTANCE,
    DONE,
    LATE,
    LEDGER_DELETE,
    LETTERS,
    NEEDS_ROOM,
    NEVER,
    NONE,
    PAGE_BITS,
    PIP430,
    READ,
    REPLAY_ADD,
    REPLAY_READ,
    TOPIC_CLEAR,
    UNKNOWN_COPY,
    CacheArrays,
)
from headgate.core.kernels.compiled import inner, kernel


@kernel
def run(c: CacheArrays, first: int64) -> int64:
    """Take rows from `first` on; the place where it stops, `status` says why.

    At a row of kind conf the clock has moved to it: the caller changes the limits, calls `settle_limits`, and goes on
    behind it. A row that needs room comes again.
    """
    c.state[0].status = DONE
    for row in range(first, c.rows.size):
        if not _has_room(c, int64(c.rows[row].count)):
            c.state[0].status = NEEDS_ROOM
            return int64(row)
        dead = _feed(c, row)
        c.rows[row].dead = dead
        if dead != NONE:
            c.counts[LETTERS, dead] += 1
        c.rows[row].removed = c.state[0].logged
        if c.state[0].policy == BELADY:
            pass_row(c, row)
        if c.rows[row].kind == CONF and dead == NONE:
            c.state[0].status = AT_CONF
            return int64(row)
    return int64(c.rows.size)


@kernel
def advance(c: CacheArrays, t_us: int64) -> None:
    """Run the ticks up to a time; rows before it are late from now on. A time that has passed does nothing."""
    if t_us > c.state[0].now_us:
        _tick(c, t_us)
        c.state[0].now_us = t_us
        c.state[0].seq = -1


@kernel
def settle_limits(c: CacheArrays, now_us: int64) -> None:
    """The limits were changed by a row: a lower one of bytes holds at once, or for pip430 from the next tick on."""
    policy, state = c.state[0].policy, c.state[0]
    if policy == PIP430:
        queue.plan(c, now_us)
    elif policy == DISTANCE:
        state.is_over = int64(state.current_bytes > c.state[0].max_bytes)
    else:
        make_room(c, int64(0), int64(0))
    _end_row(c, now_us)


@inner
def _has_room(c: CacheArrays, count: int64) -> bool:
    """Whether a row of so many entries cannot fill a pool, whatever it does."""
    state, memory = c.state[0], c.state[0].memory
    cached = state.entries + count
    notes = min(state.notes + cached, (state.places + 1) * memory) + 1
    return (
        cached <= c.entries.size
        and state.pages + (count >> PAGE_BITS) + 2 <= c.pages.size
        and state.marks + count <= c.marks.size
        and (memory == 0 or notes <= c.notes.size)
        and state.chunks + count <= c.chunks.size
        and (c.state[0].is_logged == 0 or state.logged + cached <= c.removed.size)
    )


@inner
def _feed(c: CacheArrays, row: int64) -> int64:
    """Take one row: the ticks before it, what it says, the size pass after it; NONE, or why it is refused."""
    state, t_us, kind = c.state[0], c.rows[row].t_us, int64(c.rows[row].kind)
    c.rows[row].hits, c.rows[row].misses = 0, 0
    if kind < 0:
        return NONE - kind
    if t_us < state.now_us or (t_us == state.now_us and c.rows[row].seq <= state.seq):
        return int64(LATE)
    if state.due_us <= t_us:
        _tick(c, t_us)
    state.now_us, state.seq = t_us, c.rows[row].seq
    if kind == CONF:
        return int64(NONE)
    topic = int64(c.rows[row].topic)
    if c.topics[topic].place == NONE:
        _create(c, topic, t_us)
    dead = _step(c, row, kind)
    if dead == NONE:
        c.topics[topic].last_row_us = t_us
    if c.state[0].policy == DISTANCE:
        note_change(c, topic, t_us)
    if dead == NONE:
        _end_row(c, t_us)
    return dead


@inner
def _tick(c: CacheArrays, t_us: int64) -> None:
    """Run every tick up to a time that can change anything."""
    while c.state[0].due_us <= t_us:
        if c.state[0].policy == PIP430:
            queue.tick(c, c.state[0].due_us)
        elif c.state[0].policy == DISTANCE:
            sweep(c, c.state[0].due_us)
        else:
            c.state[0].due_us = NEVER


@inner
def _create(c: CacheArrays, topic: int64, now_us: int64) -> None:
    """The first row of a topic."""
    state = c.state[0]
    of = c.topics[topic]
    of.place, of.last_removal_us, of.last_row_us = state.places, now_us, now_us
    c.topics[state.places].placed = topic
    state.places += 1


@inner
def _step(c: CacheArrays, row: int64, kind: int64) -> int64:
    if kind == READ:
        return read(c, row)
    if kind == ADD:
        return add(c, row)
    if kind == REPLAY_ADD:
        return replay_add(c, row)
    if kind == REPLAY_READ:
        return replay_read(c, row)
    if kind < READ:
        return step_cursor(c, row, kind)
    if kind == LEDGER_DELETE:
        return ledger_delete(c, row)
    if kind == TOPIC_CLEAR:
        return topic_clear(c, row)
    return int64(UNKNOWN_COPY)


@inner
def _end_row(c: CacheArrays, now_us: int64) -> None:
    """The size pass of a row, and the peak: before it, or after it under a hard cap."""
    state, policy = c.state[0], c.state[0].policy
    if policy == PIP430 and state.head != NONE and state.due_us == NEVER:
        state.due_us = queue.next_tick_us(c, c.entries[state.head].ts_us + c.state[0].ttl_us)
    if state.is_over == 0:
        _note_peak(c)
        return
    state.is_over = 0
    if policy == PIP430:
        _note_peak(c)
        queue.size_pass(c, now_us)
    else:
        evict_farthest(c, now_us)
        _note_peak(c)


@inner
def _note_peak(c: CacheArrays) -> None:
    state = c.state[0]
    if state.current_bytes > state.peak_bytes:
        state.peak_bytes = state.current_bytes
        state.overshoot_bytes = max(int64(0), state.current_bytes - c.state[0].max_bytes)
