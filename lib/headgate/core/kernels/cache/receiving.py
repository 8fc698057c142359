"""Receive buffers, which cached entries pin: those of the producer and of storage, by topic (entry-cache 11)."""

from numpy import int64

from headgate.core.kernels.cache.types import BOUNDS, NONE, CacheArrays
from headgate.core.kernels.compiled import inner

STEP_UP = 4


@inner
def receive(c: CacheArrays, buffer: int64, size: int64, now_us: int64) -> int64:
    """The chunk that an entry which is inserted now is a slice of."""
    of = c.buffers[buffer]
    if of.chunk != NONE:
        open_one = c.chunks[of.chunk]
        is_over = now_us - open_one.opened_us > c.state[0].window_us
        if not is_over and open_one.used_bytes + size <= open_one.cap_bytes:
            open_one.used_bytes += size
            open_one.entries += 1
            return of.chunk
        _record(c, buffer, open_one.used_bytes if is_over else open_one.cap_bytes)
    made = _free_place(c)
    chunk = c.chunks[made]
    chunk.buffer, chunk.opened_us, chunk.used_bytes, chunk.entries = buffer, now_us, size, 1
    chunk.cap_bytes = max(c.buffer_sizes[of.index], size)
    of.chunk = made
    of.pinned_bytes += chunk.cap_bytes
    return made


@inner
def release(c: CacheArrays, chunk: int64) -> None:
    """An entry of the chunk left the cache; with the last one the chunk is gone."""
    of = c.chunks[chunk]
    of.entries -= 1
    if of.entries != 0:
        return
    buffer = of.buffer
    c.buffers[buffer].pinned_bytes -= of.cap_bytes
    if c.buffers[buffer].chunk == chunk:
        _record(c, buffer, of.used_bytes)
        c.buffers[buffer].chunk = NONE
    of.buffer = c.state[0].free_chunk
    c.state[0].free_chunk = chunk
    c.state[0].chunks -= 1


@inner
def _record(c: CacheArrays, buffer: int64, received_bytes: int64) -> None:
    """Adapt the guess to what a buffer held in the end."""
    of = c.buffers[buffer]
    low, high = c.buffer_sizes[BOUNDS + 3 * (buffer & 1)], c.buffer_sizes[BOUNDS + 3 * (buffer & 1) + 2]
    if received_bytes <= c.buffer_sizes[max(0, of.index - 1)]:
        if of.shrinks != 0:
            of.index = max(of.index - 1, low)
        of.shrinks = 1 - of.shrinks
    elif received_bytes >= c.buffer_sizes[of.index]:
        of.index = min(of.index + STEP_UP, high)
        of.shrinks = 0


@inner
def _free_place(c: CacheArrays) -> int64:
    state = c.state[0]
    state.chunks += 1
    chunk = state.free_chunk
    if chunk == NONE:
        chunk = state.chunk_end
        state.chunk_end += 1
    else:
        state.free_chunk = c.chunks[chunk].buffer
    return chunk
