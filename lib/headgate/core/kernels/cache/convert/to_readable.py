"""The arrays of a cache as the plain data of the readable form (entry-cache 1)."""

from collections.abc import Mapping
from typing import Any, Protocol

from headgate.core.cache.reasons import Cause, DeadReason, MissReason
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.topics.topic import COUNTS
from headgate.core.kernels.cache.policies.future import Hearing
from headgate.core.kernels.cache.types import NONE, PAGE_ENTRIES, REMOVALS, CacheArrays
from headgate.core.state import PlainData

REASONS: tuple[str, ...] = (*Cause, MissReason.COLD, MissReason.PARTIAL, MissReason.NOT_ADMITTED, MissReason.REFUSED)


class InArrays(Protocol):
    """What is asked of a cache in arrays."""

    settings: CacheSettings
    arrays: CacheArrays
    topic_names: list[str]
    hearing: Hearing

    @property
    def dead_letters(self) -> Mapping[DeadReason, int]: ...
    def cursor_names(self) -> list[tuple[int, str]]: ...
    def misses_by_reason(self) -> dict[str, int]: ...


def plain_of(cache: InArrays) -> PlainData:
    """What `state.dump` gives of a readable cache that was fed the same rows; every topic is to be swept again."""
    arrays, state = cache.arrays, cache.arrays.state[0]
    numbers = arrays.topics["placed"][: state["places"]].tolist()
    names = {topic: cache.topic_names[topic] for topic in numbers}
    cached = {topic: _cached(arrays, topic) for topic in numbers}
    order = {entry: place for place, entry in enumerate(entry for topic in numbers for entry in cached[topic])}
    handlers = [entry for entry in order if arrays.entries[entry]["is_handled"]]
    handler_numbers = {entry: number for number, entry in enumerate(handlers)}
    cursor_names = cache.cursor_names()
    topics = [_topic(arrays, topic, names[topic], cursor_names, cached[topic], handler_numbers) for topic in numbers]
    return {
        "settings": cache.settings.values(),
        "now_us": int(state["now_us"]),
        "seq": int(state["seq"]),
        "peak_bytes": int(state["peak_bytes"]),
        "overshoot_bytes": int(state["overshoot_bytes"]),
        "dead_letters": {str(reason): count for reason, count in cache.dead_letters.items()},
        "misses_by_reason": cache.misses_by_reason(),
        "inserted": int(state["inserted"]),
        "removed_by": {str(cause): int(count) for cause, count in zip(Cause, arrays.counts[REMOVALS], strict=False)},
        "work": [int(state[name]) for name in ("size_passes", "requeues", "visits", "max_pass_visits")],
        "handlers": [int(arrays.entries[entry]["count"]) for entry in handlers],
        "topics": topics,
        "forgotten": [int(state[f"forgotten_{count}"]) for count in COUNTS],
        "policy": _policy(cache, order, list(names.values())),
    }


def _policy(cache: InArrays, order: dict[int, int], names: list[str]) -> PlainData:
    policy, arrays, state = cache.settings.policy, cache.arrays, cache.arrays.state[0]
    if policy is PolicyName.CURSOR_DISTANCE:
        return {"sweeps": {"changed": names, "waiting": {}}}
    if policy is PolicyName.BELADY:
        return _future(cache, order)
    listed = [order[entry] for entry in _linked(arrays.entries, int(state["head"]), "newer")]
    if policy is PolicyName.SIEVE:
        return {"order": listed, "hand": order.get(int(state["hand"]))}
    return {"queue" if policy is PolicyName.PIP430 else "order": listed}


def _future(cache: InArrays, order: dict[int, int]) -> PlainData:
    """The reads to come by position, the last one first, and the next one of each cached entry."""
    arrays, state = cache.arrays, cache.arrays.state[0]
    to_come = arrays.future[state["told_at"] : state["told_end"]][["space", "number", "read"]]
    reads: dict[tuple[int, int], list[int]] = {}
    for space, number, read in reversed(to_come[to_come["read"] > 0].tolist()):
        reads.setdefault((space, number), []).append(read)
    return {
        "reads": [[*_place(cache, space), number, numbers] for (space, number), numbers in reads.items()],
        "told": int(state["told"]),
        "heard": list(cache.hearing.heard),
        "deleted": {cache.topic_names[topic]: sorted(held) for topic, held in cache.hearing.deleted.items()},
        "next": [[place, int(arrays.entries[entry]["count"])] for entry, place in order.items()],
    }


def _place(cache: InArrays, space: int) -> tuple[str, int]:
    """The topic and the ledger of a space."""
    of = cache.arrays.spaces[space]
    return cache.topic_names[of["topic"]], int(of["ledger"])


def _linked(pool: Any, first: int, link: str) -> list[int]:
    """The places of a list."""
    places = []
    while first != NONE:
        places.append(first)
        first = int(pool[first][link])
    return places


def _cached(arrays: CacheArrays, topic: int) -> list[int]:
    """The entries of a topic by position."""
    pages = _linked(arrays.pages, int(arrays.topics[topic]["first_page"]), "after")
    found = [entry for page in pages for entry in arrays.slots[page, :PAGE_ENTRIES].tolist() if entry != NONE]
    ledgers, entries = arrays.spaces["ledger"], arrays.entries
    return sorted(found, key=lambda entry: (int(ledgers[entries[entry]["space"]]), int(entries[entry]["number"])))


def _topic(
    arrays: CacheArrays,
    topic: int,
    name: str,
    names: list[tuple[int, str]],
    cached: list[int],
    handlers: dict[int, int],
) -> PlainData:
    of, ledgers = arrays.topics[topic], arrays.spaces["ledger"]
    spaces = arrays.spaces[_linked(arrays.spaces, int(of["first_space"]), "after")]
    cursors = _linked(arrays.cursors, int(of["first_cursor"]), "after")
    buffers = arrays.buffers[2 * topic : 2 * topic + 2].tolist()
    chunks = list(dict.fromkeys(chunk for entry in cached if (chunk := int(arrays.entries[entry]["chunk"])) != NONE))
    notes = arrays.notes[_linked(arrays.notes, int(of["first_note"]), "newer")]
    return {
        "name": name,
        "last_removal_us": int(of["last_removal_us"]),
        "last_row_us": int(of["last_row_us"]),
        "last_added": [int(of["added_ledger"]), int(of["added_entry"])],
        "replay_delay_us": int(of["replay_delay_us"]),
        "deleted_ledgers": spaces["ledger"][spaces["is_deleted"] != 0].tolist(),
        "highest": [[int(end["ledger"]), int(end["highest"])] for end in spaces if end["highest"] != NONE],
        "counts": [int(of[count]) for count in COUNTS],
        "registrations": int(of["registrations"]),
        "cursors": [_cursor(arrays.cursors[cursor], names[cursor][1]) for cursor in cursors],
        "marks": [
            [names[cursor][1], int(ledgers[mark["space"]]), int(mark["number"]), int(mark["at_us"])]
            for cursor in cursors
            for mark in arrays.marks[_linked(arrays.marks, int(arrays.cursors[cursor]["first_mark"]), "after")]
        ],
        "copies": [],
        "reasons": [[int(ledgers[n["space"]]), int(n["number"]), str(REASONS[n["reason"]])] for n in notes],
        "buffers": [
            [index, bool(shrinks), None if chunk == NONE else chunks.index(chunk)]
            for index, shrinks, chunk, _ in buffers
        ],
        "chunks": [
            [int(of["buffer"]) & 1, int(of["opened_us"]), int(of["cap_bytes"]), int(of["used_bytes"])]
            for of in arrays.chunks[chunks]
        ],
        "entries": [_entry(arrays, entry, chunks, handlers) for entry in cached],
    }


def _cursor(of: Any, name: str) -> list[Any]:
    read = [int(of["read_ledger"]), int(of["read_entry"])] if of["is_tracked"] else None
    mark = [int(of["mark_ledger"]), int(of["mark_entry"])] if of["has_mark"] else None
    return [name, int(of["registration"]), read, mark, int(of["interval_us"]), int(of["last_wake_us"])]


def _entry(arrays: CacheArrays, entry: int, chunks: list[int], handlers: dict[int, int]) -> list[Any]:
    of = arrays.entries[entry]
    numbers = [int(arrays.spaces[of["space"]]["ledger"]), int(of["number"]), int(of["size"]), handlers.get(entry)]
    chunk = int(of["chunk"])
    since = [int(of["ts_us"]), int(of["requeues"]), bool(of["accessed"])]
    return [*numbers, *since, None if chunk == NONE else chunks.index(chunk)]
