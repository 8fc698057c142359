"""Policies under a hard cap, which evict one by one before each insertion: lru, fifo, sieve, belady (10.1, 10.4)."""

from numpy import int64

from headgate.core.kernels.cache.policies.farthest import farthest
from headgate.core.kernels.cache.store import remove
from headgate.core.kernels.cache.types import BELADY, EVICTED, NONE, SIEVE, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def make_room(c: CacheArrays, size: int64, upcoming: int64) -> bool:
    """Evict until an entry fits; False, and nothing evicted, for one that is larger than the limit.

    upcoming: its next read, for belady, which evicts nothing that is read before it: False there, too.
    """
    limit_bytes = c.state[0].max_bytes
    if size > limit_bytes:
        return False
    while c.state[0].current_bytes + size > limit_bytes:
        if c.state[0].policy == BELADY and c.entries[farthest(c)].count < upcoming:
            return False
        _evict_one(c)
    return True


@inner
def _evict_one(c: CacheArrays) -> None:
    policy, victim = c.state[0].policy, c.state[0].head
    if policy == SIEVE:
        victim = _spare(c)
    elif policy == BELADY:
        victim = farthest(c)
    c.state[0].visits += 1
    remove(c, victim, EVICTED)


@inner
def _spare(c: CacheArrays) -> int64:
    """Walk on from the hand, clear bits, and leave it on the first entry without one."""
    state = c.state[0]
    entry = state.head if state.hand == NONE else state.hand
    while c.entries[entry].accessed != 0:
        state.visits += 1
        c.entries[entry].accessed = 0
        newer = int64(c.entries[entry].newer)
        entry = state.head if newer == NONE else newer
    state.hand = entry
    return entry
