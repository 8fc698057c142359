"""The policy of Pulsar 4.2: expected reads are counted, and put off removal (PIP-430, entry-cache 5, 6, 7)."""

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.copies import Handlers
from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.policies.policy import NEVER, Policy, Read
from headgate.core.cache.reasons import Cause, MissReason
from headgate.core.cache.removal_queue import RemovalQueue
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore, Source
from headgate.core.cache.topics.topic import Topic


def _handler(count: int) -> Handler | None:
    return Handler(count) if count > 0 else None


class Pip430(Policy):
    """An entry is removed in the order of insertion, later while reads of it are expected.

    An added entry is expected once by each registered cursor, an entry that a read fetched once by each cursor that
    is at the reader's position or behind it. Source: PIP-430; entry-cache 5, 6, 7
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self.queue = RemovalQueue(settings.max_requeue, extend_accessed=settings.extend_accessed)

    def add_again(self, entry: Entry) -> None:
        """An entry that a read fetched before it was published: it is expected as any other."""
        if self._settings.strategy and self._settings.adopt_handler:
            entry.handler = self.handler_of_added(entry.topic)

    def handler_of_added(self, topic: Topic) -> Handler | None:
        """One read by each registered cursor."""
        return _handler(len(topic.cursors.by_name)) if self._settings.strategy else None

    def touch(self, entries: Sequence[Entry]) -> None:
        """Note that entries were accessed since they were queued."""
        for entry in entries:
            entry.accessed = True

    def read_missed(self, read: Read, *, is_whole: bool) -> Handlers:
        """Absent entries are expected by those at the reader's position or behind; the copies share the count."""
        count = self._expected_of_missed(read)
        if count == 0:
            self._note_missed(read)
            return [None if is_whole or entry is None else entry.handler for entry in read.found]
        source = Source.STORAGE_COPY if len(read.found) > 1 else Source.STORAGE
        handlers: list[Handler | None] = []
        for offset, entry in enumerate(read.found):
            handler: Handler | None = None
            if entry is None:
                position = (read.ledger, read.first + offset)
                handler = Handler(count)
                size = read.sizes[offset]
                if not self.insert(read.topic, position, size, read.now_us, source=source, handler=handler):
                    handler = None
            elif is_whole:
                handler = self._fetched_again(entry, count)
            else:
                handler = entry.handler
            handlers.append(handler)
        return handlers

    def replay_missed(self, read: Read) -> Handlers:
        """An entry of a replay queue is never cached."""
        self._note_missed(read)
        return self.no_handlers(read)

    def inserted(self, entry: Entry) -> None:
        """Queue an entry; over the trigger a size pass is due."""
        self.queue.append(entry)
        if self._limit.current_bytes > self._limit.trigger_bytes:
            self.is_over = True
        if self.due_us == NEVER:
            self.due_us = self.next_tick_us(entry.ts_us + self._settings.ttl_us)

    def forget(self, entry: Entry) -> None:
        """An entry leaves by another way than a pass."""
        self.queue.discard(entry)

    def tick(self, now_us: int) -> None:
        """What has become too old leaves; then, where the limit was lowered, what is too much."""
        done = self.queue.time_pass(now_us, now_us - self._settings.ttl_us)
        self.work.visits += done.visits
        self.work.requeues += done.requeues
        self._remove(done.removed, Cause.EXPIRED)
        self.size_pass(now_us)
        self.plan(now_us)

    def size_pass(self, now_us: int) -> None:
        """Free down to the target, where more than the trigger is cached."""
        need_bytes = self.need_bytes()
        if need_bytes is not None:
            done = self.queue.size_pass(now_us, need_bytes)
            self.work.add_size_pass(done.visits)
            self.work.requeues += done.requeues
            self._remove(done.removed, Cause.EVICTED)

    def need_bytes(self) -> int | None:
        """What a size pass has to free now; None where none is due."""
        return self._limit.need_bytes()

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:
        """Keys of the queue hold from the next pass on."""
        super().settings_changed(settings, now_us)
        self.queue.max_requeue = settings.max_requeue
        self.queue.extend_accessed = settings.extend_accessed
        self.plan(now_us)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The queue, head first."""
        return {"queue": [numbers[entry] for entry in self.queue]}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:
        """Queue the entries as they were."""
        for number in stored["queue"]:
            self.queue.append(entries[number])
        self.plan(now_us)

    def plan(self, now_us: int) -> None:
        """Name the next tick that can change anything, after one at `now_us` or before it."""
        head = self.queue.head()
        if self.need_bytes() is not None:
            self.due_us = self.next_tick_us(now_us)
        elif head is None:
            self.due_us = NEVER
        else:
            self.due_us = self.next_tick_us(max(now_us, head.ts_us + self._settings.ttl_us))

    def left_queue(self, entry: Entry) -> None:
        """A pass removed the entry."""

    def _remove(self, entries: Sequence[Entry], cause: Cause) -> None:
        for entry in entries:
            self.left_queue(entry)
            self._store.remove(entry, cause)

    def _expected_of_missed(self, read: Read) -> int:
        if self._settings.strategy:
            return read.topic.cursors.rank(read.reader)
        return int(self._settings.cache_reads)

    @staticmethod
    def _note_missed(read: Read) -> None:
        for offset, entry in enumerate(read.found):
            if entry is None:
                read.topic.reasons.note((read.ledger, read.first + offset), MissReason.NOT_ADMITTED)

    def _fetched_again(self, entry: Entry, count: int) -> Handler:
        """A cached entry in a range that was fetched as a whole."""
        handler = Handler(count)
        if self._settings.adopt_handler:
            entry.handler = handler
        return handler
