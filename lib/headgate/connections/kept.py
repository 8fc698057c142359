"""A broker's connections as objects, those alone of which rows come."""

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import places
from headgate.connections.state import COLUMNS, BrokerConnections
from headgate.core.connections.connection_reads import TYPES, ConnectionReads
from headgate.core.kernels.columns import Flags, Ints

_ACTIVE, _HIGH = COLUMNS.index("active"), COLUMNS.index("high_ns")
_HOLDS = [COLUMNS.index(name) for name in ("waiting", "attached", *(f"count_{type_}" for type_ in TYPES))]


class Followed:
    """A connection: when it is read, and the topics that have a producer on it, in the order of their first rows.

    is_attached: a row `attach` told of one of them. Such a row comes once, so these are not forgotten before the close.
    """

    __slots__ = ("_stored", "is_attached", "reads", "topics")

    def __init__(self, reads: ConnectionReads, topics: list[str], *, is_attached: bool = False) -> None:
        self.reads = reads
        self.is_attached = is_attached
        self.topics = dict.fromkeys(topics)
        self._stored = len(topics)

    @property
    def has_new_topics(self) -> bool:
        return len(self.topics) > self._stored

    def is_silent(self, at_ns: int, silent_ns: int) -> bool:
        """See ConnectionReads; False while a topic is attached."""
        return not self.is_attached and self.reads.is_silent(at_ns, silent_ns)


class Kept:
    """A view of BrokerConnections for rows of `names`; `stored` is what they are after these."""

    def __init__(self, state: BrokerConnections, names: pa.StringArray) -> None:
        self._state = state
        self._names: list[str] = names.to_pylist()
        self._places = places(state.name, names).tolist() if len(state.name) else [-1] * len(names)
        self._loaded: dict[int, Followed] = {}
        self._gone: list[int] = []

    def get(self, code: int) -> Followed:
        """The connection that is at `code` among the names; a new one where there is none."""
        if code not in self._loaded:
            self._loaded[code] = self._load(self._places[code])
        return self._loaded[code]

    def forget(self, code: int) -> None:
        """It is over: a row that comes of that name begins anew."""
        del self._loaded[code]
        if self._places[code] >= 0:
            self._gone.append(self._places[code])
            self._places[code] = -1

    def _load(self, place: int) -> Followed:
        if place < 0:
            return Followed(ConnectionReads(), [])
        of_topics = self._state.topic_connection
        begin, end = np.searchsorted(of_topics, [place, place + 1]).tolist()
        topics = self._state.topic.slice(begin, end - begin).to_pylist()
        *reads, is_attached = self._state.numbers[place].tolist()
        return Followed(ConnectionReads.from_numbers(reads), topics, is_attached=bool(is_attached))

    def stored(self, silent_until_ns: int) -> BrokerConnections:
        """With what has happened, without those that were forgotten, and those that nothing has moved since then."""
        state, kept = self._state, len(self._state.name)
        new = sorted(code for code in self._loaded if self._places[code] < 0)
        place_of = {code: self._places[code] for code in self._loaded} | {
            code: kept + number for number, code in enumerate(new)
        }
        rows = np.concatenate([state.numbers, np.zeros((len(new), len(COLUMNS)), np.int64)])
        for code, followed in self._loaded.items():
            rows[place_of[code]] = (*followed.reads.numbers(), followed.is_attached)
        names = pa.concat_arrays([state.name, pa.array([self._names[code] for code in new], pa.string())])
        topic, of_connection = self._topics(place_of)
        stay = ~_are_silent(rows, silent_until_ns)
        stay[self._gone] = False
        if stay.all():
            return BrokerConnections(names, rows, topic, of_connection)
        has_stayed = stay[of_connection]
        moved = (np.cumsum(stay) - 1)[of_connection[has_stayed]]
        return BrokerConnections(
            names.filter(pa.array(stay)), rows[stay], topic.filter(pa.array(has_stayed)), moved.astype(np.int64)
        )

    def _topics(self, place_of: dict[int, int]) -> tuple[pa.StringArray, Ints]:
        """Topics by connection, those of one in the order of their first rows."""
        changed = {place_of[code]: followed for code, followed in self._loaded.items() if followed.has_new_topics}
        topic, of_connection = self._state.topic, self._state.topic_connection
        if not changed:
            return topic, of_connection
        stay = ~np.isin(of_connection, list(changed))
        added = [(place, name) for place, followed in changed.items() for name in followed.topics]
        both = np.concatenate([of_connection[stay], np.array([place for place, _ in added], np.int64)])
        topics = pa.concat_arrays([topic.filter(pa.array(stay)), pa.array([name for _, name in added], pa.string())])
        order = np.argsort(both, kind="stable")
        return topics.take(pa.array(order)), both[order]


def _are_silent(rows: Ints, until_ns: int) -> Flags:
    """Of each row of COLUMNS: as `Followed.is_silent`, for a time of its last row that is before `until_ns`."""
    is_held = rows[:, _HOLDS].any(axis=1)
    silent: Flags = (rows[:, _ACTIVE] != 0) & ~is_held & (rows[:, _HIGH] < until_ns)
    return silent
