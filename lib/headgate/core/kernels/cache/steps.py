"""What rows that do not read do to a topic and its entries (entry-cache 2, 5). Each returns NONE, or why it refuses."""

from numpy import int64

from headgate.core.kernels.cache.cursors import close_cursor, is_at_most, move, note_end, open_cursor, slowest
from headgate.core.kernels.cache.marks import add_mark, forget_marks, is_marked, mark_of
from headgate.core.kernels.cache.notes import note_at
from headgate.core.kernels.cache.order import sort_ids
from headgate.core.kernels.cache.pages import LAST, NOTHING, bit, find
from headgate.core.kernels.cache.reading import is_behind, put
from headgate.core.kernels.cache.store import remove
from headgate.core.kernels.cache.types import (
    BELADY,
    CLOSE,
    CURSOR_EXISTS,
    DISTANCE,
    INVALIDATED,
    LEDGER_DELETED,
    MARK_DELETE,
    MOVE,
    NONE,
    NOT_ADMITTED,
    NOT_INCREASING,
    OPEN,
    PAGE_BITS,
    PAGE_ENTRIES,
    PIP430,
    PRODUCER,
    UNKNOWN_CURSOR,
    CacheArrays,
)
from headgate.core.kernels.compiled import inner

DELETED_LEDGERS = 1024


@inner
def add(c: CacheArrays, row: int64) -> int64:
    """Entries were published."""
    space, first, count = int64(c.rows[row].space), c.rows[row].entry, int64(c.rows[row].count)
    of, topic = c.spaces[space], c.topics[c.rows[row].topic]
    if of.is_deleted != 0:
        return int64(LEDGER_DELETED)
    if is_at_most(of.ledger, first, topic.added_ledger, topic.added_entry):
        return int64(NOT_INCREASING)
    topic.added_ledger, topic.added_entry = of.ledger, first + count - 1
    note_end(c, space, first + count - 1)
    is_admitted = _is_admitted(c, int64(c.rows[row].topic), c.rows[row].t_us)
    is_picky = c.state[0].policy == DISTANCE and topic.registered > 0
    reader = slowest(c, int64(c.rows[row].topic), NONE) if is_picky else int64(NONE)
    for place in range(count):
        number = first + place
        cached = _cached_at(c, space, number)
        if cached != NONE:
            if is_admitted and c.state[0].policy == PIP430 and c.state[0].adopts != 0:
                _expect(c, cached, topic.registered)
        elif is_admitted and (not is_picky or is_behind(c, reader, space, number) or is_marked(c, space, number, NONE)):
            made = put(c, row, place, PRODUCER)
            if made != NONE and c.state[0].policy == PIP430:
                _expect(c, made, topic.registered)
        else:
            note_at(c, space, number, NOT_ADMITTED)
    return int64(NONE)


@inner
def _is_admitted(c: CacheArrays, topic: int64, now_us: int64) -> bool:
    """Whether added entries are cached: the topic has a cursor, or the last one left a short while ago, or belady."""
    of, limits = c.topics[topic], c.state[0]
    if of.registered > 0 or limits.policy == BELADY:
        return True
    return limits.strategy != 0 and limits.grace_us > 0 and now_us - of.last_removal_us < limits.grace_us


@inner
def _expect(c: CacheArrays, entry: int64, reads: int64) -> None:
    """Give an entry a new handler, none for no reads."""
    c.entries[entry].is_handled, c.entries[entry].count = int64(reads > 0), reads


@inner
def _cached_at(c: CacheArrays, space: int64, number: int64) -> int64:
    page = c.state[0].page
    at = number >> PAGE_BITS
    if page == NONE or c.pages[page].number != at or c.pages[page].space != space:
        page = find(c, space, at)
    return int64(NONE) if page == NONE else int64(c.slots[page, number & LAST])


@inner
def step_cursor(c: CacheArrays, row: int64, kind: int64) -> int64:
    """A row of kind open, move, mark or close."""
    topic, cursor, space = int64(c.rows[row].topic), int64(c.rows[row].cursor), int64(c.rows[row].space)
    is_registered = c.cursors[cursor].registration != 0
    if kind == OPEN:
        if is_registered:
            return int64(CURSOR_EXISTS)
        open_cursor(c, topic, cursor, space, c.rows[row].entry, c.rows[row].t_us)
        return int64(NONE)
    if not is_registered:
        return int64(UNKNOWN_CURSOR)
    if kind == MOVE:
        move(c, cursor, space, c.rows[row].entry)
    elif kind == MARK_DELETE:
        of = c.cursors[cursor]
        of.has_mark, of.mark_ledger, of.mark_entry = 1, c.spaces[space].ledger, c.rows[row].entry + 1
    elif kind == CLOSE:
        forget_marks(c, cursor, NONE)
        close_cursor(c, topic, cursor, c.rows[row].t_us)
    return int64(NONE)


@inner
def replay_add(c: CacheArrays, row: int64) -> int64:
    """Positions come into the replay queue of a cursor."""
    space, first, cursor = int64(c.rows[row].space), c.rows[row].entry, int64(c.rows[row].cursor)
    if c.cursors[cursor].registration == 0:
        return int64(UNKNOWN_CURSOR)
    if c.spaces[space].is_deleted != 0:
        return int64(LEDGER_DELETED)
    for number in range(first, first + int64(c.rows[row].count)):
        if mark_of(c, cursor, space, number) == NONE:
            add_mark(c, cursor, space, number, c.rows[row].t_us)
            cached = _cached_at(c, space, number)
            if cached != NONE:
                c.entries[cached].count += int64(c.entries[cached].is_handled)
    return int64(NONE)


@inner
def ledger_delete(c: CacheArrays, row: int64) -> int64:
    """A ledger is gone, with its entries and marks."""
    topic, space = int64(c.rows[row].topic), int64(c.rows[row].space)
    if c.spaces[space].is_deleted != 0:
        return int64(LEDGER_DELETED)
    _invalidate(c, topic, space)
    cursor = c.topics[topic].first_cursor
    while cursor != NONE:
        forget_marks(c, cursor, space)
        cursor = c.cursors[cursor].after
    c.spaces[space].is_deleted = 1
    c.topics[topic].deleted += 1
    if c.topics[topic].deleted > DELETED_LEDGERS:
        oldest = c.topics[topic].first_space
        while c.spaces[oldest].is_deleted == 0:
            oldest = c.spaces[oldest].after
        c.spaces[oldest].is_deleted = 0
        c.topics[topic].deleted -= 1
    return int64(NONE)


@inner
def topic_clear(c: CacheArrays, row: int64) -> int64:
    """A topic's entries are gone."""
    _invalidate(c, int64(c.rows[row].topic), NONE)
    return int64(NONE)


@inner
def _invalidate(c: CacheArrays, topic: int64, space: int64) -> None:
    """Remove the entries of a space, or for NONE all of a topic, ascending."""
    count = pages_in_order(c, topic, space)
    for place in range(count):
        page = int64(c.sorting[place].id)
        for slot in range(PAGE_ENTRIES):
            if c.pages[page].cached & bit(slot) != NOTHING:
                remove(c, int64(c.slots[page, slot]), INVALIDATED)


@inner
def pages_in_order(c: CacheArrays, topic: int64, space: int64) -> int64:
    """The pages of a space, or for NONE all of a topic, as `ids`, ascending; how many there are."""
    count = int64(0)
    page = c.topics[topic].first_page
    while page != NONE:
        if space == NONE or c.pages[page].space == space:
            c.sorting[count].id, c.sorting[count].key = page, c.pages[page].number
            count += 1
        page = int64(c.pages[page].after)
    sort_ids(c, count)
    for place in range(count):
        c.sorting[place].key = c.spaces[c.pages[c.sorting[place].id].space].ledger
    sort_ids(c, count)
    return count
