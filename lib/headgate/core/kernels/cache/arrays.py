"""The arrays of a cache: made, enlarged, taken down between batches and put back (entry-cache 1)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headgate.core.cache.settings import CacheSettings
from headgate.core.kernels.cache.limits import buffer_sizes_of
from headgate.core.kernels.cache.pages import rehash
from headgate.core.kernels.cache.types import (
    APPROACH,
    BUFFER,
    CHUNK,
    COUNT_MAX,
    CURSOR,
    ENTRY,
    FUTURE,
    LANE,
    MARK,
    NEVER,
    NONE,
    NOTE,
    PAGE,
    PAGE_ENTRIES,
    REASONS,
    REMOVED,
    ROW,
    SORTING,
    SPACE,
    STATE,
    TOPIC,
    CacheArrays,
    Ints,
    Records,
)
from headgate.core.kernels.compiled import kernel
from headgate.core.numbers import MIN

START = 64
COUNTING = 257
"""Places behind `found` that a sort counts in."""
_LINKS = ("head", "tail", "hand", "free_entry", "free_page", "free_mark", "free_note", "free_chunk", "page")


def new_arrays(settings: CacheSettings) -> CacheArrays:
    """The arrays of an empty cache."""
    state = np.zeros(1, STATE)
    for name in _LINKS:
        state[name] = NONE
    state["now_us"], state["seq"], state["due_us"], state["earliest_us"] = MIN, -1, NEVER, NEVER
    empty = {name: np.zeros(0, dtype) for name, dtype in _POOLS.items()}
    rooms = {name: np.zeros(0, dtype) for name, dtype in _ROOMS.items()}
    planes = 3 if settings.reason_memory else 2
    arrays = CacheArrays(
        state=state,
        counts=np.zeros((3, REASONS), np.int64),
        slots=np.full((0, planes * PAGE_ENTRIES), NONE, np.int32),
        table=np.full(2, NONE, np.int32),
        buffer_sizes=np.array(buffer_sizes_of(settings), np.int64),
        found=np.zeros(COUNT_MAX + COUNTING, np.int32),
        rows=np.zeros(0, ROW),
        sizes=np.zeros(0, np.int64),
        **empty,
        **rooms,
    )
    return with_room(arrays, dict.fromkeys(_POOLS, START))


_POOLS: Mapping[str, Any] = {
    "entries": ENTRY,
    "pages": PAGE,
    "spaces": SPACE,
    "topics": TOPIC,
    "cursors": CURSOR,
    "marks": MARK,
    "notes": NOTE,
    "chunks": CHUNK,
    "removed": REMOVED,
    "future": FUTURE,
}
_ROOMS: Mapping[str, Any] = {
    "sorting": SORTING,
    "lanes": LANE,
    "approaches": APPROACH,
    "buffers": BUFFER,
}
_USED = {
    "entries": "entry_end",
    "pages": "page_end",
    "marks": "mark_end",
    "notes": "note_end",
    "chunks": "chunk_end",
    "future": "told_end",
}


def with_room(arrays: CacheArrays, sizes: Mapping[str, int]) -> CacheArrays:
    """The arrays with pools of at least these sizes, each enlarged at least twofold; what is in them stays."""
    larger: dict[str, Any] = {}
    for name, size in sizes.items():
        held = getattr(arrays, name)
        if size > held.size:
            larger[name] = _enlarged(held, max(size, 2 * held.size))
    if "pages" in larger:
        rows = larger["pages"].size
        larger["slots"] = _enlarged(arrays.slots, rows)
        larger["table"] = np.full(2 << (rows - 1).bit_length(), NONE, np.int32)
    arrays = arrays._replace(**larger)
    arrays = arrays._replace(**_rooms(arrays))
    if "table" in larger:
        rehash_table(arrays)
    return arrays


@kernel
def rehash_table(c: CacheArrays) -> None:
    """Make all pages findable in a new table."""
    rehash(c)


def _rooms(arrays: CacheArrays) -> dict[str, Any]:
    """What grows with the pools."""
    topics, cursors = arrays.topics.size, arrays.cursors.size
    sizes = {
        "sorting": max(arrays.entries.size, arrays.pages.size, topics),
        "lanes": 2 * (cursors + topics) + 2,
        "approaches": cursors,
        "buffers": 2 * topics,
    }
    return {
        name: _enlarged(getattr(arrays, name), size)
        for name, size in sizes.items()
        if size > getattr(arrays, name).size
    }


def _enlarged(held: Any, rows: int) -> Any:
    larger = np.zeros((rows, *held.shape[1:]), held.dtype)
    larger[: len(held)] = held
    return larger


def taken_down(arrays: CacheArrays, topics: int, cursors: int, spaces: int) -> dict[str, Records | Ints]:
    """What is kept between batches, by name: copies, as long as what was ever in use."""
    state = arrays.state[0]
    ends = {name: int(state[end]) for name, end in _USED.items()}
    ends |= {"topics": topics, "cursors": cursors, "spaces": spaces, "buffers": 2 * topics}
    ends["slots"] = ends["pages"]
    kept = {name: getattr(arrays, name)[:end].copy() for name, end in ends.items()}
    kept |= {name: getattr(arrays, name).copy() for name in ("state", "counts")}
    return kept


def put_back(settings: CacheSettings, kept: Mapping[str, Any]) -> CacheArrays:
    """Arrays that behave as those that were taken down."""
    arrays = new_arrays(settings)
    arrays = with_room(arrays, {name: len(kept[name]) for name in _POOLS if name in kept})
    for name, held in kept.items():
        _put(getattr(arrays, name), held)
    rehash_table(arrays)
    return arrays


def _put(pool: Any, held: Any) -> None:
    """What was kept, field by field: one that came later is as in an empty cache."""
    if held.dtype.names is None:
        pool[: len(held)] = held
    for name in held.dtype.names or ():
        pool[name][: len(held)] = held[name]


def enough_for(arrays: CacheArrays, count: int) -> dict[str, int]:
    """Sizes of pools with which a row of so many entries fits: what the kernel asks for before each row."""
    state = arrays.state[0]
    cached = int(state["entries"]) + count
    sizes = {
        "entries": cached,
        "pages": int(state["pages"]) + count // PAGE_ENTRIES + 2,
        "marks": int(state["marks"]) + count,
        "chunks": int(state["chunks"]) + count,
    }
    memory = int(state["memory"])
    if memory:
        sizes["notes"] = min(int(state["notes"]) + cached, (int(state["places"]) + 1) * memory) + 1
    if state["is_logged"]:
        sizes["removed"] = int(state["logged"]) + cached
    return sizes


def rows_of(columns: Mapping[str, Any]) -> Records:
    """Columns as rows, by the names of ROW: numbers of topics, cursors and spaces as the cache gave them."""
    rows = np.zeros(len(columns["t_us"]), ROW)
    for name, column in columns.items():
        rows[name] = column
    return rows
