"""Gauges that take time linear in what is cached (entry-cache 13)."""

from numpy import int64

from headgate.core.kernels.cache.cursors import is_at_most, slowest
from headgate.core.kernels.cache.pages import NOTHING, bit
from headgate.core.kernels.cache.types import NONE, PAGE_BITS, PAGE_ENTRIES, CacheArrays
from headgate.core.kernels.compiled import inner, kernel


@kernel
def finished_bytes(c: CacheArrays) -> int64:
    """Bytes of the cached entries that no tracked cursor will read and no cursor has in its replay queue."""
    total = int64(0)
    for place in range(c.state[0].places):
        topic = int64(c.topics[place].placed)
        reader = slowest(c, topic, NONE)
        page = c.topics[topic].first_page
        while page != NONE:
            total += _finished_of(c, page, reader)
            page = int64(c.pages[page].after)
    return total


@inner
def _finished_of(c: CacheArrays, page: int64, reader: int64) -> int64:
    total = int64(0)
    of = c.pages[page]
    ledger, first = c.spaces[of.space].ledger, of.number << PAGE_BITS
    for place in range(PAGE_ENTRIES):
        is_plain = of.cached & ~of.marked & bit(place) != NOTHING
        if is_plain and (reader == NONE or is_before(c, ledger, first + place, reader)):
            total += c.entries[c.slots[page, place]].size
    return total


@inner
def is_before(c: CacheArrays, ledger: int64, number: int64, reader: int64) -> bool:
    """Whether a position is one that a cursor has read."""
    return not is_at_most(c.cursors[reader].read_ledger, c.cursors[reader].read_entry, ledger, number)
