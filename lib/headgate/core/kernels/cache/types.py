"""Arrays that the kernels of the entry cache work on. Times are microseconds; links are places in a pool or NONE.

Topics, cursors and spaces have numbers instead of names; a space is a ledger of a topic. Entries are found by pages of
64 positions: a read of many entries looks up a page, then steps from slot to slot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
Records = NDArray[Any]

NONE: Any = np.int64(-1)
NEVER: Any = np.int64(2**63 - 1)
PAGE_BITS = 6
PAGE_ENTRIES = 1 << PAGE_BITS
COUNT_MAX = 10_000

PIP430, LRU, FIFO, SIEVE, DISTANCE, BELADY = map(np.int64, range(6))
"""Policies."""
(ADD, OPEN, MOVE, MARK_DELETE, CLOSE, READ, REPLAY_ADD, REPLAY_READ, RELEASE, LEDGER_DELETE, TOPIC_CLEAR, CONF) = map(
    np.int64, range(12)
)
"""Kinds of rows, in the order of `rows.EventKind`. Below 0: a row that was refused for its form, NONE - its reason."""
(UNKNOWN_KIND, BAD_ROW, LATE, UNKNOWN_CURSOR, CURSOR_EXISTS, LEDGER_DELETED, NOT_INCREASING, UNKNOWN_COPY) = map(
    np.int64, range(8)
)
"""Why rows are refused, in the order of `reasons.DeadReason`."""
EXPIRED, EVICTED, DROPPED, INVALIDATED = map(np.int64, range(4))
"""Why entries left, in the order of `reasons.Cause`. A missed entry's reason is that, or one of these:"""
COLD, PARTIAL, NOT_ADMITTED, REFUSED = map(np.int64, range(4, 8))
REASONS = 8
REMOVALS, MISSES, LETTERS = range(3)
"""Rows of counts."""
MARKED, NOTED = PAGE_ENTRIES, 2 * PAGE_ENTRIES
BOUNDS = 53
"""Behind the table of sizes of receive buffers."""
PRODUCER, STORAGE, STORAGE_COPY = map(np.int64, range(3))
"""Where the bytes of an insertion come from."""
DONE, AT_CONF, NEEDS_ROOM = range(3)
"""Why a run stopped: all rows are done, a row changes the settings, a row needs larger pools."""


def _of_ints(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


def _of_links(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int32) for name in names]


ENTRY = np.dtype(
    [
        *_of_ints("number", "ts_us", "size", "count", "requeues"),
        *_of_links("space", "page", "older", "newer", "chunk"),
        *[("accessed", np.int8), ("is_handled", np.int8), ("spare", np.int16)],
    ]
)
"""A cached entry, as large as a cache line. count: reads expected, where it has a handler. older, newer: in the queue
of pip430, or the order of the other policies. newer: the next free one. chunk: NONE where it holds its own bytes.

With belady `count` is the number of its next read, `older` its place in the heap.
"""
PAGE = np.dtype(
    [
        *[("number", np.int64), ("cached", np.uint64), ("marked", np.uint64), ("noted", np.uint64)],
        *_of_links("space", "same", "before", "after"),
    ]
)
"""64 positions of a space. cached, marked, noted: a bit a position. same: the next one of its hash chain, or the next
free one. before, after: among the pages of its topic; with cursor_distance they are in order.
"""
SPACE = np.dtype(_of_ints("topic", "ledger", "highest", "start", "is_deleted", "before", "after"))
"""highest: entry number seen, NONE for none. start: the entries of the ledgers before it. before, after: by ledger."""
TOPIC = np.dtype(
    _of_ints(
        *("place", "last_removal_us", "last_row_us", "added_ledger", "added_entry", "replay_delay_us"),
        *("registrations", "registered", "first_cursor", "last_cursor", "first_page", "last_page"),
        *("first_space", "last_space", "deleted", "first_note", "last_note", "notes"),
        *("hits", "hit_bytes", "misses", "storage_bytes", "storage_ops"),
        *("bytes", "entries", "own_bytes", "is_changed", "waits_us", "placed", "changed"),
    )
)
"""place: in order of first appearance, NONE before. waits_us: when a sweep does something without a change.

Two lists of topics stand beside: placed, in order of first appearance; changed, those to sweep.
"""
CURSOR = np.dtype(
    _of_ints(
        *("topic", "registration", "is_tracked", "has_mark", "read_ledger", "read_entry", "mark_ledger", "mark_entry"),
        *("read_space", "interval_us", "last_wake_us", "before", "after", "first_mark", "last_mark"),
    )
)
"""registration: 0 while it is not registered. before, after: among the registered ones of its topic."""
MARK = np.dtype(_of_ints("at_us", "number") + _of_links("cursor", "space", "page", "same", "before", "after"))
"""same: the next cursor's at this position. before, after: among those of the cursor; after: the next free one."""
NOTE = np.dtype(_of_ints("number") + _of_links("space", "page", "reason", "older", "newer", "spare"))
"""Why a position is not cached. newer: the next free one."""
BUFFER = np.dtype(_of_ints("index", "shrinks", "chunk", "pinned_bytes"))
"""Receive buffers: two a topic, of the producer and of storage."""
CHUNK = np.dtype(_of_ints("buffer", "opened_us", "cap_bytes", "used_bytes", "entries"))
"""buffer: the next free one, where no entry is in it."""
LANE = np.dtype(
    _of_ints("next_us", "place", "entry", "page", "below", "replayed", "first", "near", "nears", "cap_us", "heaped")
)
"""Entries between two cursor positions. entry: its candidate, below which `page` and `below` go on. first: the approach
whose position is its lowest, NONE: without end. near, nears: the approaches that it is measured by.
"""
APPROACH = np.dtype(_of_ints("ledger", "entry", "registration", "wait_us", "ordinal", "interval_us"))
SORTING = np.dtype(_of_ints("key", "spare_key") + _of_links("id", "spare_id"))
"""Room to sort ids by keys in."""
ROW = np.dtype(
    [
        *_of_ints("t_us", "seq", "entry", "first_size", "removed"),
        *_of_links("topic", "cursor", "space", "count", "hits", "misses"),
        *[("kind", np.int8), ("dead", np.int8), ("has_sizes", np.int8), ("spare", np.int8), ("more", np.int32)],
    ]
)
"""A row that passed the checks of its form, or the place of one that did not. space: NONE for no position. has_sizes:
one for each entry from `first_size` on. What it did: hits, misses, dead (NONE: accepted), removed (the end of its
removals in the log).
"""
REMOVED = np.dtype(_of_ints("number") + _of_links("space", "cause"))
FUTURE = np.dtype(_of_ints("number") + _of_links("space", "read", "next", "heaped"))
"""An entry that a row to come adds or reads. read: its number among the reads, from 1, 0 where it is none. next: the
number of the next read of the position behind it, 0 for none.

A list stands beside: heaped, the heap of the cached entries. Each of them waits for a read, so there is room for it.
"""

STATE = np.dtype(
    _of_ints(
        *("policy", "is_whole", "max_bytes", "trigger_bytes", "target_bytes", "goal_bytes", "ttl_us", "interval_us"),
        *("max_requeue", "extends", "strategy", "grace_us", "copies_all", "copies_reads", "adopts", "by_mark"),
        *("batch", "look", "wake_init_us", "replay_init_us", "memory", "window_us", "is_logged"),
        *("now_us", "seq", "due_us", "is_over", "head", "tail", "hand", "current_bytes", "peak_bytes"),
        *("overshoot_bytes", "inserted", "size_passes", "requeues", "visits", "max_pass_visits", "places", "changed"),
        *("earliest_us", "entries", "entry_end", "free_entry", "pages", "page_end", "free_page", "marks", "mark_end"),
        *("free_mark", "notes", "note_end", "free_note", "chunks", "chunk_end", "free_chunk", "logged", "status"),
        *("is_beyond", "page", "told_at", "told_end", "told", "heaped"),
        *("forgotten_hits", "forgotten_hit_bytes", "forgotten_misses", "forgotten_storage_bytes"),
        *("forgotten_storage_ops",),
    )
)
"""What a broker has once, the settings as numbers first. Of each pool: how many are in use, the end of those ever used,
the first free one.

goal_bytes: where a pass of cursor_distance ends. is_logged: removals are listed. changed: topics to sweep. earliest_us:
no topic waits for an instant before it. is_beyond: a time until a read did not fit a number. page: looked up last.
told_at, told_end: what of `future` is still to come. told: how many reads were told. heaped: entries in the heap.
forgotten_: sums of the topics that were forgotten.
"""


class CacheArrays(NamedTuple):
    """Everything that one run works on; few arrays, because each makes every function compile longer.

    counts: REMOVALS, MISSES and LETTERS, by their numbers. slots: by page and position the entry, from MARKED on the
    first mark, from NOTED on the note. table: first pages of hash chains. buffer_sizes: guesses, from BOUNDS on the
    least, first and largest of the producer and of storage. found: the entries that a read looked up.
    """

    state: Records
    counts: Ints
    entries: Records
    pages: Records
    slots: Ints
    table: Ints
    spaces: Records
    topics: Records
    cursors: Records
    marks: Records
    notes: Records
    buffers: Records
    buffer_sizes: Ints
    chunks: Records
    found: Ints
    sorting: Records
    lanes: Records
    approaches: Records
    removed: Records
    rows: Records
    sizes: Ints
    future: Records
