"""A cache in readable form as the array form of it: the way back from `ArrayCache.cache` (entry-cache 1)."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from headgate.core.cache.broker import Cache
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.settings import PolicyName
from headgate.core.cache.state import dump
from headgate.core.cache.topics.topic import COUNTS
from headgate.core.kernels.cache.arrays import rehash_table, with_room
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.core.kernels.cache.convert.pages_from_readable import FilledPages
from headgate.core.kernels.cache.convert.to_readable import REASONS
from headgate.core.kernels.cache.limits import NUMBER_LIMIT, TIME_LIMIT_US, refusal_of
from headgate.core.kernels.cache.run import settle_limits
from headgate.core.kernels.cache.types import CHUNK, ENTRY, LETTERS, MARK, MISSES, NEVER, NONE, NOTE, REMOVALS
from headgate.core.numbers import MIN
from headgate.core.state import PlainData

_WORK = ("size_passes", "requeues", "visits", "max_pass_visits")
_KEPT = ("now_us", "seq", "peak_bytes", "overshoot_bytes", "inserted")


def array_cache_of(cache: Cache, *, is_logged: bool = False) -> ArrayCache | None:
    """An array form that goes on as the cache would; None where the settings, or numbers in it, have none.

    The policy belady has none: the readable form does not keep what it was told of added entries.
    Takes time linear in what is cached. is_logged: as `ArrayCache` has it.
    """
    if cache.settings.policy is PolicyName.BELADY or refusal_of(cache.settings) is not None:
        return None
    plain = dump(cache)
    if not _fits(plain):
        return None
    made = ArrayCache(cache.settings, is_logged=is_logged)
    _Filling(made, plain["handlers"]).fill(plain)
    return made


class _Filling:
    """Pools as lists of records, topic by topic, which become arrays at the end."""

    def __init__(self, cache: ArrayCache, handlers: list[int]) -> None:
        self._cache = cache
        self._handlers = handlers
        self._pools: dict[str, list[tuple[Any, ...]]] = {"entries": [], "marks": [], "notes": [], "chunks": []}
        self._pages = FilledPages()

    def fill(self, plain: PlainData) -> None:
        topics = plain["topics"]
        for topic in topics:
            self._topic(self._cache.topic_number(topic["name"]), topic)
        sizes = {name: len(rows) for name, rows in self._pools.items()} | {"pages": len(self._pages)}
        arrays = self._cache.arrays = with_room(self._cache.arrays, sizes)
        state = arrays.state[0]
        for name, dtype, end in _POOLS:
            rows = self._pools[name]
            getattr(arrays, name)[: len(rows)] = np.array(rows, dtype)
            state[name] = state[end] = len(rows)
        self._pages.fill(arrays)
        for name in _KEPT:
            state[name] = plain[name]
        for name, count in zip(_WORK, plain["work"], strict=True):
            state[name] = count
        for name, count in zip(COUNTS, plain["forgotten"], strict=True):
            state[f"forgotten_{name}"] = count
        _count(arrays.counts[REMOVALS], plain["removed_by"], REASONS)
        _count(arrays.counts[MISSES], plain["misses_by_reason"], REASONS)
        _count(arrays.counts[LETTERS], plain["dead_letters"], list(DeadReason))
        state["places"] = len(topics)
        state["current_bytes"] = arrays.topics["bytes"][: len(topics)].sum()
        rehash_table(arrays)
        self._order(plain["policy"])
        settle_limits(arrays, int(state["now_us"]))

    def _topic(self, number: int, topic: PlainData) -> None:
        spaces = self._spaces(number, topic)
        self._pages.begin(number, spaces, topic)
        self._cursors(number, spaces, topic)
        own_bytes = self._entries(number, spaces, topic)
        self._notes(number, spaces, topic["reasons"])
        of = self._cache.arrays.topics[number]
        of["place"], of["last_removal_us"], of["replay_delay_us"] = (
            number,
            topic["last_removal_us"],
            topic["replay_delay_us"],
        )
        of["last_row_us"] = topic["last_row_us"]
        of["added_ledger"], of["added_entry"] = topic["last_added"]
        of["registrations"], of["registered"] = topic["registrations"], len(topic["cursors"])
        of["deleted"], of["entries"], of["own_bytes"] = len(topic["deleted_ledgers"]), len(topic["entries"]), own_bytes
        of["bytes"] = sum(entry[2] for entry in topic["entries"])
        for name, count in zip(COUNTS, topic["counts"], strict=True):
            of[name] = count
        self._cache.arrays.topics[number]["placed"] = number

    def _spaces(self, number: int, topic: PlainData) -> dict[int, int]:
        """The numbers of the topic's ledgers."""
        highest, deleted = dict(topic["highest"]), set(topic["deleted_ledgers"])
        reads = (cursor[2][0] for cursor in topic["cursors"] if cursor[2] is not None)
        places = chain(topic["entries"], topic["reasons"], (mark[1:] for mark in topic["marks"]))
        ledgers = sorted({*highest, *deleted, *reads, *(place[0] for place in places)})
        spaces = {ledger: self._cache.space_number(number, ledger) for ledger in ledgers}
        start = 0
        for ledger, space in spaces.items():
            of = self._cache.arrays.spaces[space]
            of["highest"], of["start"], of["is_deleted"] = highest.get(ledger, -1), start, ledger in deleted
            start += highest.get(ledger, -1) + 1
        return spaces

    def _cursors(self, topic: int, spaces: dict[int, int], plain: PlainData) -> None:
        numbers = {cursor[0]: self._cache.cursor_number(topic, cursor[0]) for cursor in plain["cursors"]}
        arrays = self._cache.arrays
        for name, registration, read, mark, interval_us, last_wake_us in plain["cursors"]:
            of = arrays.cursors[numbers[name]]
            of["registration"], of["interval_us"], of["last_wake_us"] = registration, interval_us, last_wake_us
            of["is_tracked"], of["has_mark"] = read is not None, mark is not None
            if read is not None:
                (of["read_ledger"], of["read_entry"]), of["read_space"] = read, spaces[read[0]]
            if mark is not None:
                of["mark_ledger"], of["mark_entry"] = mark
            marks = [place for place in plain["marks"] if place[0] == name]
            of["first_mark"], of["last_mark"] = self._marks(numbers[name], spaces, marks)
        its = arrays.topics[topic]
        its["first_cursor"], its["last_cursor"] = _link(arrays.cursors, list(numbers.values()))

    def _marks(self, cursor: int, spaces: dict[int, int], marks: list[Any]) -> tuple[int, int]:
        """Mark what a cursor will read again; the first and the last of its marks."""
        rows, first = self._pools["marks"], len(self._pools["marks"])
        last = first + len(marks) - 1
        for place, (_, ledger, number, at_us) in enumerate(marks, first):
            page, same = self._pages.mark(spaces[ledger], number, place)
            before, after = (place - 1 if place > first else NONE), (place + 1 if place < last else NONE)
            rows.append((at_us, number, cursor, spaces[ledger], page, same, before, after))
        return (first, last) if marks else (NONE, NONE)

    def _entries(self, topic: int, spaces: dict[int, int], plain: PlainData) -> int:
        """Cache the topic's entries, in no order yet; returns the bytes of those that are in no receive buffer."""
        rows, first = self._pools["entries"], len(self._pools["entries"])
        first_chunk = len(self._pools["chunks"])
        held, own_bytes = [0] * len(plain["chunks"]), 0
        for place, (ledger, number, size, handler, ts_us, requeues, accessed, chunk) in enumerate(
            plain["entries"], first
        ):
            page = self._pages.cache(spaces[ledger], number, place)
            count = 0 if handler is None else self._handlers[handler]
            if chunk is None:
                own_bytes += size
            else:
                held[chunk] += 1
            buffer = NONE if chunk is None else first_chunk + chunk
            of = (number, ts_us, size, count, requeues, spaces[ledger], page, NONE, NONE, buffer)
            rows.append((*of, accessed, handler is not None, 0))
        arrays = self._cache.arrays
        for (source, opened_us, cap_bytes, used_bytes), entries in zip(plain["chunks"], held, strict=True):
            self._pools["chunks"].append((2 * topic + source, opened_us, cap_bytes, used_bytes, entries))
            arrays.buffers[2 * topic + source]["pinned_bytes"] += cap_bytes
        for source, (index, shrinks, chunk) in enumerate(plain["buffers"]):
            of = arrays.buffers[2 * topic + source]
            of["index"], of["shrinks"], of["chunk"] = index, shrinks, NONE if chunk is None else first_chunk + chunk
        return own_bytes

    def _notes(self, topic: int, spaces: dict[int, int], reasons: list[Any]) -> None:
        rows, first = self._pools["notes"], len(self._pools["notes"])
        last = first + len(reasons) - 1
        for place, (ledger, number, reason) in enumerate(reasons, first):
            page = self._pages.note(spaces[ledger], number, place)
            older, newer = (place - 1 if place > first else NONE), (place + 1 if place < last else NONE)
            rows.append((number, spaces[ledger], page, REASONS.index(reason), older, newer, 0))
        of = self._cache.arrays.topics[topic]
        of["first_note"], of["last_note"] = (first, last) if reasons else (NONE, NONE)
        of["notes"] = len(reasons)

    def _order(self, policy: PlainData) -> None:
        """The order of entries, or which topics are to be looked through; entries of all topics are numbered alike."""
        arrays = self._cache.arrays
        state = arrays.state[0]
        if "sweeps" in policy:
            self._sweeps(policy["sweeps"])
            listed = range(len(self._pools["entries"]))  # no matter in which order
        else:
            listed = policy["queue"] if "queue" in policy else policy["order"]
        state["head"], state["tail"] = _link(arrays.entries, list(listed), "older", "newer")
        state["hand"] = NONE if policy.get("hand") is None else policy["hand"]

    def _sweeps(self, sweeps: PlainData) -> None:
        arrays = self._cache.arrays
        state = arrays.state[0]
        for place, name in enumerate(sweeps["changed"]):
            number = self._cache.topic_number(name)
            arrays.topics[number]["is_changed"], arrays.topics[place]["changed"] = 1, number
        for name, at_us in sweeps["waiting"].items():
            arrays.topics[self._cache.topic_number(name)]["waits_us"] = at_us
        state["changed"] = len(sweeps["changed"])
        earliest_us = min(sweeps["waiting"].values(), default=NEVER)
        state["earliest_us"] = earliest_us
        if state["changed"] or earliest_us != NEVER:
            now_us, interval_us = int(state["now_us"]), int(state["interval_us"])
            after_us = now_us if state["changed"] else max(now_us, earliest_us - 1)
            state["due_us"] = (after_us // interval_us + 1) * interval_us


_POOLS: tuple[tuple[str, Any, str], ...] = (
    ("entries", ENTRY, "entry_end"),
    ("marks", MARK, "mark_end"),
    ("notes", NOTE, "note_end"),
    ("chunks", CHUNK, "chunk_end"),
)


def _link(pool: Any, places: list[int], before: str = "before", after: str = "after") -> tuple[int, int]:
    """List the places of a pool in this order; the first and the last of them."""
    if not places:
        return int(NONE), int(NONE)
    pool[before][places[0]], pool[after][places[-1]] = NONE, NONE
    pool[before][places[1:]], pool[after][places[:-1]] = places[:-1], places[1:]
    return places[0], places[-1]


def _count(counts: Any, by_name: PlainData, names: Any) -> None:
    for name, count in by_name.items():
        counts[[str(one) for one in names].index(name)] = count


def _fits(plain: PlainData) -> bool:
    """Whether all numbers leave room to calculate in 64 bits, as `limits.fits` says it of rows."""
    bounds = {TIME_LIMIT_US: _times(plain), NUMBER_LIMIT + 1: _numbers(plain)}
    return all(-limit < number < limit for limit, numbers in bounds.items() for number in numbers)


def _times(plain: PlainData) -> Iterator[int]:
    if plain["now_us"] != MIN:
        yield plain["now_us"]
    for topic in plain["topics"]:
        yield from (topic["last_removal_us"], topic["last_row_us"], topic["replay_delay_us"])
        yield from chain.from_iterable(cursor[4:] for cursor in topic["cursors"])
        yield from (mark[3] for mark in topic["marks"])
        yield from (entry[4] for entry in topic["entries"])
        yield from (chunk[1] for chunk in topic["chunks"])


def _numbers(plain: PlainData) -> Iterator[int]:
    yield from (plain[name] for name in _KEPT[2:])
    yield from chain(plain["work"], plain["handlers"], plain["forgotten"])
    for topic in plain["topics"]:
        yield from chain(topic["last_added"], topic["deleted_ledgers"], topic["counts"])
        yield from chain.from_iterable(topic["highest"])
        yield sum(number + 1 for _, number in topic["highest"])
        for cursor in topic["cursors"]:
            yield from chain.from_iterable(position for position in cursor[2:4] if position is not None)
        yield from chain.from_iterable(mark[1:3] for mark in topic["marks"])
        yield from chain.from_iterable(reason[:2] for reason in topic["reasons"])
        yield from chain.from_iterable((*entry[:2], entry[5]) for entry in topic["entries"])
