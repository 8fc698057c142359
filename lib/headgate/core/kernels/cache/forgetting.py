"""Topics that are forgotten, and numbers that nothing has any more (entry-cache 3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import int64

from headgate.core.kernels.cache.notes import forget
from headgate.core.kernels.cache.pages import settle
from headgate.core.kernels.cache.types import BELADY, BOUNDS, NEVER, NONE, CacheArrays
from headgate.core.kernels.compiled import inner, kernel


@kernel
def forget_topics(c: CacheArrays, before_us: int64) -> None:
    """Make the topics that hold nothing and had no row from that time on as ones that no row was applied to yet."""
    state, kept = c.state[0], int64(0)
    for place in range(state.places):
        topic = int64(c.topics[place].placed)
        of = c.topics[topic]
        if of.last_row_us < before_us and of.registered == 0 and of.entries == 0:
            _forget_topic(c, topic)
        else:
            of.place = kept
            c.topics[kept].placed = topic
            kept += 1
    state.places = kept
    kept = int64(0)
    for place in range(state.changed):
        topic = int64(c.topics[place].changed)
        if c.topics[topic].place != NONE:
            c.topics[kept].changed = topic
            kept += 1
    state.changed = kept


@inner
def _forget_topic(c: CacheArrays, topic: int64) -> None:
    of, state = c.topics[topic], c.state[0]
    while of.first_note != NONE:
        page = int64(c.notes[of.first_note].page)
        forget(c, page, c.notes[of.first_note].number)
        settle(c, page)
    space = int64(of.first_space)
    while space != NONE:
        c.spaces[space].highest, c.spaces[space].start, c.spaces[space].is_deleted = NONE, 0, 0
        space = int64(c.spaces[space].after)
    state.forgotten_hits += of.hits
    state.forgotten_hit_bytes += of.hit_bytes
    state.forgotten_misses += of.misses
    state.forgotten_storage_bytes += of.storage_bytes
    state.forgotten_storage_ops += of.storage_ops
    of.hits, of.hit_bytes, of.misses, of.storage_bytes, of.storage_ops = 0, 0, 0, 0, 0
    of.place, of.added_ledger, of.added_entry = NONE, NONE, NONE
    of.registrations, of.deleted, of.is_changed, of.waits_us = 0, 0, 0, NEVER
    of.replay_delay_us = state.replay_init_us
    for source in range(2):
        buffer = c.buffers[2 * topic + source]
        buffer.index, buffer.shrinks = c.buffer_sizes[BOUNDS + 3 * source + 1], 0


def without_unused(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `ArrayCache.dump` gave, without topics, cursors and ledgers that nothing is known of, if they are half of
    their kind: others have lower numbers then.
    """
    arrays = stored["arrays"]
    topics, cursors, spaces = (arrays[name] for name in ("topics", "cursors", "spaces"))
    of_topics, of_cursors = topics["place"] != NONE, cursors["registration"] != 0
    of_spaces = _spaces_in_use(arrays, of_cursors)
    is_full = all(2 * used.sum() > len(used) for used in (of_topics, of_cursors, of_spaces) if len(used))
    if is_full or arrays["state"]["policy"][0] == BELADY:
        return stored
    topic, cursor, space = map(_renumbered, (of_topics, of_cursors, of_spaces))
    made = dict(arrays)
    made["spaces"] = _renamed(spaces[of_spaces], topic=topic)
    made["cursors"] = _renamed(cursors[of_cursors], topic=topic, read_space=space, before=cursor, after=cursor)
    made["topics"] = _renamed(topics[of_topics], first_cursor=cursor, last_cursor=cursor)
    for name, listed in (("placed", "places"), ("changed", "changed")):
        count = int(arrays["state"][listed][0])
        made["topics"][name][:count] = topic[topics[name][:count]]
    _link_spaces(made["topics"], made["spaces"])
    for name in ("entries", "pages", "notes"):
        made[name] = _renamed(arrays[name], space=space)
    made["marks"] = _renamed(arrays["marks"], space=space, cursor=cursor)
    made["buffers"] = arrays["buffers"].reshape(-1, 2)[of_topics].reshape(-1)
    made["chunks"] = chunks = arrays["chunks"].copy()
    held = chunks["entries"] > 0
    chunks["buffer"][held] = 2 * topic[chunks["buffer"][held] // 2] + chunks["buffer"][held] % 2
    return {
        **stored,
        "topics": [name for name, is_used in zip(stored["topics"], of_topics, strict=True) if is_used],
        "cursors": [
            (int(topic[of]), name) for (of, name), is_used in zip(stored["cursors"], of_cursors, strict=True) if is_used
        ],
        "arrays": made,
    }


def _spaces_in_use(arrays: Mapping[str, Any], of_cursors: Any) -> Any:
    """Ledgers with an end, those that were deleted, and those that a page or a cursor is in."""
    spaces, pages, cursors = arrays["spaces"], arrays["pages"], arrays["cursors"]
    used = (spaces["highest"] != NONE) | (spaces["is_deleted"] != 0)
    used[pages["space"][(pages["cached"] | pages["marked"] | pages["noted"]) != 0]] = True
    used[cursors["read_space"][of_cursors & (cursors["is_tracked"] != 0)]] = True
    return used


def _renumbered(used: Any) -> Any:
    """By number the new one; NONE for those that go, for NONE, and behind all."""
    return np.append(np.where(used, np.cumsum(used) - 1, NONE), NONE)


def _renamed(pool: Any, **numbers: Any) -> Any:
    """A copy whose fields of these names have the new numbers. What is free may have any."""
    renamed = pool.copy()
    for field, new in numbers.items():
        renamed[field] = new[np.minimum(pool[field], len(new) - 1)]
    return renamed


def _link_spaces(topics: Any, spaces: Any) -> None:
    """List the ledgers of each topic."""
    order = np.lexsort((spaces["ledger"], spaces["topic"]))
    of = spaces["topic"][order]
    begins = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: len(of)])
    ends = np.append(begins[1:], len(of)) - 1 if len(of) else begins
    before, after = np.append(NONE, order[:-1])[: len(of)], np.append(order[1:], NONE)[: len(of)]
    before[begins], after[ends] = NONE, NONE
    spaces["before"][order], spaces["after"][order] = before, after
    topics["first_space"], topics["last_space"] = NONE, NONE
    topics["first_space"][of[begins]], topics["last_space"][of[ends]] = order[begins], order[ends]
