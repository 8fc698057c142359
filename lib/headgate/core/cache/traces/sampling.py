"""A trace with one entry in so many, which behaves like the whole one in a cache that is as many times smaller.

Sampled are positions, not topics: of each `every` consecutive entries of a ledger one is kept, chosen by a hash, and
those that are kept are numbered anew without gaps. So each topic keeps its cursors, its order and its share of the
traffic, and what is true of an entry that is kept (which cursors stand at or before it, how long it waits) stays true.
Spatial sampling as in SHARDS (Waldspurger et al., FAST 2015), with a fixed share of each stretch, not by hash alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

from headgate.core.cache.checks import is_well_formed
from headgate.core.cache.rows import EventKind, Position, Row
from headgate.core.cache.traces.chance import MASK
from headgate.core.numbers import at_least

_GOLDEN = 0x9E3779B97F4A7C15
_OF_POSITIONS = {EventKind.ADD, EventKind.READ, EventKind.REPLAY_ADD, EventKind.REPLAY_READ, EventKind.RELEASE}
_OF_CURSORS = {EventKind.OPEN, EventKind.MOVE, EventKind.CLOSE, EventKind.MARK}


class Sample:
    """Which entries of a ledger are kept; the same for the same names and numbers, everywhere.

    every: one entry is kept in so many, from 1.
    """

    def __init__(self, every: int) -> None:
        self.every = at_least(1, every, "every")
        self._seeds: dict[tuple[str, int], int] = {}

    def below(self, topic: str, ledger: int, entry: int) -> int:
        """How many entries before `entry` are kept: the number that it has in the sample, if it is kept itself."""
        stretch, place = divmod(entry, self.every)
        return stretch + (place > self._kept_place(topic, ledger, stretch))

    def keeps(self, topic: str, ledger: int, entry: int) -> bool:
        """Whether the entry is in the sample."""
        stretch, place = divmod(entry, self.every)
        return place == self._kept_place(topic, ledger, stretch)

    def _kept_place(self, topic: str, ledger: int, stretch: int) -> int:
        seed = self._seeds.get((topic, ledger))
        if seed is None:
            seed = self._seeds[topic, ledger] = crc32(topic.encode(errors="surrogatepass")) << 32 ^ ledger
        return _mixed(seed + stretch * _GOLDEN & MASK) % self.every


def _mixed(number: int) -> int:
    """The finalizer of SplitMix64."""
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & MASK
    return number ^ number >> 31


def sampled(rows: Iterable[Row], every: int) -> Iterator[Row]:
    """The rows of one broker as far as they are about entries that are kept; each row gives one or none.

    A cursor stands where the next entry is that it will read, of those that are kept: a read without any such entry
    changes nothing and is left out. Rows that are no rows stay as they are; rows of kind conf are not changed.
    """
    cut = SampledRows(every)
    return (kept for kept in map(cut.of, rows) if kept is not None)


class SampledRows:
    """What the sample has of each row of one broker, which come in their order."""

    def __init__(self, every: int) -> None:
        self._sample = Sample(every)
        self._reads_at: dict[tuple[str, str], Position] = {}
        self._marked_at: dict[tuple[str, str], Position] = {}

    def of(self, row: Row) -> Row | None:
        """The row as far as it is about entries that are kept; None if it is about none."""
        if self._sample.every == 1 or not is_well_formed(row):
            return row
        if row.kind in _OF_POSITIONS:
            return self._of_positions(row)
        if row.kind in _OF_CURSORS:
            return self._of_cursor(row)
        return row

    def _of_positions(self, row: Row) -> Row | None:
        topic, ledger, entry, count = row.topic, row.ledger, row.entry, row.count or 1
        first, end = (self._sample.below(topic, ledger, at) for at in (entry, entry + count))
        if row.kind == EventKind.READ:
            moved = self._reads_at.get((topic, row.cursor)) != (ledger, first)
            self._reads_at[topic, row.cursor] = (ledger, end)
            if first == end:
                at = {"kind": EventKind.MOVE.value, "entry": first, "count": None, "sizes": None}
                return row._replace(**at) if moved and (topic, row.cursor) in self._marked_at else None
        if first == end:
            return None
        return row._replace(entry=first, count=end - first, sizes=self._sizes(row))

    def _sizes(self, row: Row) -> Sequence[int] | None:
        """Of the entries that are kept; one size for all stays that."""
        if not row.sizes or len(row.sizes) == 1:
            return row.sizes  # type: ignore[no-any-return]
        return [
            size for entry, size in enumerate(row.sizes, row.entry) if self._sample.keeps(row.topic, row.ledger, entry)
        ]

    def _of_cursor(self, row: Row) -> Row | None:
        cursor = (row.topic, row.cursor)
        if row.kind == EventKind.CLOSE:
            self._reads_at.pop(cursor, None)
            self._marked_at.pop(cursor, None)
            return row
        if row.kind == EventKind.MARK:
            return self._mark(row, cursor)
        at = None if row.entry is None else (row.ledger, self._sample.below(row.topic, row.ledger, row.entry))
        self._forget_or_note(self._reads_at, cursor, at)
        if row.kind == EventKind.OPEN:
            self._marked_at[cursor] = at or (-1, -1)
        return row if at is None else row._replace(entry=at[1])

    def _mark(self, row: Row, cursor: tuple[str, str]) -> Row | None:
        """The mark position is the first entry that is kept and not acknowledged yet."""
        marked = (row.ledger, self._sample.below(row.topic, row.ledger, row.entry + 1))
        if self._marked_at.get(cursor) == marked or not marked[1]:
            return None if cursor in self._marked_at else row
        if cursor in self._marked_at:
            self._marked_at[cursor] = marked
        return row._replace(entry=marked[1] - 1)

    @staticmethod
    def _forget_or_note(places: dict[tuple[str, str], Position], cursor: tuple[str, str], at: Position | None) -> None:
        if at is None:
            places.pop(cursor, None)
        else:
            places[cursor] = at
