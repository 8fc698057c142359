"""A cached entry, and the count of reads still expected of it (entry-cache 1, 3)."""

from typing import Any

from headgate.core.cache.receive_buffers import Chunk
from headgate.core.cache.rows import Position


class Handler:
    """Reads still foreseen for an entry: shared by the cached entry and the copies that were handed out.

    It is made for a count above 0 only, has no floor, and no seek or close corrects it. Source: entry-cache 1, 5.5
    """

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class Entry:
    """One cached entry of a topic.

    Attributes: `ts_us`, when it was inserted or last requeued; `requeues`, how often it was; `accessed`, whether it was
    looked up since; `chunk`, the receive buffer that it is a slice of, None where it holds its own bytes; `is_queued`,
    whether it is in a removal queue. Source: entry-cache 3
    """

    __slots__ = ("accessed", "chunk", "handler", "is_queued", "ledger", "number", "requeues", "size", "topic", "ts_us")

    def __init__(  # noqa: PLR0917  called for every insertion: keywords cost
        self, topic: Any, ledger: int, number: int, size: int, ts_us: int, handler: Handler | None, chunk: Chunk | None
    ) -> None:
        self.topic = topic
        self.ledger = ledger
        self.number = number
        self.size = size
        self.ts_us = ts_us
        self.handler = handler
        self.requeues = 0
        self.accessed = False
        self.chunk = chunk
        self.is_queued = False

    @property
    def position(self) -> Position:
        """Where the entry is in its topic."""
        return (self.ledger, self.number)

    @property
    def is_expected(self) -> bool:
        """Whether at least one read is foreseen: has(e) of entry-cache 1."""
        return self.handler is not None and self.handler.count >= 1
