"""The removal queue of a broker: entries in the order of insertion, and the two passes over it (entry-cache 6)."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headgate.core.cache.entries import Entry
from headgate.errors import BadArgument


@dataclass(slots=True)
class Pass:
    """What a pass did: entries that left the queue, in this order; nodes judged; requeues made."""

    removed: list[Entry] = field(default_factory=list)
    visits: int = 0
    requeues: int = 0


class RemovalQueue:
    """First in, first out, but an entry that is expected, or was accessed, is requeued a limited number of times.

    Timestamps never decrease from head to tail. Entries that left in other ways are passed over and cost nothing.

    Arguments: `max_requeue`, budget of an expected entry; `extend_accessed`, whether accessed entries are requeued.
    Source: entry-cache 6
    """

    __slots__ = ("_gone", "_nodes", "extend_accessed", "max_requeue")

    def __init__(self, max_requeue: int, *, extend_accessed: bool) -> None:
        self.max_requeue = max_requeue
        self.extend_accessed = extend_accessed
        self._nodes: deque[Entry] = deque()
        self._gone = 0

    def __len__(self) -> int:
        return len(self._nodes) - self._gone

    def __iter__(self) -> Iterator[Entry]:
        """The entries, head first."""
        return (entry for entry in self._nodes if entry.is_queued)

    def append(self, entry: Entry) -> None:
        """Queue an entry, at the tail."""
        entry.is_queued = True
        self._nodes.append(entry)

    def discard(self, entry: Entry) -> None:
        """Forget an entry that left the cache; its place is cleared away later."""
        entry.is_queued = False
        self._gone += 1
        if 2 * self._gone > len(self._nodes):
            self._nodes = deque(self)
            self._gone = 0

    def head(self) -> Entry | None:
        """The entry that is judged next."""
        while self._nodes and not self._nodes[0].is_queued:
            self._nodes.popleft()
            self._gone -= 1
        return self._nodes[0] if self._nodes else None

    def time_pass(self, now_us: int, cutoff_us: int) -> Pass:
        """Judge entries from the head while their timestamp is before the cut-off."""
        done = Pass()
        while (entry := self.head()) is not None and entry.ts_us < cutoff_us:
            self._nodes.popleft()
            done.visits += 1
            if self._is_requeued(entry):
                self._requeue_expired(entry, now_us)
                done.requeues += 1
                self._nodes.append(entry)
            else:
                entry.is_queued = False
                done.removed.append(entry)
        return done

    def size_pass(self, now_us: int, need_bytes: int) -> Pass:
        """Remove entries until they had `need_bytes`, lap by lap: as if the queue were walked, in time linear in it.

        Raises BadArgument for a need below 1.
        """
        if need_bytes <= 0:
            raise BadArgument(f"size pass: got a need of {need_bytes} bytes, allowed is at least 1")
        done = Pass()
        survivors, missing_bytes = self._first_lap(need_bytes, done)
        if missing_bytes > 0:
            survivors = self._later_laps(survivors, missing_bytes, now_us, done)
        else:
            for entry in survivors:
                self._requeue(entry, now_us, 1)
            done.requeues += len(survivors)
        self._nodes.extend(survivors)
        for entry in done.removed:
            entry.is_queued = False
        if self.head() is not None:
            done.visits += 1
        return done

    def _first_lap(self, need_bytes: int, done: Pass) -> tuple[list[Entry], int]:
        """Take entries off the head until enough is free: those that would be requeued, and the bytes still missing."""
        survivors, nodes, removed = [], self._nodes, done.removed
        max_requeue, extend = self.max_requeue, self.extend_accessed
        while nodes and need_bytes > 0:
            entry = nodes.popleft()
            if not entry.is_queued:
                self._gone -= 1
                continue
            handler = entry.handler
            is_expected = handler is not None and handler.count >= 1 and entry.requeues < max_requeue
            if is_expected or (extend and entry.accessed):
                survivors.append(entry)
            else:
                removed.append(entry)
                need_bytes -= entry.size
        done.visits += len(survivors) + len(removed)
        return survivors, need_bytes

    def _later_laps(self, survivors: list[Entry], need_bytes: int, now_us: int, done: Pass) -> list[Entry]:
        """The closed form of section 6 over all that survived the first lap; returns what is left, in its new order."""
        laps = [self.laps(entry) for entry in survivors]
        places = sorted(range(len(survivors)), key=laps.__getitem__)
        taken = 0
        while taken < len(places) and need_bytes > 0:
            need_bytes -= survivors[places[taken]].size
            taken += 1
        victims = places[:taken]
        done.removed.extend(survivors[place] for place in victims)
        done.requeues += sum(laps[place] for place in victims)
        if taken == len(places):
            done.visits += done.requeues
            return []
        last_place = victims[-1]
        last_lap = laps[last_place]
        done.visits += sum(min(lap, last_lap - 1) for lap in laps)
        done.visits += sum(1 for place in range(last_place + 1) if laps[place] >= last_lap)
        kept = sorted(places[taken:])
        before = [survivors[place] for place in kept if place <= last_place]
        after = [survivors[place] for place in kept if place > last_place]
        done.requeues += self._rotate(before, now_us, last_lap + 1) + self._rotate(after, now_us, last_lap)
        return after + before

    def _rotate(self, entries: Iterable[Entry], now_us: int, times: int) -> int:
        """Requeue entries; how many requeues that were."""
        total = 0
        for entry in entries:
            self._requeue(entry, now_us, times)
            total += times
        return total

    def laps(self, entry: Entry) -> int:
        """How often a walk of the queue would requeue the entry before it removes it."""
        expected = max(0, self.max_requeue - entry.requeues) if entry.is_expected else 0
        return max(1, expected) if self.extend_accessed and entry.accessed else expected

    def _is_requeued(self, entry: Entry) -> bool:
        is_expected = entry.is_expected and entry.requeues < self.max_requeue
        return is_expected or (self.extend_accessed and entry.accessed)

    def _reorder(self, entries: Iterable[Entry]) -> None:
        """Queue these entries, which are all, in this order."""
        self._nodes = deque(entries)
        self._gone = 0

    def _requeue_expired(self, entry: Entry, now_us: int) -> None:
        self._requeue(entry, now_us, 1)

    @staticmethod
    def _requeue(entry: Entry, now_us: int, times: int) -> None:
        entry.ts_us = now_us
        entry.accessed = False
        entry.requeues += times
