"""Belady's rule, which knows the future: a bound for all others, for replays only (entry-cache 10.4)."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headgate.core.cache.checks import refusal
from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.capped import Capped
from headgate.core.cache.policies.policy import Read
from headgate.core.cache.reasons import Cause, MissReason
from headgate.core.cache.rows import EventKind, Position, Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic, note_deleted
from headgate.core.numbers import MIN

Place = tuple[str, int, int]
"""Topic, ledger and entry."""

_Scored = tuple[int, int, int, int, Entry]


class Belady(Capped):
    """Cached is what is read soonest; for entries of equal size no policy has more hits.

    All rows have to be told before the first is fed (`foresee`). Source: entry-cache 10.4
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._reads: dict[Place, list[int]] = {}
        self._next: dict[Entry, int] = {}
        self._farthest: list[_Scored] = []
        self._told = 0
        self._heard = (MIN, -1)
        self._deleted: dict[str, set[int]] = {}

    def foresee(self, rows: Iterable[Row]) -> None:
        """Number the reads of all rows that will come, in order. Rows that will be refused are no reads."""
        later: dict[Place, list[int]] = {}
        for row in rows:
            if not self._hear(row):
                continue
            if row.kind == EventKind.LEDGER_DELETE:
                note_deleted(self._deleted.setdefault(row.topic, set()), row.ledger)
            elif row.kind in {EventKind.READ, EventKind.REPLAY_READ}:
                for entry in range(row.entry, row.entry + (row.count or 1)):
                    self._told += 1
                    later.setdefault((row.topic, row.ledger, entry), []).append(self._told)
        for place, reads in later.items():
            self._reads[place] = reads[::-1] + self._reads.get(place, [])

    def _hear(self, row: Row) -> bool:
        """Take the row as the cache will; whether a read, or a delete, will change anything then."""
        if refusal(row, *self._heard, self._settings) is not None:
            return False
        self._heard = (row.t_us, row.seq)
        return row.ledger not in self._deleted.get(row.topic, ())

    def admits_topic(self, topic: Topic, now_us: int) -> bool:  # noqa: ARG002  a hook
        """Cursors say nothing that the future does not."""
        return True

    def admits_added(self, topic: Topic, position: Position) -> bool:
        """What will be read."""
        return (topic.name, *position) in self._reads

    def touch(self, entries: Sequence[Entry]) -> None:
        """Entries that are not read again leave."""
        for entry in entries:
            entry.accessed = True
            next_read = self._pass((entry.topic.name, entry.ledger, entry.number))
            if next_read is None:
                self.remove(entry, Cause.DROPPED)
            else:
                self._expect(entry, next_read)

    def admits_missed(self, read: Read, offset: int) -> bool:
        """What will be read again."""
        return self._pass((read.topic.name, read.ledger, read.first + offset)) is not None

    def admits_replayed(self, read: Read) -> bool:
        """What will be read again."""
        return self.admits_missed(read, 0)

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:
        """Evict what is read later than the newcomer, until it fits."""
        limit = self._limit
        if size > limit.max_bytes:
            return False
        newcomer = self._reads[topic.name, *position][-1]
        while limit.current_bytes + size > limit.max_bytes:
            if self._next[self._last_read()] < newcomer:
                return False
            self.evict_one()
        return True

    def refusal(self, size: int) -> MissReason:  # noqa: ARG002  a hook
        """What does not fit is not admitted."""
        return MissReason.NOT_ADMITTED if self._limit.max_bytes else MissReason.REFUSED

    def inserted(self, entry: Entry) -> None:
        """Note when the entry is read next."""
        self._expect(entry, self._reads[entry.topic.name, entry.ledger, entry.number][-1])

    def forget(self, entry: Entry) -> None:
        """The entry leaves."""
        del self._next[entry]

    def evict_one(self) -> None:
        """Evict what is read last."""
        self.work.visits += 1
        self.remove(self._last_read(), Cause.EVICTED)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The reads to come, and the next one of each cached entry."""
        return {
            "reads": [[*place, reads] for place, reads in self._reads.items()],
            "told": self._told,
            "heard": self._heard,
            "deleted": {topic: sorted(ledgers) for topic, ledgers in self._deleted.items()},
            "next": [[numbers[entry], read] for entry, read in self._next.items()],
        }

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:  # noqa: ARG002
        """Take the reads to come."""
        self._reads = {(topic, ledger, number): list(reads) for topic, ledger, number, reads in stored["reads"]}
        self._told = stored["told"]
        self._heard = (stored["heard"][0], stored["heard"][1])
        self._deleted = {topic: set(ledgers) for topic, ledgers in stored["deleted"].items()}
        for number, read in stored["next"]:
            self._expect(entries[number], read)

    def _pass(self, place: Place) -> int | None:
        """A read came: the number of the next one, None where there is none."""
        reads = self._reads.get(place)
        if reads is None:
            return None
        reads.pop()
        if reads:
            return reads[-1]
        del self._reads[place]
        return None

    def _expect(self, entry: Entry, next_read: int) -> None:
        self._next[entry] = next_read
        heapq.heappush(self._farthest, (-next_read, entry.ledger, entry.number, id(entry), entry))

    def _last_read(self) -> Entry:
        """The cached entry that is read last."""
        while True:
            negative, *_, entry = self._farthest[0]
            if self._next.get(entry) == -negative:
                return entry
            heapq.heappop(self._farthest)
