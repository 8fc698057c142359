"""Pages of 64 positions as they are filled from plain data (entry-cache 3)."""

from itertools import chain

import numpy as np

from headgate.core.kernels.cache.types import (
    MARKED,
    NONE,
    NOTED,
    PAGE,
    PAGE_BITS,
    PAGE_ENTRIES,
    CacheArrays,
)
from headgate.core.state import PlainData

_LAST = PAGE_ENTRIES - 1


class FilledPages:
    """Pages topic by topic, those of a topic in the order of their positions."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int], int] = {}
        self._topics: list[tuple[int, int, int]] = []
        self._bits: dict[int, dict[int, int]] = {0: {}, MARKED: {}, NOTED: {}}
        self._slots: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def begin(self, topic: int, spaces: dict[int, int], plain: PlainData) -> None:
        """Make the pages of what a topic has; spaces: the numbers of its ledgers."""
        places = chain(plain["entries"], plain["reasons"], (mark[1:] for mark in plain["marks"]))
        first = len(self._keys)
        for ledger, page in sorted({(place[0], place[1] >> PAGE_BITS) for place in places}):
            self._places[spaces[ledger], page] = len(self._keys)
            self._keys.append((spaces[ledger], page))
        self._topics.append((topic, first, len(self._keys)))

    def cache(self, space: int, number: int, entry: int) -> int:
        """The page of a position, which has a cached entry."""
        return self._put(0, space, number, entry)

    def mark(self, space: int, number: int, mark: int) -> tuple[int, int]:
        """The page of a position, which a cursor has marked, and the mark that another cursor has on it."""
        at = self._places[space, number >> PAGE_BITS]
        same = self._slots.get((at, MARKED + (number & _LAST)), int(NONE))
        return self._put(MARKED, space, number, mark), same

    def note(self, space: int, number: int, note: int) -> int:
        """The page of a position, of which is remembered why it is not cached."""
        return self._put(NOTED, space, number, note)

    def fill(self, arrays: CacheArrays) -> None:
        """Put the pages into arrays with room for them; they are still to be made findable."""
        count = len(self._keys)
        pages, state = np.zeros(count, PAGE), arrays.state[0]
        for name, plane in (("cached", 0), ("marked", MARKED), ("noted", NOTED)):
            pages[name] = np.array([self._bits[plane].get(page, 0) for page in range(count)], np.uint64)
        pages["space"], pages["number"] = np.array(self._keys, np.int64).reshape(-1, 2).T
        pages["before"], pages["after"] = np.arange(count) - 1, np.arange(count) + 1
        for topic, first, end in self._topics:
            if first < end:
                pages["before"][first], pages["after"][end - 1] = NONE, NONE
                arrays.topics[topic]["first_page"], arrays.topics[topic]["last_page"] = first, end - 1
        arrays.pages[:count] = pages
        arrays.slots[:count] = NONE
        for place, held in self._slots.items():
            arrays.slots[place] = held
        state["pages"] = state["page_end"] = count

    def _put(self, plane: int, space: int, number: int, held: int) -> int:
        page, place = self._places[space, number >> PAGE_BITS], number & _LAST
        bits = self._bits[plane]
        bits[page] = bits.get(page, 0) | 1 << place
        self._slots[page, plane + place] = held
        return page
