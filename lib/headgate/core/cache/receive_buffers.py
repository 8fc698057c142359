"""How much memory cached entries pin: many are slices of the buffers that they were received in (entry-cache 11)."""

from bisect import bisect_left
from typing import NamedTuple

TABLE = (*range(16, 512, 16), *(1 << power for power in range(9, 31)))
_STEP_UP = 4


class BufferSizes(NamedTuple):
    """Bytes of the smallest, the first and the largest buffer of a source."""

    minimum_bytes: int
    initial_bytes: int
    maximum_bytes: int


class Chunk:
    """A receive buffer: it is pinned as a whole while one entry in it is cached.

    Attributes: `opened_us`; `cap_bytes`, its size; `used_bytes`, what was received into it; `entries`, those cached.
    """

    __slots__ = ("buffer", "cap_bytes", "entries", "opened_us", "used_bytes")

    def __init__(self, buffer: "ReceiveBuffer", opened_us: int, cap_bytes: int, used_bytes: int) -> None:
        self.buffer = buffer
        self.opened_us = opened_us
        self.cap_bytes = cap_bytes
        self.used_bytes = used_bytes
        self.entries = 0


class ReceiveBuffer:
    """The buffers of one source of a topic: one is being filled, and the size of the next is guessed.

    Attributes: `chunk`, the one being filled; `pinned_bytes`, of all chunks that hold a cached entry; `index`, the
    guess as a place in the table; `shrinks`, whether one more small buffer makes the guess smaller.
    Source: Netty's adaptive allocator; entry-cache 11
    """

    __slots__ = ("_high", "_low", "_window_us", "chunk", "index", "pinned_bytes", "shrinks")

    def __init__(self, sizes: BufferSizes, window_us: int) -> None:
        self._low = bisect_left(TABLE, sizes.minimum_bytes)
        self._high = bisect_left(TABLE, sizes.maximum_bytes)
        self._window_us = window_us
        self.index = bisect_left(TABLE, sizes.initial_bytes)
        self.shrinks = False
        self.chunk: Chunk | None = None
        self.pinned_bytes = 0

    def receive(self, size_bytes: int, now_us: int) -> Chunk:
        """The chunk that an entry which is inserted now is a slice of."""
        chunk = self.chunk
        if chunk is not None:
            is_over = now_us - chunk.opened_us > self._window_us
            if not is_over and chunk.used_bytes + size_bytes <= chunk.cap_bytes:
                chunk.used_bytes += size_bytes
                chunk.entries += 1
                return chunk
            self._record(chunk.used_bytes if is_over else chunk.cap_bytes)
        cap_bytes = max(TABLE[self.index], size_bytes)
        chunk = self.chunk = Chunk(self, now_us, cap_bytes, size_bytes)
        chunk.entries = 1
        self.pinned_bytes += cap_bytes
        return chunk

    def release(self, chunk: Chunk) -> None:
        """An entry of the chunk left the cache; with the last one the chunk is gone."""
        chunk.entries -= 1
        if not chunk.entries:
            self.pinned_bytes -= chunk.cap_bytes
            if chunk is self.chunk:
                self._record(chunk.used_bytes)
                self.chunk = None

    def _record(self, received_bytes: int) -> None:
        """Adapt the guess to what a buffer held in the end."""
        if received_bytes <= TABLE[max(0, self.index - 1)]:
            if self.shrinks:
                self.index = max(self.index - 1, self._low)
            self.shrinks = not self.shrinks
        elif received_bytes >= TABLE[self.index]:
            self.index = min(self.index + _STEP_UP, self._high)
            self.shrinks = False
