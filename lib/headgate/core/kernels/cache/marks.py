"""What cursors will read again: positions in their replay queues (entry-cache 3, 5.3)."""

from numpy import int64

from headgate.core.kernels.cache.pages import LAST, bit, find, page_of, settle
from headgate.core.kernels.cache.types import MARKED, NONE, PAGE_BITS, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def mark_of(c: CacheArrays, cursor: int64, space: int64, number: int64) -> int64:
    """The mark that a cursor has on a position, NONE for none."""
    page = find(c, space, number >> PAGE_BITS)
    if page == NONE:
        return int64(NONE)
    mark = int64(c.slots[page, MARKED + (number & LAST)])
    while mark != NONE and c.marks[mark].cursor != cursor:
        mark = int64(c.marks[mark].same)
    return mark


@inner
def is_marked(c: CacheArrays, space: int64, number: int64, but: int64) -> bool:
    """Whether a cursor other than `but` has a mark on the position."""
    page = find(c, space, number >> PAGE_BITS)
    if page == NONE:
        return False
    mark = int64(c.slots[page, MARKED + (number & LAST)])
    while mark != NONE and c.marks[mark].cursor == but:
        mark = int64(c.marks[mark].same)
    return mark != NONE


@inner
def add_mark(c: CacheArrays, cursor: int64, space: int64, number: int64, now_us: int64) -> None:
    """Mark a position that the cursor has not marked."""
    state = c.state[0]
    state.marks += 1
    mark = state.free_mark
    if mark == NONE:
        mark = state.mark_end
        state.mark_end += 1
    else:
        state.free_mark = c.marks[mark].after
    page = page_of(c, space, number)
    of, its = c.marks[mark], c.cursors[cursor]
    of.at_us, of.number, of.cursor, of.space, of.page = now_us, number, cursor, space, page
    of.same = c.slots[page, MARKED + (number & LAST)]
    c.slots[page, MARKED + (number & LAST)] = mark
    c.pages[page].marked |= bit(number)
    of.before, of.after = its.last_mark, NONE
    if its.last_mark == NONE:
        its.first_mark = mark
    else:
        c.marks[its.last_mark].after = mark
    its.last_mark = mark


@inner
def remove_mark(c: CacheArrays, mark: int64) -> None:
    """Unmark a position."""
    of = c.marks[mark]
    page, number, its = int64(of.page), of.number, c.cursors[of.cursor]
    if of.before == NONE:
        its.first_mark = of.after
    else:
        c.marks[of.before].after = of.after
    if of.after == NONE:
        its.last_mark = of.before
    else:
        c.marks[of.after].before = of.before
    _leave_position(c, mark)
    if c.slots[page, MARKED + (number & LAST)] == NONE:
        c.pages[page].marked &= ~bit(number)
        settle(c, page)
    state = c.state[0]
    of.after = state.free_mark
    state.free_mark = mark
    state.marks -= 1


@inner
def _leave_position(c: CacheArrays, mark: int64) -> None:
    page, place = int64(c.marks[mark].page), c.marks[mark].number & LAST
    if c.slots[page, MARKED + place] == mark:
        c.slots[page, MARKED + place] = c.marks[mark].same
        return
    before = c.slots[page, MARKED + place]
    while c.marks[before].same != mark:
        before = c.marks[before].same
    c.marks[before].same = c.marks[mark].same


@inner
def forget_marks(c: CacheArrays, cursor: int64, space: int64) -> None:
    """Unmark what a cursor has marked in a space; space NONE: everywhere."""
    mark = c.cursors[cursor].first_mark
    while mark != NONE:
        after = int64(c.marks[mark].after)
        if space == NONE or c.marks[mark].space == space:
            remove_mark(c, mark)
        mark = after
