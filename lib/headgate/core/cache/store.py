"""What a broker has cached: every insertion and removal goes through here, and is accounted (entry-cache 1, 7, 13)."""

from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Removed
from headgate.core.cache.topics.topic import Topic


class Source:
    """Where the bytes of an insertion come from, which decides what memory they pin (entry-cache 11).

    STORAGE_COPY: entries of one read of many, copied out of the receive buffer where the settings say so.
    """

    PRODUCER, STORAGE, STORAGE_COPY = range(3)


class EntryStore:
    """Accounted bytes are the sum of the sizes of the cached entries, of all topics and of each.

    Attributes: `limit`; `entry_count`; `inserted` and `removed_by`, counts since the beginning; `removed`, what left
    since it was last taken, in order. Source: entry-cache 1, 7, 11, 13
    """

    __slots__ = ("_copies_all", "_copies_reads", "entry_count", "inserted", "limit", "removed", "removed_by")

    def __init__(self, limit: ByteLimit, *, copies_all: bool, copies_reads: bool) -> None:
        self.limit = limit
        self._copies_all = copies_all
        self._copies_reads = copies_reads
        self.entry_count = 0
        self.inserted = 0
        self.removed_by = dict.fromkeys(Cause, 0)
        self.removed: list[Removed] = []

    def insert(
        self,
        topic: Topic,
        ledger: int,
        number: int,
        size: int,
        *,
        now_us: int,
        source: int,
        handler: Handler | None = None,
    ) -> Entry:
        """Cache an entry at a position that is free."""
        if self._copies_all or (self._copies_reads and source == Source.STORAGE_COPY):
            chunk = None
            topic.own_bytes += size
        else:
            buffer = topic.from_producer if source == Source.PRODUCER else topic.from_bookie
            chunk = buffer.receive(size, now_us)
        entry = Entry(topic, ledger, number, size, now_us, handler, chunk)
        topic.entries.add(entry)
        topic.reasons.forget((ledger, number))
        self.limit.current_bytes += size
        self.entry_count += 1
        self.inserted += 1
        return entry

    def remove(self, entry: Entry, cause: Cause) -> None:
        """Take a cached entry out, and remember why."""
        topic: Topic = entry.topic
        topic.entries.remove(entry)
        topic.reasons.note((entry.ledger, entry.number), cause)
        chunk = entry.chunk
        if chunk is None:
            topic.own_bytes -= entry.size
        else:
            chunk.buffer.release(chunk)
        self.limit.current_bytes -= entry.size
        self.entry_count -= 1
        self.removed_by[cause] += 1
        self.removed.append(Removed(topic.name, entry.ledger, entry.number, cause))

    def take_removed(self) -> tuple[Removed, ...]:
        """What left since this was last asked."""
        taken = tuple(self.removed)
        self.removed.clear()
        return taken
