"""Lanes of cursor_distance: the entries between two cursor positions, of which the highest is read last (10.3)."""

from typing import Any

from numpy import int64, uint64

from headgate.core.kernels.cache.cursors import is_at_most
from headgate.core.kernels.cache.pages import NOTHING, ONE
from headgate.core.kernels.cache.types import NEVER, NONE, PAGE_BITS, PAGE_ENTRIES, CacheArrays
from headgate.core.kernels.compiled import inner

SILENT_INTERVALS = 4
FARTHEST_US = 1 << 61


@inner
def list_lanes(c: CacheArrays, now_us: int64) -> int64:
    """Make the lanes of all topics, those without an entry left out; how many there are. `heap` lists them."""
    lanes, approaches = int64(0), int64(0)
    for place in range(c.state[0].places):
        topic = int64(c.topics[place].placed)
        if c.topics[topic].entries > 0:
            end = _list_approaches(c, topic, approaches, now_us)
            lanes = _list_lanes_of(c, topic, approaches, end, lanes)
            approaches = end
    return lanes


@inner
def _list_approaches(c: CacheArrays, topic: int64, first: int64, now_us: int64) -> int64:
    """The tracked cursors of a topic as `approaches` from `first` on, the highest position first; where they end."""
    end = first
    cursor = c.topics[topic].first_cursor
    while cursor != NONE:
        of = c.cursors[cursor]
        if of.is_tracked != 0:
            silence_us, interval_us = now_us - of.last_wake_us, of.interval_us
            to = c.approaches[end]
            to.ledger, to.entry, to.registration = of.read_ledger, of.read_entry, of.registration
            is_silent = silence_us > SILENT_INTERVALS * interval_us
            to.wait_us = silence_us if is_silent else max(int64(0), interval_us - silence_us)
            to.ordinal, to.interval_us = c.spaces[of.read_space].start + of.read_entry, interval_us
            end += 1
        cursor = of.after
    _sort(c, first, end)
    return end


@inner
def _sort(c: CacheArrays, first: int64, end: int64) -> None:
    """Shell's sort: few cursors are in order quickly, and many do not take for ever."""
    gap: Any = int64(1)
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for start in range(first + gap, end):
            at = start
            while at - gap >= first and _comes_first(c, at, at - gap):
                _swap(c, at, at - gap)
                at -= gap
        gap //= 3


@inner
def _comes_first(c: CacheArrays, place: int64, other: int64) -> bool:
    one, two = c.approaches[place], c.approaches[other]
    if one.ledger != two.ledger:
        return one.ledger > two.ledger
    if one.entry != two.entry:
        return one.entry > two.entry
    return one.registration < two.registration


@inner
def _swap(c: CacheArrays, place: int64, other: int64) -> None:
    one, two = c.approaches[place], c.approaches[other]
    one.ledger, two.ledger = two.ledger, one.ledger
    one.entry, two.entry = two.entry, one.entry
    one.registration, two.registration = two.registration, one.registration
    one.wait_us, two.wait_us = two.wait_us, one.wait_us
    one.ordinal, two.ordinal = two.ordinal, one.ordinal
    one.interval_us, two.interval_us = two.interval_us, one.interval_us


@inner
def _list_lanes_of(c: CacheArrays, topic: int64, first: int64, end: int64, lanes: int64) -> int64:
    """The lanes of a topic, from the highest position down; how many there are then in all."""
    page, below = c.topics[topic].last_page, int64(PAGE_ENTRIES)
    farthest_us = int64(NEVER) if end > first else c.state[0].grace_us
    at = first
    while page != NONE:
        group_end = at
        while group_end < end and _are_level(c, at, group_end):
            group_end += 1
        near = min(c.state[0].look, end - at) if at < end else 0
        for replayed in range(2):
            of = c.lanes[lanes]
            of.place, of.page, of.below, of.replayed = c.topics[topic].place, page, below, replayed
            of.first, of.near, of.nears = (at if at < end else NONE), at, near
            of.cap_us = min(farthest_us, c.topics[topic].replay_delay_us) if replayed != 0 else farthest_us
            if candidate(c, lanes):
                c.lanes[lanes].heaped = lanes
                lanes += 1
        if at == end:
            break
        page, below = _down_to(c, page, below, at)
        at = group_end
    return lanes


@inner
def _are_level(c: CacheArrays, place: int64, other: int64) -> bool:
    one, two = c.approaches[place], c.approaches[other]
    return one.ledger == two.ledger and one.entry == two.entry


@inner
def _down_to(c: CacheArrays, page: int64, below: int64, at: int64) -> tuple[Any, Any]:
    """From a page down to the highest one with a position before the approach, and how many places of it are."""
    end = c.approaches[at]
    while page != NONE:
        ledger, first = c.spaces[c.pages[page].space].ledger, c.pages[page].number << PAGE_BITS
        if not is_at_most(end.ledger, end.entry, ledger, first):
            if ledger == end.ledger:
                below = min(below, end.entry - first)
            return page, below
        page, below = int64(c.pages[page].before), int64(PAGE_ENTRIES)
    return int64(NONE), below


@inner
def candidate(c: CacheArrays, lane: int64) -> bool:
    """Go down to the next entry of a lane and score it; False where there is none any more."""
    of = c.lanes[lane]
    page, below = of.page, of.below
    while page != NONE:
        pages = c.pages[page]
        if of.first != NONE and _is_before(c, page, below, of.first):
            break
        held = pages.cached & (pages.marked if of.replayed != 0 else ~pages.marked)
        if below < PAGE_ENTRIES:
            held &= (ONE << uint64(below)) - ONE
        if held != NOTHING:
            below = _highest(held)
            of.page, of.below, of.entry = page, below, c.slots[page, below]
            if of.first != NONE and _is_before(c, page, below + 1, of.first):
                break
            of.next_us = _next_us(c, lane)
            return True
        page, below = int64(pages.before), int64(PAGE_ENTRIES)
    of.page = NONE
    return False


@inner
def _is_before(c: CacheArrays, page: int64, below: int64, at: int64) -> bool:
    """Whether the first `below` positions of a page all come before an approach."""
    end = c.approaches[at]
    last = (c.pages[page].number << PAGE_BITS) + below - 1
    return not is_at_most(end.ledger, end.entry, c.spaces[c.pages[page].space].ledger, last)


@inner
def _highest(bits: uint64) -> int64:
    """The number of the highest bit that is set."""
    number = int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if bits >> uint64(step) != NOTHING:
            bits >>= uint64(step)
            number += step
    return number


@inner
def _next_us(c: CacheArrays, lane: int64) -> int64:
    """How long until the candidate is read; where no number can tell, the state notes that."""
    of = c.lanes[lane]
    entry = c.entries[of.entry]
    ordinal, batch, next_us = c.spaces[entry.space].start + entry.number, c.state[0].batch, of.cap_us
    for place in range(of.near, of.near + of.nears):
        to = c.approaches[place]
        ahead = ordinal - to.ordinal
        if abs(float(ahead)) * float(to.interval_us) < FARTHEST_US:
            next_us = min(next_us, to.wait_us + ahead * to.interval_us // batch)
        else:
            c.state[0].is_beyond = 1
    return next_us
