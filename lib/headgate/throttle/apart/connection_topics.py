"""Which topics publish over which connections: told at the first publish of each pair, and again when it had none for
an hour (throttle.forget).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import encoded, no_ints, no_strings, numbers, places, whole
from headgate.arrow.schemas import TIMESTAMP
from headgate.core.kernels.columns import Flags, Ints
from headgate.throttle.schemas import MARKS
from headgate.throttle.state_tables import STORED_AS, StatePart, hours

ATTACH = "attach"
_CONNECTIONS = 2**32


@dataclass
class ConnectionTopics(StatePart):
    """Pairs that have published: topic's position * 2^32 + connection's index among `connections`, sorted: small.

    hour: the number of that of each pair's newest publish.
    """

    TABLES: ClassVar = ("connection_names", "connection_topics")

    connections: pa.StringArray = field(default_factory=no_strings)
    pairs: Ints = field(default_factory=no_ints)
    hour: Ints = field(default_factory=no_ints)

    @property
    def is_begun(self) -> bool:
        """See StatePart."""
        return len(self.pairs) > 0

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """See StatePart."""
        yield "connection_names", pa.table({"connection": self.connections})
        yield "connection_topics", pa.table({"pair": self.pairs, "hour": self.hour.astype(STORED_AS["hour"])})

    def take(self, name: str, table: pa.Table) -> None:
        """See StatePart."""
        if name == "connection_names":
            self.connections = whole(table["connection"])
        else:
            self.pairs, self.hour = numbers(table["pair"]), hours(table)

    def forget(self, position: Ints, oldest_hour: int) -> None:
        """Forget pairs of topics that are forgotten, and those whose newest publish is older; and then who has none.

        position: where each topic stands from now on, -1: nowhere.
        """
        if not self.is_begun:
            return
        topic, connection = np.divmod(self.pairs, _CONNECTIONS)
        stays = (position[topic] >= 0) & (self.hour >= oldest_hour)
        names, index = np.unique(connection[stays], return_inverse=True)
        pairs = position[topic[stays]] * _CONNECTIONS + index
        self.connections = self.connections.take(pa.array(names))
        self.pairs, self.hour = pairs, self.hour[stays]


def first_publishes(
    known: ConnectionTopics, broker: str, done_ns: int, events: pa.Table, *, order: Ints, topic: Ints, hour: int
) -> pa.Table:
    """MARKS with action `attach`: the first publish of each pair that is not known, in the order in which they act.

    done_ns: the clock of the domain, behind which none acts. order: places of the events as they act. topic: each
    event's topic, by position. hour: in which they act, as a number.
    """
    names, of_event = encoded(events["connection"])
    indices = places(known.connections, names)
    if (indices < 0).any():
        _add(known, names, of_event[order], indices)
    pairs = topic * _CONNECTIONS + indices[of_event]
    place, is_known = _among(known.pairs, pairs)
    known.hour[place[is_known]] = hour
    is_new = ~is_known
    if not is_new.any():
        return MARKS.empty_table()
    new = order[is_new[order]]
    first = new[np.sort(np.unique(pairs[new], return_index=True)[1])]
    together = np.concatenate([known.pairs, pairs[first]])
    in_order = np.argsort(together, kind="stable")
    known.pairs = together[in_order]
    known.hour = np.concatenate([known.hour, np.full(len(first), hour)])[in_order]
    return _rows(broker, done_ns, events.take(pa.array(first)))


def _among(pairs: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Each one's place, and whether it is there. pairs: sorted; a search costs what is wanted, not what there is."""
    place = np.searchsorted(pairs, wanted)
    is_within = place < len(pairs)
    is_within[is_within] = pairs[place[is_within]] == wanted[is_within]
    return place, is_within


def _add(known: ConnectionTopics, names: pa.StringArray, acting: Ints, indices: Ints) -> None:
    """Give names that are new their indices, in the order in which they act first."""
    first = np.unique(acting, return_index=True)[1]
    new = np.flatnonzero(indices < 0)
    new = new[np.argsort(first[new])]
    indices[new] = len(known.connections) + np.arange(len(new))
    known.connections = pa.concat_arrays([known.connections, names.take(pa.array(new))])


def _rows(broker: str, done_ns: int, events: pa.Table) -> pa.Table:
    at_ns = np.maximum(numbers(events["event_time_us"]) * 1000, done_ns)
    said = {name: whole(events[name]) for name in ("topic", "producer", "connection", "seq")} | {
        "at_ns": pa.array(at_ns),
        "event_time": pa.array(at_ns // 1000, pa.int64()).cast(TIMESTAMP),
        "broker": pa.repeat(broker, len(events)),
        "action": pa.repeat(ATTACH, len(events)),
    }
    nothing = pa.nulls(len(events), pa.string())
    return pa.table([said.get(name, nothing) for name in MARKS.names], MARKS)
