"""SIEVE: a hand walks over the entries and spares once what was read (entry-cache 10.1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.capped import Capped
from headgate.core.cache.reasons import Cause
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic


class _Node:
    """An entry between its neighbours in the order of insertion."""

    __slots__ = ("entry", "newer", "older")

    def __init__(self, entry: Entry, older: "_Node | None") -> None:
        self.entry = entry
        self.older = older
        self.newer: _Node | None = None


class Sieve(Capped):
    """Entries stay in the order of insertion; the hand goes from old to new, round and round.

    Source: entry-cache 10.1
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._nodes: dict[Entry, _Node] = {}
        self._oldest: _Node | None = None
        self._newest: _Node | None = None
        self._hand: _Node | None = None

    def touch(self, entries: Sequence[Entry]) -> None:
        """Set the bit of entries that are read."""
        for entry in entries:
            entry.accessed = True

    def inserted(self, entry: Entry) -> None:
        """The entry is the newest."""
        node = self._nodes[entry] = _Node(entry, self._newest)
        if self._newest is None:
            self._oldest = node
        else:
            self._newest.newer = node
        self._newest = node

    def forget(self, entry: Entry) -> None:
        """The entry leaves; a hand that is on it goes to the next newer one."""
        node = self._nodes.pop(entry)
        if self._hand is node:
            self._hand = node.newer
        if node.older is None:
            self._oldest = node.newer
        else:
            node.older.newer = node.newer
        if node.newer is None:
            self._newest = node.older
        else:
            node.newer.older = node.older

    def evict_one(self) -> None:
        """Walk on from the hand, clear bits, and evict the first entry without one."""
        node = self._at_hand()
        while node.entry.accessed:
            self.work.visits += 1
            node.entry.accessed = False
            self._hand = node.newer
            node = self._at_hand()
        self.work.visits += 1
        self._hand = node
        self.remove(node.entry, Cause.EVICTED)

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """The order, oldest first, and the entry that the hand is on."""
        hand = None if self._hand is None else numbers[self._hand.entry]
        return {"order": [numbers[entry] for entry in self._in_order()], "hand": hand}

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:  # noqa: ARG002
        """Take the order and the hand."""
        for number in stored["order"]:
            self.inserted(entries[number])
        if stored["hand"] is not None:
            self._hand = self._nodes[entries[stored["hand"]]]

    def _at_hand(self) -> _Node:
        """The node that the hand is on; past the newest, and at first, it is on the oldest."""
        node = self._oldest if self._hand is None else self._hand
        assert node is not None  # noqa: S101  nothing is evicted from an empty cache
        return node

    def _in_order(self) -> Iterator[Entry]:
        node = self._oldest
        while node is not None:
            yield node.entry
            node = node.newer
