"""A cache as plain data and back: what comes back behaves as what was stored (entry-cache 1).

Handlers that are shared by entries and copies, and receive buffers that are shared by entries, stay shared.
"""

from collections import OrderedDict, deque
from typing import Any

from headgate.core.cache.broker import Cache
from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.policies.policy import Work
from headgate.core.cache.reasons import Cause, DeadReason
from headgate.core.cache.receive_buffers import Chunk, ReceiveBuffer
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.topics.cursors import Cursor
from headgate.core.cache.topics.topic import Counts, Topic
from headgate.core.state import PlainData, check_fields

FIELDS = (
    "settings",
    "now_us",
    "seq",
    "peak_bytes",
    "overshoot_bytes",
    "dead_letters",
    "misses_by_reason",
    "inserted",
    "removed_by",
    "work",
    "handlers",
    "topics",
    "forgotten",
    "policy",
)


def dump(cache: Cache) -> PlainData:
    """The cache as plain data, between two rows. Later rows do not change it."""
    numbers = {entry: number for number, entry in enumerate(_entries(cache))}
    handlers = _Handlers()
    topics = [_topic_state(topic, handlers) for topic in cache.topics.values()]
    work = cache.policy.work
    return {
        "settings": cache.settings.values(),
        "now_us": cache.now_us,
        "seq": cache.seq,
        "peak_bytes": cache.peak_bytes,
        "overshoot_bytes": cache.overshoot_bytes,
        "dead_letters": {str(reason): count for reason, count in cache.dead_letters.items()},
        "misses_by_reason": {str(reason): count for reason, count in cache.misses_by_reason().items()},
        "inserted": cache.store.inserted,
        "removed_by": {str(cause): count for cause, count in cache.store.removed_by.items()},
        "work": [work.size_passes, work.requeues, work.visits, work.max_pass_visits],
        "handlers": handlers.counts(),
        "topics": topics,
        "forgotten": cache.forgotten.numbers(),
        "policy": cache.policy.dump(numbers),
    }


def load(state: PlainData) -> Cache:
    """The cache that `dump` was given. Raises StateError where the fields are others."""
    check_fields("Cache", state, FIELDS)
    cache = Cache(CacheSettings.of(state["settings"]))
    cache.now_us, cache.seq = state["now_us"], state["seq"]
    cache.peak_bytes, cache.overshoot_bytes = state["peak_bytes"], state["overshoot_bytes"]
    cache.dead_letters = {DeadReason(reason): count for reason, count in state["dead_letters"].items()}
    cache.steps.misses_by_reason.update(state["misses_by_reason"])
    cache.store.inserted = state["inserted"]
    cache.store.removed_by = {Cause(cause): count for cause, count in state["removed_by"].items()}
    cache.policy.work = Work(*state["work"])
    cache.forgotten = Counts(*state["forgotten"])
    handlers = [Handler(count) for count in state["handlers"]]
    for stored in state["topics"]:
        topic = _loaded_topic(stored, len(cache.topics), handlers, cache.settings)
        cache.topics[topic.name] = topic
        cache.store.limit.current_bytes += topic.entries.size_bytes
        cache.store.entry_count += topic.entries.entry_count
    cache.policy.load(state["policy"], _entries(cache), cache.now_us)
    return cache


class _Handlers:
    """Handlers by number, in the order in which they were met."""

    def __init__(self) -> None:
        self._numbers: dict[Handler, int] = {}

    def number(self, handler: Handler | None) -> int | None:
        """The number of a handler, None for none."""
        return None if handler is None else self._numbers.setdefault(handler, len(self._numbers))

    def counts(self) -> list[int]:
        """The count of each."""
        return [handler.count for handler in self._numbers]


def _entries(cache: Cache) -> list[Entry]:
    """All cached entries: topic by topic, by position."""
    return [entry for topic in cache.topics.values() for entry in topic.entries]


def _topic_state(topic: Topic, handlers: _Handlers) -> PlainData:
    buffers = (topic.from_producer, topic.from_bookie)
    chunks = {chunk: number for number, chunk in enumerate(_chunks(topic))}
    return {
        "name": topic.name,
        "last_removal_us": topic.last_removal_us,
        "last_row_us": topic.last_row_us,
        "last_added": list(topic.last_added),
        "replay_delay_us": topic.replay_delay_us,
        "deleted_ledgers": sorted(topic.deleted_ledgers),
        "highest": [list(end) for end in topic.ends.highest.items()],
        "counts": topic.counts.numbers(),
        "registrations": topic.cursors.registrations,
        "cursors": [_cursor_state(cursor) for cursor in topic.cursors.by_name.values()],
        "marks": [
            [cursor, *position, marked_us]
            for cursor, marked in topic.marks.by_cursor.items()
            for position, marked_us in marked.items()
        ],
        "copies": [
            [cursor, *position, list(map(handlers.number, copies))]
            for cursor, held in topic.copies.by_cursor.items()
            for position, copies in held.items()
        ],
        "reasons": [[*position, str(reason)] for position, reason in topic.reasons.reasons.items()],
        "buffers": [[buffer.index, buffer.shrinks, chunks.get(buffer.chunk)] for buffer in buffers],  # type: ignore[arg-type]
        "chunks": [
            [buffers.index(chunk.buffer), chunk.opened_us, chunk.cap_bytes, chunk.used_bytes] for chunk in chunks
        ],
        "entries": [
            [
                entry.ledger,
                entry.number,
                entry.size,
                handlers.number(entry.handler),
                entry.ts_us,
                entry.requeues,
                entry.accessed,
                None if entry.chunk is None else chunks[entry.chunk],
            ]
            for entry in topic.entries
        ],
    }


def _chunks(topic: Topic) -> dict[Chunk, None]:
    """The receive buffers that hold a cached entry."""
    return dict.fromkeys(entry.chunk for entry in topic.entries if entry.chunk is not None)


def _cursor_state(cursor: Cursor) -> list[Any]:
    read, mark = (None if position is None else list(position) for position in (cursor.read, cursor.mark))
    return [cursor.name, cursor.registration, read, mark, cursor.interval_us, cursor.last_wake_us]


def _loaded_topic(state: PlainData, place: int, handlers: list[Handler], settings: CacheSettings) -> Topic:
    topic = Topic(state["name"], place, state["last_removal_us"], settings)
    topic.last_added = _position(state["last_added"])
    topic.replay_delay_us = state["replay_delay_us"]
    topic.deleted_ledgers = set(state["deleted_ledgers"])
    for ledger, number in state["highest"]:
        topic.ends.note(ledger, number)
    topic.last_row_us = state["last_row_us"]
    topic.counts = Counts(*state["counts"])
    topic.cursors.registrations = state["registrations"]
    for stored in state["cursors"]:
        topic.cursors.restore(_loaded_cursor(stored))
    for cursor, ledger, number, marked_us in state["marks"]:
        topic.marks.add(cursor, (ledger, number), marked_us)
    for cursor, ledger, number, copies in state["copies"]:
        held = topic.copies.by_cursor.setdefault(cursor, {})
        held[ledger, number] = deque(_handler(handlers, copy) for copy in copies)
    topic.reasons.reasons = OrderedDict(((ledger, number), reason) for ledger, number, reason in state["reasons"])
    _load_entries(topic, state, handlers)
    return topic


def _load_entries(topic: Topic, state: PlainData, handlers: list[Handler]) -> None:
    buffers = (topic.from_producer, topic.from_bookie)
    chunks = [_loaded_chunk(buffers[source], *stored) for source, *stored in state["chunks"]]
    for buffer, (index, shrinks, chunk) in zip(buffers, state["buffers"], strict=True):
        buffer.index, buffer.shrinks = index, shrinks
        buffer.chunk = None if chunk is None else chunks[chunk]
    for ledger, number, size, handler, ts_us, requeues, accessed, chunk in state["entries"]:
        held = None if chunk is None else chunks[chunk]
        entry = Entry(topic, ledger, number, size, ts_us, _handler(handlers, handler), held)
        entry.requeues, entry.accessed = requeues, accessed
        topic.entries.add(entry)
        if held is None:
            topic.own_bytes += size
        else:
            held.entries += 1


def _loaded_chunk(buffer: ReceiveBuffer, opened_us: int, cap_bytes: int, used_bytes: int) -> Chunk:
    buffer.pinned_bytes += cap_bytes
    return Chunk(buffer, opened_us, cap_bytes, used_bytes)


def _loaded_cursor(state: list[Any]) -> Cursor:
    name, registration, read, mark, interval_us, last_wake_us = state
    cursor = Cursor(name, registration, None, last_wake_us, interval_us)
    cursor.read = None if read is None else _position(read)
    cursor.mark = None if mark is None else _position(mark)
    return cursor


def _handler(handlers: list[Handler], number: int | None) -> Handler | None:
    return None if number is None else handlers[number]


def _position(stored: list[int]) -> Position:
    ledger, number = stored
    return (ledger, number)
