"""What belady goes by: a heap of the cached entries, on top the one that is read last of all (entry-cache 10.4).

The numbers of reads are unique, so no two entries are read at the same time.
"""

from numpy import int64

from headgate.core.kernels.cache.types import ADD, READ, REPLAY_READ, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def next_read(c: CacheArrays, place: int64) -> int64:
    """The number of the next read of an entry of the row at hand, after this row; 0 where none was told."""
    at = c.state[0].told_at + place
    return int64(c.future[at].next) if at < c.state[0].told_end else int64(0)


@inner
def pass_row(c: CacheArrays, row: int64) -> None:
    """The row at hand was taken, or refused: what was told of its entries is the past."""
    kind = int64(c.rows[row].kind)
    if kind == ADD or kind == READ or kind == REPLAY_READ:  # noqa: PLR1714, SIM109  a tuple compiles longer
        c.state[0].told_at += int64(c.rows[row].count)


@inner
def farthest(c: CacheArrays) -> int64:
    """The cached entry that is read last; only where there is one."""
    return int64(c.future[0].heaped)


@inner
def hold(c: CacheArrays, entry: int64, upcoming: int64) -> None:
    """An entry is cached now, until its next read at least."""
    c.entries[entry].count = upcoming
    c.state[0].heaped += 1
    _raise(c, entry, c.state[0].heaped - 1)


@inner
def expect(c: CacheArrays, entry: int64, upcoming: int64) -> None:
    """A cached entry was read: its next read is later than this one was."""
    c.entries[entry].count = upcoming
    _raise(c, entry, int64(c.entries[entry].older))


@inner
def let_go(c: CacheArrays, entry: int64) -> None:
    """An entry is about to leave the cache: the last one of the heap takes its place."""
    c.state[0].heaped -= 1
    last = int64(c.future[c.state[0].heaped].heaped)
    if last != entry:
        _raise(c, last, int64(c.entries[entry].older))
        _sink(c, last, int64(c.entries[last].older))


@inner
def _raise(c: CacheArrays, entry: int64, place: int64) -> None:
    """Put an entry at a place of the heap, or above it where it is read later than what is there."""
    while place > 0:
        above = (place - 1) >> 1
        other = int64(c.future[above].heaped)
        if c.entries[other].count > c.entries[entry].count:
            break
        _set(c, other, place)
        place = above
    _set(c, entry, place)


@inner
def _sink(c: CacheArrays, entry: int64, place: int64) -> None:
    """Move an entry down from its place of the heap, below all that is read later."""
    while True:
        child = 2 * place + 1
        if child >= c.state[0].heaped:
            break
        if child + 1 < c.state[0].heaped and _count_at(c, child + 1) > _count_at(c, child):
            child += 1
        if c.entries[entry].count > _count_at(c, child):
            break
        _set(c, int64(c.future[child].heaped), place)
        place = child
    _set(c, entry, place)


@inner
def _count_at(c: CacheArrays, place: int64) -> int64:
    return int64(c.entries[c.future[place].heaped].count)


@inner
def _set(c: CacheArrays, entry: int64, place: int64) -> None:
    c.future[place].heaped = entry
    c.entries[entry].older = place
