"""A topic of a broker: its position space, its cursors and what is cached of it (entry-cache 3)."""

from dataclasses import dataclass, fields
from operator import add

from headgate.core.cache.copies import OutstandingCopies
from headgate.core.cache.miss_memory import MissMemory
from headgate.core.cache.receive_buffers import BufferSizes, ReceiveBuffer
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.topics.cursors import Cursors
from headgate.core.cache.topics.ledger_ends import LedgerEnds
from headgate.core.cache.topics.range_cache import RangeCache
from headgate.core.cache.topics.replay_marks import ReplayMarks

DELETED_LEDGERS = 1024
_NOTHING_ADDED: Position = (-1, -1)


@dataclass(slots=True)
class Counts:
    """What reads of a topic came to: entries, bytes, storage reads. Cumulative."""

    hits: int = 0
    hit_bytes: int = 0
    misses: int = 0
    storage_bytes: int = 0
    storage_ops: int = 0

    def numbers(self) -> list[int]:
        """In the order of COUNTS."""
        return [self.hits, self.hit_bytes, self.misses, self.storage_bytes, self.storage_ops]

    def plus(self, other: "Counts") -> "Counts":
        """What both came to."""
        return Counts(*map(add, self.numbers(), other.numbers()))


COUNTS = tuple(field.name for field in fields(Counts))


class Topic:
    """State of one topic; see section 3 for its fields.

    Attributes: `place`, where it is in the order of first appearance; `last_removal_us`, when its last cursor left, or
    its first row came; `last_row_us`, when a row was about it last; `replay_delay_us`, how long a replayed entry waits;
    `own_bytes`, sizes of the cached entries that are no slices of a receive buffer. Source: entry-cache 3
    """

    __slots__ = (
        "copies",
        "counts",
        "cursors",
        "deleted_ledgers",
        "ends",
        "entries",
        "from_bookie",
        "from_producer",
        "last_added",
        "last_removal_us",
        "last_row_us",
        "marks",
        "name",
        "own_bytes",
        "place",
        "reasons",
        "replay_delay_us",
    )

    def __init__(self, name: str, place: int, now_us: int, settings: CacheSettings) -> None:
        self.name = name
        self.place = place
        self.last_removal_us = now_us
        self.last_row_us = now_us
        self.last_added = _NOTHING_ADDED
        self.replay_delay_us = settings.replay_init_us
        self.deleted_ledgers: set[int] = set()
        self.entries = RangeCache()
        self.cursors = Cursors(by_mark=_ranks_by_mark(settings))
        self.ends = LedgerEnds()
        self.marks = ReplayMarks()
        self.copies = OutstandingCopies()
        self.reasons = MissMemory(settings.reason_memory)
        self.counts = Counts()
        self.own_bytes = 0
        self.from_producer = ReceiveBuffer(
            BufferSizes(settings.receive_minimum_bytes, settings.receive_initial_bytes, settings.receive_maximum_bytes),
            settings.receive_window_us,
        )
        self.from_bookie = ReceiveBuffer(
            BufferSizes(settings.bookie_minimum_bytes, settings.bookie_initial_bytes, settings.bookie_maximum_bytes),
            settings.receive_window_us,
        )

    def holds_nothing(self) -> bool:
        """Whether it has no cursor, and nothing that is cached or was handed out."""
        return not (self.cursors.by_name or self.entries.entry_count or self.copies.by_cursor)

    def delete_ledger(self, ledger: int) -> None:
        """Remember a ledger as deleted."""
        note_deleted(self.deleted_ledgers, ledger)

    def finished_bytes(self) -> int:
        """Bytes of the cached entries that no tracked cursor will read and no cursor has in its replay queue."""
        reads = [cursor.read for cursor in self.cursors.by_name.values() if cursor.read is not None]
        slowest = min(reads, default=None)
        return sum(
            entry.size
            for entry in self.entries
            if (slowest is None or entry.position < slowest) and entry.position not in self.marks.counts
        )

    def pinned_bytes(self) -> int:
        """Estimated memory that the cached entries keep."""
        return self.own_bytes + self.from_producer.pinned_bytes + self.from_bookie.pinned_bytes


def note_deleted(ledgers: set[int], ledger: int) -> None:
    """Remember a ledger as deleted: the highest ids are kept."""
    ledgers.add(ledger)
    if len(ledgers) > DELETED_LEDGERS:
        ledgers.remove(min(ledgers))


def _ranks_by_mark(settings: CacheSettings) -> bool:
    """Whether the policy looks at the mark positions of cursors instead of their read positions."""
    if settings.policy in {PolicyName.PIP430, PolicyName.SIZE_PROPORTIONAL}:
        return settings.by_mark_deleted
    return settings.policy is PolicyName.BY_MARK_DELETE
