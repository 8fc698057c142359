"""Who was paused with whom, by second: a pause is counted once for its connection, and spread over its topics last."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import no_strings
from headgate.connections.kept import Followed
from headgate.core.kernels.columns import Ints
from headgate.throttle.schemas import CONNECTION_TOPICS

_SECOND_US = 1_000_000
_PLACE = ("event_time", "broker", "connection", "topic")
_COUNTS = tuple(name for name in CONNECTION_TOPICS.names if name not in _PLACE)


class Place(NamedTuple):
    """A connection in the second that begins at `second_us`."""

    second_us: int
    broker: str
    connection: str

    @classmethod
    def of(cls, at_ns: int, broker: str, connection: str) -> "Place":
        return cls(at_ns // 1000 // _SECOND_US * _SECOND_US, broker, connection)


class TopicCounts:
    """A pause counts for the topics that its connection had then, not for those that came after it.

    What one more pause costs does not depend on how many these are: topics of a connection only come to the others.
    """

    def __init__(self) -> None:
        self._pauses: dict[tuple[Place, Followed, int], list[int]] = defaultdict(lambda: [0, 0])
        self._marks: Counter[tuple[Place, str]] = Counter()

    def pause(self, place: Place, followed: Followed, *, by_quotas: bool) -> None:
        """Its reads were switched off; by_quotas: by a mark of a limit of publishes."""
        count = self._pauses[place, followed, len(followed.topics)]
        count[0] += 1
        count[1] += by_quotas

    def mark(self, place: Place, topic: str) -> None:
        """A limiter marked a producer of the topic on it."""
        self._marks[place, topic] += 1

    def table(self) -> pa.Table:
        """CONNECTION_TOPICS: one row a second, connection and topic, by these."""
        if not (self._pauses or self._marks):
            return CONNECTION_TOPICS.empty_table()
        both = pa.concat_tables([self._of_pauses(), self._of_marks()])
        sums = both.group_by(_PLACE).aggregate([(name, "sum") for name in _COUNTS])
        ordered = sums.sort_by([(name, "ascending") for name in _PLACE])
        return ordered.rename_columns([*_PLACE, *_COUNTS]).select(CONNECTION_TOPICS.names).cast(CONNECTION_TOPICS)

    def _of_pauses(self) -> pa.Table:
        connections = {followed for _, followed, _ in self._pauses}
        topics = {followed: pa.array(list(followed.topics), pa.string()) for followed in connections}
        paused = [topics[followed].slice(0, had) for _, followed, had in self._pauses]
        counts = [(*count, 0) for count in self._pauses.values()]
        row = np.repeat(np.arange(len(paused)), [len(these) for these in paused])
        return _rows([place for place, _, _ in self._pauses], pa.concat_arrays([no_strings(), *paused]), counts, row)

    def _of_marks(self) -> pa.Table:
        topics = pa.array([topic for _, topic in self._marks], pa.string())
        counts = [(0, 0, marked) for marked in self._marks.values()]
        return _rows([place for place, _ in self._marks], topics, counts, np.arange(len(topics)))


def _rows(places: Sequence[Place], topics: pa.StringArray, counts: Sequence[tuple[int, ...]], row: Ints) -> pa.Table:
    """A row a topic. row: of each topic, which of the places and counts are its own."""
    seconds = np.array([place.second_us for place in places], np.int64)
    columns = {"event_time": pa.array(seconds[row])}
    for name in ("broker", "connection"):
        columns[name] = pa.array([getattr(place, name) for place in places], pa.string()).take(pa.array(row))
    numbers = np.array(counts, np.int64).reshape(-1, len(_COUNTS))[row]
    return pa.table(columns | {"topic": topics} | dict(zip(_COUNTS, map(pa.array, numbers.T), strict=True)))
