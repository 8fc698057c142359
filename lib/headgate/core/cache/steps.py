"""What each kind of row does to a topic and its entries (entry-cache 2, 5).

A step returns what reads came to, or why the state refuses the row. Rows are well formed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from headgate.core.cache.copies import Handlers, free
from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.policy import Policy, Read
from headgate.core.cache.reasons import Cause, DeadReason, MissReason
from headgate.core.cache.rows import NOTHING, EventKind, Position, Row, RowOutcome
from headgate.core.cache.settings import CacheSettings, PolicyName, RangeHits, Release
from headgate.core.cache.topics.topic import Topic

_DEAD = {reason: RowOutcome(dead=reason) for reason in DeadReason}
_HIT = [RowOutcome(hits=hits) for hits in range(129)]
"""Outcomes of reads that hit, which most rows are."""


class Steps:
    """The kinds of rows over the topics of one broker.

    Attributes: `by_kind`, the step of each kind; `misses_by_reason`, entries. Source: entry-cache 2, 5
    """

    def __init__(self, settings: CacheSettings, policy: Policy) -> None:
        self._policy = policy
        self._wake_init_us = settings.wake_init_us
        self._is_whole = settings.range_hits is RangeHits.WHOLE and settings.policy is not PolicyName.BELADY
        self._needs_ends = settings.policy is PolicyName.CURSOR_DISTANCE
        self._frees_at_once = settings.release is Release.IMMEDIATE
        self.misses_by_reason: dict[str, int] = {}
        self.by_kind: dict[str, Callable[[Topic, Row], RowOutcome]] = {
            EventKind.ADD: self._add,
            EventKind.OPEN: self._open,
            EventKind.MOVE: self._move,
            EventKind.MARK: self._mark,
            EventKind.CLOSE: self._close,
            EventKind.READ: self._read,
            EventKind.REPLAY_ADD: self._replay_add,
            EventKind.REPLAY_READ: self._replay_read,
            EventKind.RELEASE: self._release,
            EventKind.LEDGER_DELETE: self._ledger_delete,
            EventKind.TOPIC_CLEAR: self._topic_clear,
        }

    def _note_end(self, topic: Topic, ledger: int, number: int) -> None:
        """Only distances need the ends of ledgers."""
        if self._needs_ends:
            topic.ends.note(ledger, number)

    def _add(self, topic: Topic, row: Row) -> RowOutcome:
        ledger, first, count = row.ledger, row.entry, row.count or 1
        if ledger in topic.deleted_ledgers:
            return _DEAD[DeadReason.LEDGER_DELETED]
        if (ledger, first) <= topic.last_added:
            return _DEAD[DeadReason.ADD_NOT_INCREASING]
        topic.last_added = (ledger, first + count - 1)
        self._note_end(topic, ledger, first + count - 1)
        self._policy.add(topic, ledger, first, _each(row.sizes, count), row.t_us)
        return NOTHING

    def _open(self, topic: Topic, row: Row) -> RowOutcome:
        if row.cursor in topic.cursors.by_name:
            return _DEAD[DeadReason.CURSOR_EXISTS]
        topic.cursors.open(row.cursor, _position(row), row.t_us, self._wake_init_us)
        return NOTHING

    def _move(self, topic: Topic, row: Row) -> RowOutcome:
        cursor = topic.cursors.by_name.get(row.cursor)
        if cursor is None:
            return _DEAD[DeadReason.UNKNOWN_CURSOR]
        topic.cursors.move(cursor, _position(row))
        return NOTHING

    def _mark(self, topic: Topic, row: Row) -> RowOutcome:
        cursor = topic.cursors.by_name.get(row.cursor)
        if cursor is None:
            return _DEAD[DeadReason.UNKNOWN_CURSOR]
        topic.cursors.acknowledge(cursor, (row.ledger, row.entry))
        return NOTHING

    def _close(self, topic: Topic, row: Row) -> RowOutcome:
        cursor = topic.cursors.by_name.get(row.cursor)
        if cursor is None:
            return _DEAD[DeadReason.UNKNOWN_CURSOR]
        topic.cursors.close(cursor)
        if not topic.cursors.by_name:
            topic.last_removal_us = row.t_us
        topic.copies.forget_cursor(cursor.name)
        for position in topic.marks.forget_cursor(cursor.name):
            self._settle_mark(topic, position)
        return NOTHING

    def _read(self, topic: Topic, row: Row) -> RowOutcome:
        t_us, _, _, _, name, ledger, first, count, sizes, _ = row
        if ledger in topic.deleted_ledgers:
            return _DEAD[DeadReason.LEDGER_DELETED]
        count = count or 1
        cursor = topic.cursors.by_name.get(name)
        if cursor is not None:
            cursor.wake(t_us)
            if cursor.mark is None:
                cursor.mark = (ledger, first)
        self._note_end(topic, ledger, first + count - 1)
        found: list[Any] = list(map(topic.entries.ledger(ledger).get, range(first, first + count)))
        if all(found):
            handlers, told = self._hit(topic, found)
        else:
            if cursor is not None:
                topic.cursors.move(cursor, (ledger, first))
            read = Read(topic, cursor, ledger, first, _each(sizes, count), found, t_us)
            handlers, told = self._miss(read)
        self._hand_out(topic, row, handlers)
        if cursor is not None:
            topic.cursors.move(cursor, (ledger, first + count))
        return told

    def _replay_read(self, topic: Topic, row: Row) -> RowOutcome:
        position = (row.ledger, row.entry)
        if row.ledger in topic.deleted_ledgers:
            return _DEAD[DeadReason.LEDGER_DELETED]
        marked_us = topic.marks.remove(row.cursor, position)
        if marked_us is not None:
            topic.replay_delay_us = (4 * topic.replay_delay_us + row.t_us - marked_us) // 5
            self._settle_mark(topic, position)
        self._note_end(topic, *position)
        entry = topic.entries.get(position)
        if entry is not None:
            handlers, told = self._hit(topic, [entry])
        else:
            reader = topic.cursors.by_name.get(row.cursor)
            read = Read(topic, reader, *position, row.sizes, [None], row.t_us)
            self._count_misses(read, is_whole=False)
            handlers, told = self._policy.replay_missed(read), RowOutcome(misses=1)
        self._hand_out(topic, row, handlers)
        return told

    def _replay_add(self, topic: Topic, row: Row) -> RowOutcome:
        if row.cursor not in topic.cursors.by_name:
            return _DEAD[DeadReason.UNKNOWN_CURSOR]
        if row.ledger in topic.deleted_ledgers:
            return _DEAD[DeadReason.LEDGER_DELETED]
        for number in _numbers(row):
            position = (row.ledger, number)
            if topic.marks.has(row.cursor, position):
                continue
            topic.marks.add(row.cursor, position, row.t_us)
            if topic.marks.counts[position] == 1:
                self._policy.marked(topic, position)
            self._expect_again(topic, row.cursor, position)
        return NOTHING

    def _release(self, topic: Topic, row: Row) -> RowOutcome:
        numbers = _numbers(row)
        if not topic.copies.are_held(row.cursor, row.ledger, numbers):
            return _DEAD[DeadReason.UNKNOWN_COPY]
        topic.copies.release(row.cursor, row.ledger, numbers)
        return NOTHING

    def _ledger_delete(self, topic: Topic, row: Row) -> RowOutcome:
        if row.ledger in topic.deleted_ledgers:
            return _DEAD[DeadReason.LEDGER_DELETED]
        for entry in topic.entries.in_ledger(row.ledger):
            self._policy.remove(entry, Cause.INVALIDATED)
        topic.marks.forget_ledger(row.ledger)
        topic.copies.forget_ledger(row.ledger)
        topic.delete_ledger(row.ledger)
        return NOTHING

    def _topic_clear(self, topic: Topic, _: Row) -> RowOutcome:
        for entry in list(topic.entries):
            self._policy.remove(entry, Cause.INVALIDATED)
        return NOTHING

    def _hit(self, topic: Topic, entries: list[Entry]) -> tuple[Handlers, RowOutcome]:
        counts, hits = topic.counts, len(entries)
        counts.hits += hits
        counts.hit_bytes += sum([entry.size for entry in entries])
        handlers = [entry.handler for entry in entries]
        self._policy.touch(entries)
        return handlers, _HIT[hits] if hits < len(_HIT) else RowOutcome(hits=hits)

    def _miss(self, read: Read) -> tuple[Handlers, RowOutcome]:
        """A range of which some entries, or all, are absent."""
        counts = read.topic.counts
        found = [entry for entry in read.found if entry is not None]
        self._count_misses(read, is_whole=self._is_whole)
        hits = 0 if self._is_whole else len(found)
        counts.hits += hits
        counts.hit_bytes += sum(entry.size for entry in found) if hits else 0
        self._policy.touch(found)
        handlers = self._policy.read_missed(read, is_whole=self._is_whole)
        return handlers, RowOutcome(hits=hits, misses=len(read.found) - hits)

    def _count_misses(self, read: Read, *, is_whole: bool) -> None:
        """Misses, what they cost of the storage, and why they were."""
        counts, by_reason, reasons = read.topic.counts, self.misses_by_reason, read.topic.reasons.reasons
        was_missed = False
        for offset, entry in enumerate(read.found):
            is_missed = is_whole or entry is None
            if is_missed:
                reason = MissReason.PARTIAL if entry is not None else reasons.get((read.ledger, read.first + offset))
                reason = reason or MissReason.COLD
                by_reason[reason] = by_reason.get(reason, 0) + 1
                counts.misses += 1
                counts.storage_bytes += read.sizes[offset]
                counts.storage_ops += not was_missed
            was_missed = is_missed

    def _hand_out(self, topic: Topic, row: Row, handlers: Handlers) -> None:
        """The copies of a read: freed at once, or outstanding until they are released."""
        if self._frees_at_once:
            free(handlers)
        else:
            topic.copies.hand_out(row.cursor, row.ledger, row.entry, handlers)

    @staticmethod
    def _expect_again(topic: Topic, cursor: str, position: Position) -> None:
        """One read more is foreseen: of the newest copy that the cursor holds, else of the cached entry."""
        copies = topic.copies.newest(cursor, position)
        if copies:
            (handler,) = copies
        else:
            entry = topic.entries.get(position)
            handler = None if entry is None else entry.handler
        if handler is not None:
            handler.count += 1

    def _settle_mark(self, topic: Topic, position: Position) -> None:
        """A cursor unmarked a position."""
        if position not in topic.marks.counts:
            self._policy.unmarked(topic, position)


def _position(row: Row) -> Position | None:
    return None if row.ledger is None else (row.ledger, row.entry)


def _numbers(row: Row) -> range:
    return range(row.entry, row.entry + (row.count or 1))


def _each(sizes: Sequence[int], count: int) -> Sequence[int]:
    """A size for each of the entries."""
    return sizes if len(sizes) == count else list(sizes) * count
