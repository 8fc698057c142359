"""Kinds queue, manager, range_cache and cursor_rank: the parts of an entry cache, each alone (entry-cache 18)."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.conformance.wanted import Seen
from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.removal_queue import Pass, RemovalQueue
from headgate.core.cache.rows import Position
from headgate.core.cache.topics.cursors import Cursors
from headgate.core.cache.topics.range_cache import RangeCache
from headgate.core.cache.traces.chance import Chance
from headgate.core.names import known
from headgate.errors import InvalidArgument

Fields = Mapping[str, Any]
DECIMAL = "decimal"
PAGE_ENTRIES = 64
"""Positions of a page: the array form keeps entries by page."""


def _unknown(op: str) -> InvalidArgument:
    return InvalidArgument(f"op: got {op!r}, which this kind does not have")


def _sizes(entries: list[Entry]) -> list[int]:
    return [len(entries), sum(entry.size for entry in entries)]


class QueueAdapter:
    """A removal queue whose entries have names."""

    def __init__(self, config: Fields) -> None:
        self._queue = RemovalQueue(config["maxRequeue"], extend_accessed=config["extendAccessed"])
        self._entries = dict[str, Entry]()
        self._names = dict[Entry, str]()

    def perform(self, op: str, given: Fields) -> Seen:
        """Run `op`."""
        done = Pass()
        if op == "put":
            self._put(given["id"], given)
        elif op == "access":
            self._entries[given["id"]].accessed = True
        elif op == "expect":
            self._expect(self._entries[given["id"]], given["by"])
        elif op == "drop":
            self._forget(given["id"])
        elif op == "set":
            self._set(given)
        elif op == "time_pass":
            done = self._queue.time_pass(given["t"], given["cutoff"])
        elif op == "size_pass":
            done = self._queue.size_pass(given["t"], given["need"])
        elif op != "check":
            raise _unknown(op)
        removed = [self._names.pop(entry) for entry in done.removed]
        for name in removed:
            del self._entries[name]
        return self._seen(done, removed)

    def _put(self, name: str, given: Fields) -> None:
        handler = Handler(given["expected"]) if given["expected"] else None
        entry = Entry(None, 0, 0, given["size"], given["t"], handler, None)
        self._entries[name] = entry
        self._names[entry] = name
        self._queue.append(entry)

    @staticmethod
    def _expect(entry: Entry, by: int) -> None:
        if entry.handler is not None:
            entry.handler.count += by

    def _forget(self, name: str) -> None:
        entry = self._entries.pop(name)
        del self._names[entry]
        self._queue.discard(entry)

    def _set(self, given: Fields) -> None:
        self._queue.max_requeue = given.get("maxRequeue", self._queue.max_requeue)
        self._queue.extend_accessed = given.get("extendAccessed", self._queue.extend_accessed)

    def _seen(self, done: Pass, removed: list[str]) -> Seen:
        left = list(self._queue)
        by_name = {self._names[entry]: entry for entry in left}

        def kept(entry: Entry) -> bool:
            return entry.handler is None or entry.handler.count >= 1

        return {
            "removed": lambda: _sizes(done.removed),
            "removed_ids": lambda: removed,
            "visits": lambda: done.visits,
            "left": lambda: _sizes(left),
            "order": lambda: list(by_name),
            "ts": lambda: {name: entry.ts_us for name, entry in by_name.items()},
            "requeues": lambda: {name: entry.requeues for name, entry in by_name.items()},
            "accessed": lambda: {name: entry.accessed for name, entry in by_name.items()},
            "expected": lambda: {
                name: None if entry.handler is None else entry.handler.count for name, entry in by_name.items()
            },
            "non_evictable": lambda: _sizes([entry for entry in left if kept(entry)]),
        }


class ManagerAdapter:
    """A byte limit, and what it says of a size pass."""

    def __init__(self, config: Fields) -> None:
        self._watermark = config["watermark"]
        self._limit = ByteLimit(config["max"], self._watermark)

    def perform(self, op: str, given: Fields) -> Seen:
        """Run `op`."""
        limit = self._limit
        if op == "add":
            limit.current_bytes += given["bytes"]
        elif op == "remove":
            limit.current_bytes -= given["bytes"]
        elif op == "set":
            self._watermark = given.get("watermark", self._watermark)
            limit.set(given.get("max", limit.max_bytes), self._watermark)
        elif op != "check":
            raise _unknown(op)
        return {
            "trigger": lambda: limit.trigger_bytes,
            "target": lambda: limit.target_bytes,
            "current": lambda: limit.current_bytes,
            "need": limit.need_bytes,
        }


class RangeCacheAdapter:
    """The entries of one topic, on a queue; texts stand for payloads."""

    def __init__(self, _: Fields) -> None:
        self._cache = RangeCache()
        self._queue = RemovalQueue(5, extend_accessed=False)
        self._texts = dict[Entry, str]()

    def perform(self, op: str, given: Fields) -> Seen:
        """Run `op`."""
        operations: dict[str, Callable[[Fields], Seen]] = {
            "put": self._put,
            "put_many": self._put_many,
            "get": self._get,
            "range": self._range,
            "remove_range": self._remove_range,
            "time_pass": lambda given: self._after(self._queue.time_pass(given["t"], given["cutoff"])),
            "size_pass": lambda given: self._after(self._queue.size_pass(given["t"], given["need"])),
            "check": lambda _: {},
        }
        return {**known(operations, op, "op")(given), "left": self._left, "pages": self._pages}

    def _pages(self) -> int:
        return len({(entry.ledger, entry.number // PAGE_ENTRIES) for entry in self._cache})

    def _put(self, given: Fields) -> Seen:
        accepted = self._insert(tuple(given["pos"]), given["t"], given.get("size"), given.get("text"))
        return {"accepted": lambda: accepted}

    def _put_many(self, given: Fields) -> Seen:
        accepted = True
        for number in range(given["from"], given["to"] + 1):
            text = str(number) if given.get("text") == DECIMAL else given.get("text")
            accepted &= self._insert((given["ledger"], number), given["t"], given.get("size"), text)
        return {"accepted": lambda: accepted}

    def _insert(self, position: Position, at_us: int, size: int | None, text: str | None) -> bool:
        size_bytes = len((text or "").encode()) if size is None else size
        entry = Entry(None, *position, size_bytes, at_us, None, None)
        if not self._cache.add(entry):
            return False
        self._queue.append(entry)
        if text is not None:
            self._texts[entry] = text
        return True

    def _get(self, given: Fields) -> Seen:
        entry = self._cache.get(tuple(given["pos"]))
        return {
            "found": lambda: entry is not None,
            "text": lambda: None if entry is None else self._texts.get(entry),
            "size": lambda: None if entry is None else entry.size,
        }

    def _range(self, given: Fields) -> Seen:
        found = self._cache.between(tuple(given["from"]), tuple(given["to"]))
        return {"found": lambda: [entry.position for entry in found]}

    def _remove_range(self, given: Fields) -> Seen:
        last = tuple(given["to"])
        found = self._cache.between(tuple(given["from"]), last)
        removed = [entry for entry in found if given["inclusive"] or entry.position != last]
        for entry in removed:
            self._queue.discard(entry)
        return self._after(Pass(removed))

    def _after(self, done: Pass) -> Seen:
        for entry in done.removed:
            self._cache.remove(entry)
            self._texts.pop(entry, None)
        return {"removed": lambda: _sizes(done.removed), "visits": lambda: done.visits}

    def _left(self) -> list[int]:
        return [self._cache.entry_count, self._cache.size_bytes]


class CursorRankAdapter:
    """The cursors of one topic."""

    def __init__(self, _: Fields) -> None:
        self._cursors = Cursors(by_mark=False)

    def perform(self, op: str, given: Fields) -> Seen:
        """Run `op`."""
        if op in {"open", "move"}:
            position = given.get("pos")
            self._place(given["cursor"], None if position is None else tuple(position))
        elif op == "untrack":
            self._place(given["cursor"], None)
        elif op == "close":
            self._cursors.close(self._cursors.by_name[given["cursor"]])
        elif op in {"open_many", "move_many"}:
            self._place_many(given)
        elif op == "move_random":
            self._move_random(given)
        elif op != "check":
            raise _unknown(op)
        cursors = self._cursors
        return {
            "rank": lambda: {name: cursors.rank(cursor) for name, cursor in cursors.by_name.items()},
            "size": lambda: len(cursors),
            "slowest": cursors.slowest,
            "rank_sum": lambda: sum(map(cursors.rank, cursors.by_name.values())),
        }

    def _place(self, name: str, position: Position | None) -> None:
        cursor = self._cursors.by_name.get(name)
        if cursor is None:
            self._cursors.open(name, position, 0, 0)
        else:
            self._cursors.move(cursor, position)

    def _place_many(self, given: Fields) -> None:
        numbers = range(given["from"], given["to"] + 1)
        for number in reversed(numbers) if given.get("reverse") else numbers:
            position = given["pos"] if "pos" in given else [0, number * given["num"] // given["den"]]
            self._place(f"c{number}", None if position is None else tuple(position))

    def _move_random(self, given: Fields) -> None:
        chance = Chance(given["seed"])
        for _ in range(given["count"]):
            name = f"c{1 + chance.below(given['cursors'])}"
            self._place(name, (0, chance.below(given["positions"])))
