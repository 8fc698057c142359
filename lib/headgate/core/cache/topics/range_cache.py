"""The cached entries of one topic by position (entry-cache 3)."""

from collections.abc import Iterator, Mapping

from headgate.core.cache.entries import Entry
from headgate.core.cache.rows import Position

_NONE: Mapping[int, Entry] = {}


class RangeCache:
    """At most one entry a position: the first insert wins. A range is looked up in one ledger.

    Attributes: `ledgers`, entries by ledger and number; `entry_count`; `size_bytes`. Source: entry-cache 3, 18
    """

    __slots__ = ("entry_count", "ledgers", "size_bytes")

    def __init__(self) -> None:
        self.ledgers: dict[int, dict[int, Entry]] = {}
        self.entry_count = 0
        self.size_bytes = 0

    def ledger(self, ledger: int) -> Mapping[int, Entry]:
        """The entries of a ledger by number, to be looked at only."""
        return self.ledgers.get(ledger, _NONE)

    def get(self, position: Position) -> Entry | None:
        """The entry at a position, None where nothing is cached."""
        return self.ledger(position[0]).get(position[1])

    def add(self, entry: Entry) -> bool:
        """Insert an entry; False, and nothing changed, where its position is taken."""
        entries = self.ledgers.setdefault(entry.ledger, {})
        if entry.number in entries:
            return False
        entries[entry.number] = entry
        self.entry_count += 1
        self.size_bytes += entry.size
        return True

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is cached."""
        entries = self.ledgers[entry.ledger]
        del entries[entry.number]
        if not entries:
            del self.ledgers[entry.ledger]
        self.entry_count -= 1
        self.size_bytes -= entry.size

    def __iter__(self) -> Iterator[Entry]:
        """The entries by ascending position, as they were when the iteration began."""
        for ledger in sorted(self.ledgers):
            yield from self.in_ledger(ledger)

    def in_ledger(self, ledger: int) -> list[Entry]:
        """The entries of a ledger, ascending."""
        entries = self.ledger(ledger)
        return [entries[number] for number in sorted(entries)]

    def between(self, first: Position, last: Position) -> list[Entry]:
        """The entries from `first` to `last`, both included, ascending."""
        return [entry for entry in self if first <= entry.position <= last]

    def runs(self) -> list[list[int]]:
        """The cached positions as [ledger, first, last], ascending."""
        runs: list[list[int]] = []
        for entry in self:
            if runs and runs[-1][0] == entry.ledger and runs[-1][2] == entry.number - 1:
                runs[-1][2] = entry.number
            else:
                runs.append([entry.ledger, entry.number, entry.number])
        return runs
