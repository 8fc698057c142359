"""S3-FIFO: a small queue for newcomers, a main queue, and ghosts of what left the small one (entry-cache 10.1)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.core.cache.entries import Entry
from headgate.core.cache.policies.capped import Capped
from headgate.core.cache.reasons import Cause
from headgate.core.cache.rows import Position
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic

_MOST_OFTEN = 3
_OFTEN = 2
_PARTS = 10
_GHOST_PARTS = 9

Ghost = tuple[str, int, int]
"""Topic, ledger and entry of what was evicted from the small queue."""


class S3Fifo(Capped):
    """A newcomer has to be read twice in the small queue, or come back soon, to get into the main queue.

    Source: entry-cache 10.1
    """

    def __init__(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> None:
        super().__init__(settings, store, topics)
        self._small: OrderedDict[Entry, None] = OrderedDict()
        self._main: OrderedDict[Entry, None] = OrderedDict()
        self._small_bytes = 0
        self._reads: dict[Entry, int] = {}
        self._ghosts: OrderedDict[Ghost, int] = OrderedDict()
        self._ghost_bytes = 0
        self._is_remembered = False

    def touch(self, entries: Sequence[Entry]) -> None:
        """Count the reads of entries, up to three."""
        for entry in entries:
            entry.accessed = True
            self._reads[entry] = min(_MOST_OFTEN, self._reads[entry] + 1)

    def make_room(self, topic: Topic, position: Position, size: int) -> bool:
        """Evict until the entry fits; whether it is remembered is seen before others are."""
        if size > self._limit.max_bytes:
            return False
        ghost_bytes = self._ghosts.pop((topic.name, *position), None)
        self._is_remembered = ghost_bytes is not None
        self._ghost_bytes -= ghost_bytes or 0
        return super().make_room(topic, position, size)

    def inserted(self, entry: Entry) -> None:
        """A newcomer joins the small queue, one that is remembered the main queue."""
        self._reads[entry] = 0
        if self._is_remembered:
            self._main[entry] = None
        else:
            self._small[entry] = None
            self._small_bytes += entry.size

    def forget(self, entry: Entry) -> None:
        """The entry leaves; only evictions are remembered."""
        del self._reads[entry]
        if entry in self._small:
            del self._small[entry]
            self._small_bytes -= entry.size
        else:
            del self._main[entry]

    def evict_one(self) -> None:
        """Look at the oldest entries until one leaves."""
        left = False
        while not left:
            self.work.visits += 1
            is_small = bool(self._small) and (_PARTS * self._small_bytes > self._limit.max_bytes or not self._main)
            left = self._judge_small() if is_small else self._judge_main()

    def settings_changed(self, settings: CacheSettings, now_us: int) -> None:
        """A lower limit holds at once, for the ghosts, too."""
        super().settings_changed(settings, now_us)
        self._trim_ghosts()

    def dump(self, numbers: Mapping[Entry, int]) -> dict[str, Any]:
        """Both queues with the reads of their entries, and the ghosts, oldest first."""
        return {
            "small": [[numbers[entry], self._reads[entry]] for entry in self._small],
            "main": [[numbers[entry], self._reads[entry]] for entry in self._main],
            "ghosts": [[*ghost, size] for ghost, size in self._ghosts.items()],
        }

    def load(self, stored: Mapping[str, Any], entries: Sequence[Entry], now_us: int) -> None:  # noqa: ARG002
        """Take the queues and the ghosts."""
        for name, queue in (("small", self._small), ("main", self._main)):
            for number, reads in stored[name]:
                queue[entries[number]] = None
                self._reads[entries[number]] = reads
        self._small_bytes = sum(entry.size for entry in self._small)
        for topic, ledger, number, size in stored["ghosts"]:
            self._ghosts[topic, ledger, number] = size
            self._ghost_bytes += size

    def _judge_small(self) -> bool:
        """Move the oldest newcomer to the main queue if it was read often, else evict it; whether it left."""
        entry = next(iter(self._small))
        if self._reads[entry] >= _OFTEN:
            del self._small[entry]
            self._small_bytes -= entry.size
            self._main[entry] = None
            self._reads[entry] = 0
            return False
        self.remove(entry, Cause.EVICTED)
        self._ghosts[_ghost(entry)] = entry.size
        self._ghost_bytes += entry.size
        self._trim_ghosts()
        return True

    def _judge_main(self) -> bool:
        """Spare the oldest entry for one of its reads, or evict it; whether it left."""
        entry = next(iter(self._main))
        if self._reads[entry]:
            self._reads[entry] -= 1
            self._main.move_to_end(entry)
            return False
        self.remove(entry, Cause.EVICTED)
        return True

    def _trim_ghosts(self) -> None:
        while _PARTS * self._ghost_bytes > _GHOST_PARTS * self._limit.max_bytes:
            _, size = self._ghosts.popitem(last=False)
            self._ghost_bytes -= size


def _ghost(entry: Entry) -> Ghost:
    return (entry.topic.name, entry.ledger, entry.number)
