"""The one order that entries are in: the removal queue of pip430, or that of insertion or use (entry-cache 6, 10.1)."""

from numpy import int64

from headgate.core.kernels.cache.types import NONE, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def append(c: CacheArrays, entry: int64) -> None:
    """Make an entry the newest."""
    state = c.state[0]
    tail = state.tail
    c.entries[entry].older, c.entries[entry].newer = tail, NONE
    if tail == NONE:
        state.head = entry
    else:
        c.entries[tail].newer = entry
    state.tail = entry


@inner
def unlink(c: CacheArrays, entry: int64) -> None:
    """Take an entry out; a hand that is on it goes to the next newer one."""
    state = c.state[0]
    older, newer = c.entries[entry].older, c.entries[entry].newer
    if state.hand == entry:
        state.hand = newer
    if older == NONE:
        state.head = newer
    else:
        c.entries[older].newer = newer
    if newer == NONE:
        state.tail = older
    else:
        c.entries[newer].older = older


@inner
def renew(c: CacheArrays, entry: int64) -> None:
    """Make an entry that is in the order the newest."""
    if c.state[0].tail != entry:
        unlink(c, entry)
        append(c, entry)


@inner
def sort_ids(c: CacheArrays, count: int64) -> None:
    """Sort the first `ids` by their `keys`, which are not negative; equal keys keep their order."""
    highest = int64(0)
    for i in range(count):
        highest |= c.sorting[i].key
    shift = int64(0)
    while shift < 64 and highest >> shift != 0:
        _sort_by_byte(c, count, shift)
        shift += 8


@inner
def _sort_by_byte(c: CacheArrays, count: int64, shift: int64) -> None:
    """One round of a radix sort. `starts` is the end of `found`, which no sort needs."""
    starts = c.found.size - 257
    for i in range(257):
        c.found[starts + i] = 0
    for i in range(count):
        c.found[starts + 1 + ((c.sorting[i].key >> shift) & 255)] += 1
    for i in range(256):
        c.found[starts + 1 + i] += c.found[starts + i]
    for i in range(count):
        at = starts + ((c.sorting[i].key >> shift) & 255)
        c.sorting[c.found[at]].spare_key, c.sorting[c.found[at]].spare_id = c.sorting[i].key, c.sorting[i].id
        c.found[at] += 1
    for i in range(count):
        c.sorting[i].key, c.sorting[i].id = c.sorting[i].spare_key, c.sorting[i].spare_id
