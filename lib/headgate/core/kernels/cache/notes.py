"""Why positions are not cached: the last ones of each topic (entry-cache 13)."""

from numpy import int64

from headgate.core.kernels.cache.pages import LAST, NOTHING, bit, find, page_of, settle
from headgate.core.kernels.cache.types import COLD, NONE, NOTED, PAGE_BITS, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def note_at(c: CacheArrays, space: int64, number: int64, reason: int64) -> None:
    """Remember why a position is not cached, as the newest."""
    if c.state[0].memory > 0:
        note(c, page_of(c, space, number), space, number, reason)


@inner
def note(c: CacheArrays, page: int64, space: int64, number: int64, reason: int64) -> None:
    """As `note_at`, on the page of the position."""
    topic = c.spaces[space].topic
    if c.pages[page].noted & bit(number) != NOTHING:
        known = int64(c.slots[page, NOTED + (number & LAST)])
        _unlink(c, topic, known)
    else:
        known = _free_place(c)
        c.pages[page].noted |= bit(number)
        c.slots[page, NOTED + (number & LAST)] = known
        of = c.notes[known]
        of.number, of.space, of.page = number, space, page
    c.notes[known].reason = reason
    _append(c, topic, known)
    if c.topics[topic].notes > c.state[0].memory:
        oldest = c.topics[topic].first_note
        its_page = int64(c.notes[oldest].page)
        forget(c, its_page, c.notes[oldest].number)
        settle(c, its_page)


@inner
def forget(c: CacheArrays, page: int64, number: int64) -> None:
    """The position is cached now."""
    if c.pages[page].noted & bit(number) == NOTHING:
        return
    known = int64(c.slots[page, NOTED + (number & LAST)])
    c.pages[page].noted &= ~bit(number)
    _unlink(c, c.spaces[c.pages[page].space].topic, known)
    state = c.state[0]
    c.notes[known].newer = state.free_note
    state.free_note = known
    state.notes -= 1


@inner
def reason_of(c: CacheArrays, space: int64, number: int64) -> int64:
    """What is remembered of a position."""
    if c.state[0].memory == 0:
        return int64(COLD)
    page = find(c, space, number >> PAGE_BITS)
    if page == NONE or c.pages[page].noted & bit(number) == NOTHING:
        return int64(COLD)
    return int64(c.notes[c.slots[page, NOTED + (number & LAST)]].reason)


@inner
def _free_place(c: CacheArrays) -> int64:
    state = c.state[0]
    state.notes += 1
    known = state.free_note
    if known == NONE:
        known = state.note_end
        state.note_end += 1
    else:
        state.free_note = c.notes[known].newer
    return known


@inner
def _append(c: CacheArrays, topic: int64, known: int64) -> None:
    of = c.topics[topic]
    c.notes[known].older, c.notes[known].newer = of.last_note, NONE
    if of.last_note == NONE:
        of.first_note = known
    else:
        c.notes[of.last_note].newer = known
    of.last_note = known
    of.notes += 1


@inner
def _unlink(c: CacheArrays, topic: int64, known: int64) -> None:
    of = c.topics[topic]
    older, newer = c.notes[known].older, c.notes[known].newer
    if older == NONE:
        of.first_note = newer
    else:
        c.notes[older].newer = newer
    if newer == NONE:
        of.last_note = older
    else:
        c.notes[newer].older = older
    of.notes -= 1
