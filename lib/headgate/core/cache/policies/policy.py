"""The hooks of a policy, and what most policies share (entry-cache 5, 10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.core.cache.copies import Handlers
from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.reasons import Cause, MissReason
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore, Source
from headgate.core.cache.topics.cursors import Cursor
from headgate.core.cache.topics.topic import Topic

NEVER = 1 << 63
"""After every instant."""


@dataclass(slots=True)
class Work:
    """What passes did. Source: entry-cache 13"""

    size_passes: int = 0
    requeues: int = 0
    visits: int = 0
    max_pass_visits: int = 0

    def add_size_pass(self, visits: int) -> None:
        """A size pass ran."""
        self.size_passes += 1
        self.visits += visits
        self.max_pass_visits = max(self.max_pass_visits, visits)


@dataclass(frozen=True, slots=True)
class Read:
    """Entries that were read, with a size each, and what of them was found: None for those that are absent."""

    topic: Topic
    reader: Cursor | None
    ledger: int
    first: int
    sizes: Sequence[int]
    found: Sequence[Entry | None]
    now_us: int


class Policy:
    """A set of hooks. Rows move the topics; a policy inserts and removes entries, through the store.

    Hooks are called for: an added entry (`admits_topic`, `admits_added`, `add_again`), a read (`touch`, `read_missed`,
    `replay_missed`), an insertion (`make_room`, `inserted`), a removal by others (`forget`), a tick (`tick`), the end
    of a row (`size_pass`), a topic that a row was about (`topic_changed`), and a conf row (`settings_changed`).

    Attributes: `due_us`, no tick before it can change anything; `is_over`, whether a size pass is due at the end of the
    row; `watches_topics`, whether `topic_changed` is to be called; `peaks_after_pass`, whether the peak is taken after
    the size pass of a row. Source: entry-cache 10
    """

    watches_topics = False
    peaks_after_pass = False

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        self._settings = settings
        self._store = store
        self._topics = topics
        self._limit = store.limit
        self.work = Work()
        self.due_us = NEVER
        self.is_over = False

    # Adding.

    def add(self, topic: Topic, ledger: int, first: int, sizes: Sequence[int], now_us: int) -> None:
        """Entries were published: cache those that the policy admits, ascending (section 5.1)."""
        is_admitted = self.admits_topic(topic, now_us)
        cached = topic.entries.ledger(ledger)
        for number, size in enumerate(sizes, first):
            entry = cached.get(number)
            if entry is not None:
                if is_admitted:
                    self.add_again(entry)
            elif is_admitted and self.admits_added(topic, (ledger, number)):
                handler = self.handler_of_added(topic)
                self.insert(topic, (ledger, number), size, now_us, source=Source.PRODUCER, handler=handler)
            else:
                topic.reasons.note((ledger, number), MissReason.NOT_ADMITTED)

    def admits_topic(self, topic: Topic, now_us: int) -> bool:
        """Whether added entries of the topic are cached: it has a cursor, or the last one left a short while ago."""
        if topic.cursors.by_name:
            return True
        grace_us = self._settings.grace_us
        return self._settings.strategy and grace_us > 0 and now_us - topic.last_removal_us < grace_us

    def admits_added(self, topic: Topic, position: Position) -> bool:  # noqa: ARG002  a hook
        """Whether an added entry of an admitted topic is cached."""
        return True

    def add_again(self, entry: Entry) -> None:
        """An entry was added that is cached already: the first insert wins."""

    def handler_of_added(self, topic: Topic) -> Handler | None:  # noqa: ARG002  a hook
        """The handler of an entry that is added."""
        return None

    # Reading.

    def touch(self, entries: Sequence[Entry]) -> None:
        """Entries were looked up and found, in this order."""

    def read_missed(self, read: Read, *, is_whole: bool) -> Handlers:  # noqa: ARG002  a hook
        """A read missed; returns the handlers of the copies (sections 5.2, 10).

        is_whole: all of its entries were fetched, found ones too.
        """
        source = Source.STORAGE_COPY if len(read.found) > 1 else Source.STORAGE
        for offset, entry in enumerate(read.found):
            if entry is None:
                self._insert_missed(read, offset, source, is_admitted=self.admits_missed(read, offset))
        return self.no_handlers(read)

    def replay_missed(self, read: Read) -> Handlers:
        """A single read of a replay queue missed; returns the handler of the copy (section 5.3)."""
        self._insert_missed(read, 0, Source.STORAGE, is_admitted=self.admits_replayed(read))
        return self.no_handlers(read)

    def admits_missed(self, read: Read, offset: int) -> bool:  # noqa: ARG002  a hook
        """Whether an entry that a read missed is cached."""
        return True

    def admits_replayed(self, read: Read) -> bool:  # noqa: ARG002  a hook
        """Whether an entry that a replay missed is cached."""
        return True

    def _insert_missed(self, read: Read, offset: int, source: int, *, is_admitted: bool) -> None:
        position = (read.ledger, read.first + offset)
        if is_admitted:
            self.insert(read.topic, position, read.sizes[offset], read.now_us, source=source)
        else:
            read.topic.reasons.note(position, MissReason.NOT_ADMITTED)

    @staticmethod
    def no_handlers(read: Read) -> Handlers:
        """Copies without handlers."""
        return [None] * len(read.found)

    # Inserting and removing.

    def insert(
        self,
        topic: Topic,
        position: Position,
        size: int,
        now_us: int,
        *,
        source: int,
        handler: Handler | None = None,
    ) -> bool:
        """Cache an admitted entry at a free position, where there is room for it."""
        if not self.make_room(topic, position, size):
            topic.reasons.note(position, self.refusal(size))
            return False
        entry = self._store.insert(topic, *position, size, now_us=now_us, source=source, handler=handler)
        self.inserted(entry)
        return True

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:  # noqa: ARG002  a hook
        """Whether there is room for an entry, after what may be evicted for it; without a limit there never is."""
        return self._limit.max_bytes > 0

    def refusal(self, size: int) -> MissReason:  # noqa: ARG002  a hook
        """What is remembered of an entry for which there was no room."""
        return MissReason.REFUSED

    def inserted(self, entry: Entry) -> None:
        """An entry is cached now."""

    def forget(self, entry: Entry) -> None:
        """An entry is about to leave the cache."""

    def remove(self, entry: Entry, cause: Cause) -> None:
        """Take a cached entry out."""
        self.forget(entry)
        self._store.remove(entry, cause)

    # Marks, ticks, passes, settings.

    def marked(self, topic: Topic, position: Position) -> None:
        """A position came into the first replay queue."""

    def unmarked(self, topic: Topic, position: Position) -> None:
        """A position left the last replay queue."""

    def topic_changed(self, topic: Topic, now_us: int) -> None:
        """A row was about the topic."""

    def topic_forgotten(self, topic: Topic) -> None:
        """The topic, of which nothing is cached, is not there any more."""

    def tick(self, now_us: int) -> None:  # noqa: ARG002  a hook
        """The tick that `due_us` named; sets the next one."""
        self.due_us = NEVER

    def size_pass(self, now_us: int) -> None:
        """Free bytes at the end of a row that set `is_over`."""

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:  # noqa: ARG002  a hook
        """A conf row: the limit is that of the settings already."""
        self._settings = settings

    def next_tick_us(self, after_us: int) -> int:
        """The first tick after an instant."""
        interval_us = self._settings.interval_us
        return (after_us // interval_us + 1) * interval_us

    # State.

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:  # noqa: ARG002  a hook
        """What the policy keeps beside the entries, which have numbers, as plain data."""
        return {}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Take what `dump` gave; entries are in the order of their numbers, and topics are as they were."""
