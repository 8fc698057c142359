"""How far two positions of a topic are apart, across ledgers (entry-cache 10.3)."""

from bisect import bisect_left, insort

from headgate.core.cache.rows import Position


class LedgerEnds:
    """The highest entry number seen in each ledger; a ledger's numbers go on where those of the ledgers before end.

    Attributes: `highest`, entry number by ledger. Source: entry-cache 3, 10.3
    """

    __slots__ = ("_ledgers", "_starts", "highest")

    def __init__(self) -> None:
        self.highest: dict[int, int] = {}
        self._ledgers: list[int] = []
        self._starts: list[int] = [0]

    def note(self, ledger: int, number: int) -> None:
        """An entry with this number was seen in the ledger."""
        known = self.highest.get(ledger)
        if known is None:
            insort(self._ledgers, ledger)
        elif known >= number:
            return
        self.highest[ledger] = number
        del self._starts[bisect_left(self._ledgers, ledger) + 1 :]

    def ordinal(self, position: Position) -> int:
        """The place of a position among all of its topic: ord of section 10.3."""
        place = bisect_left(self._ledgers, position[0])
        starts = self._starts
        while len(starts) <= place:
            starts.append(starts[-1] + self.highest[self._ledgers[len(starts) - 1]] + 1)
        return starts[place] + position[1]
