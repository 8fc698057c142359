"""Pages of 64 positions: found by hash, listed by topic, gone with what they hold (entry-cache 3)."""

from typing import Any

import numpy as np
from numpy import int64, uint64

from headgate.core.kernels.cache.types import DISTANCE, MARKED, NONE, NOTED, PAGE_BITS, PAGE_ENTRIES, CacheArrays
from headgate.core.kernels.compiled import inner

SPREAD = np.int64(-0x61C8864680B583EB)
MIX = np.int64(-0x40A7B892E31B1A47)
LAST = PAGE_ENTRIES - 1
NOTHING = np.uint64(0)
ONE = np.uint64(1)


@inner
def bit(number: int64) -> Any:
    """The bit of a position in its page."""
    return ONE << uint64(number & LAST)


@inner
def bucket(c: CacheArrays, space: int64, number: int64) -> int64:
    mixed = (int64(number) ^ (int64(space) * SPREAD)) * MIX
    return (mixed ^ (mixed >> 32)) & (c.table.size - 1)


@inner
def find(c: CacheArrays, space: int64, number: int64) -> int64:
    """The page with this number, which is of 64 positions; NONE where nothing is known of them."""
    page = int64(c.table[bucket(c, space, number)])
    while page != NONE and (c.pages[page].number != number or c.pages[page].space != space):
        page = int64(c.pages[page].same)
    return page


@inner
def page_of(c: CacheArrays, space: int64, number: int64) -> int64:
    """The page of an entry number, made where there is none. One that was asked for last is found at once."""
    page = c.state[0].page
    at = number >> PAGE_BITS
    if page != NONE and c.pages[page].number == at and c.pages[page].space == space:
        return page
    page = find(c, space, at)
    if page == NONE:
        page = make(c, space, at)
    c.state[0].page = page
    return page


@inner
def make(c: CacheArrays, space: int64, number: int64) -> int64:
    state = c.state[0]
    page = state.free_page
    if page == NONE:
        page = state.page_end
        state.page_end += 1
    else:
        state.free_page = c.pages[page].same
    state.pages += 1
    made = c.pages[page]
    made.number, made.space = number, space
    made.cached, made.marked, made.noted = NOTHING, NOTHING, NOTHING
    for place in range(PAGE_ENTRIES):
        c.slots[page, place] = NONE
        c.slots[page, MARKED + place] = NONE
        if c.state[0].memory > 0:
            c.slots[page, NOTED + place] = NONE
    chain(c, page)
    link(c, c.spaces[space].topic, page)
    return page


@inner
def chain(c: CacheArrays, page: int64) -> None:
    """Make a page findable."""
    at = bucket(c, int64(c.pages[page].space), c.pages[page].number)
    c.pages[page].same = c.table[at]
    c.table[at] = page


@inner
def link(c: CacheArrays, topic: int64, page: int64) -> None:
    """List a page in its topic: the last, or with cursor_distance in its place."""
    before = c.topics[topic].last_page
    if c.state[0].policy == DISTANCE:
        neighbour = find(c, int64(c.pages[page].space), c.pages[page].number - 1)
        if neighbour != NONE:
            before = neighbour
        while before != NONE and is_behind(c, page, before):
            before = int64(c.pages[before].before)
    after = int64(c.pages[before].after) if before != NONE else c.topics[topic].first_page
    c.pages[page].before, c.pages[page].after = before, after
    if before == NONE:
        c.topics[topic].first_page = page
    else:
        c.pages[before].after = page
    if after == NONE:
        c.topics[topic].last_page = page
    else:
        c.pages[after].before = page


@inner
def is_behind(c: CacheArrays, page: int64, other: int64) -> bool:
    """Whether the positions of a page are lower than those of another one of its topic."""
    ledger, others = c.spaces[c.pages[page].space].ledger, c.spaces[c.pages[other].space].ledger
    return ledger < others or (ledger == others and c.pages[page].number < c.pages[other].number)


@inner
def settle(c: CacheArrays, page: int64) -> None:
    """Free a page that holds nothing any more. Its `before` stays: a pass may still be going down from it."""
    if (c.pages[page].cached | c.pages[page].marked | c.pages[page].noted) != NOTHING:
        return
    unchain(c, page)
    topic, before, after = c.spaces[c.pages[page].space].topic, c.pages[page].before, c.pages[page].after
    if before == NONE:
        c.topics[topic].first_page = after
    else:
        c.pages[before].after = after
    if after == NONE:
        c.topics[topic].last_page = before
    else:
        c.pages[after].before = before
    state = c.state[0]
    c.pages[page].same = state.free_page
    state.free_page = page
    state.pages -= 1
    if state.page == page:
        state.page = NONE


@inner
def unchain(c: CacheArrays, page: int64) -> None:
    at = bucket(c, int64(c.pages[page].space), c.pages[page].number)
    if c.table[at] == page:
        c.table[at] = c.pages[page].same
        return
    before = c.table[at]
    while c.pages[before].same != page:
        before = c.pages[before].same
    c.pages[before].same = c.pages[page].same


@inner
def look_up(c: CacheArrays, space: int64, first: int64, count: int64) -> int64:
    """Put the entries of a range into `found`, NONE for those that are absent; how many are present."""
    present, done = int64(0), int64(0)
    while done < count:
        number = first + done
        end = min(count, done + PAGE_ENTRIES - (number & LAST))
        page = find(c, space, number >> PAGE_BITS)
        if page == NONE:
            for place in range(done, end):
                c.found[place] = NONE
        else:
            shift = (number & LAST) - done
            for place in range(done, end):
                entry = c.slots[page, place + shift]
                c.found[place] = entry
                present += int64(entry != NONE)
        done = end
    return present


@inner
def rehash(c: CacheArrays) -> None:
    """Make all pages findable in a new table."""
    for at in range(c.table.size):
        c.table[at] = NONE
    for place in range(c.state[0].places):
        page = c.topics[c.topics[place].placed].first_page
        while page != NONE:
            chain(c, page)
            page = int64(c.pages[page].after)
