"""Insertions and removals of entries, and all that is accounted to them (entry-cache 1, 7, 11, 13)."""

from numpy import int64

from headgate.core.kernels.cache.notes import forget, note
from headgate.core.kernels.cache.order import append, unlink
from headgate.core.kernels.cache.pages import LAST, bit, page_of, settle
from headgate.core.kernels.cache.policies.farthest import let_go
from headgate.core.kernels.cache.receiving import receive, release
from headgate.core.kernels.cache.types import BELADY, NONE, PRODUCER, REMOVALS, STORAGE_COPY, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def insert(c: CacheArrays, space: int64, number: int64, size: int64, now_us: int64, source: int64) -> int64:
    """Cache an entry at a position that is free, without a handler and as the newest; returns its place.

    With belady there is no order: the caller puts it into the heap.
    """
    entry = _free_place(c)
    page = page_of(c, space, number)
    of = c.entries[entry]
    of.number, of.ts_us, of.size, of.count, of.requeues = number, now_us, size, 0, 0
    of.space, of.page, of.accessed, of.is_handled = space, page, 0, 0
    c.slots[page, number & LAST] = entry
    c.pages[page].cached |= bit(number)
    topic = c.spaces[space].topic
    limits = c.state[0]
    if limits.copies_all != 0 or (limits.copies_reads != 0 and source == STORAGE_COPY):
        of.chunk = NONE
        c.topics[topic].own_bytes += size
    else:
        of.chunk = receive(c, 2 * topic + int64(source != PRODUCER), size, now_us)
    if limits.memory > 0:
        forget(c, page, number)
    if limits.policy != BELADY:
        append(c, entry)
    c.topics[topic].bytes += size
    c.topics[topic].entries += 1
    c.state[0].current_bytes += size
    c.state[0].inserted += 1
    return entry


@inner
def remove(c: CacheArrays, entry: int64, cause: int64) -> None:
    """Take a cached entry out, and remember why."""
    of = c.entries[entry]
    number, space, page, size = of.number, int64(of.space), int64(of.page), of.size
    topic = c.spaces[space].topic
    if c.state[0].policy == BELADY:
        let_go(c, entry)
    else:
        unlink(c, entry)
    c.slots[page, number & LAST] = NONE
    c.pages[page].cached &= ~bit(number)
    if c.state[0].memory > 0:
        note(c, page, space, number, cause)
    if of.chunk == NONE:
        c.topics[topic].own_bytes -= size
    else:
        release(c, int64(of.chunk))
    c.topics[topic].bytes -= size
    c.topics[topic].entries -= 1
    c.counts[REMOVALS, cause] += 1
    _free(c, entry, size)
    if c.state[0].is_logged != 0:
        left = c.removed[c.state[0].logged]
        left.space, left.number, left.cause = space, number, cause
        c.state[0].logged += 1
    settle(c, page)


@inner
def _free_place(c: CacheArrays) -> int64:
    state = c.state[0]
    state.entries += 1
    entry = state.free_entry
    if entry == NONE:
        entry = state.entry_end
        state.entry_end += 1
    else:
        state.free_entry = c.entries[entry].newer
    return entry


@inner
def _free(c: CacheArrays, entry: int64, size: int64) -> None:
    state = c.state[0]
    state.entries -= 1
    state.current_bytes -= size
    c.entries[entry].newer = state.free_entry
    state.free_entry = entry
