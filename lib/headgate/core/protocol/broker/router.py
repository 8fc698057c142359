"""The router ahead of the machines: marks of a topic for all of its producers (throttle-protocol 7.1)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from headgate.core.protocol.broker.checks import Facts, error_in, is_time
from headgate.core.protocol.broker.inputs import Close, CloseProducer, Connect, Input, Mark, Open, Trip, Unmark
from headgate.core.protocol.broker.routed_topic import RoutedProducer, RoutedTopic
from headgate.core.protocol.reasons import Reason
from headgate.core.state import PlainData, check_fields

_FIELDS = ("connections", "topics")
_Place = tuple[str, str]
"""A broker and the name of a topic: limiters are a broker's."""


class Routed(NamedTuple):
    """What the machine of a connection is fed."""

    connection: str
    given: Input


class Router:
    """Each producer of a topic is held from the first mark of any of them that came while it was open, until its own
    marks are released and the limiter's pause was 0 after the copies that it got.

    A producer that trips a limiter gets its mark, once; every other open producer of its topic on its broker gets a
    copy, with `trigger` false. All are numbered here, by connection, producer and reason from 1 on, without gaps:
    numbers of the source order its own marks and tell copies of rows apart, and go no further. A producer that opens
    later gets no copy of what came before.

    That the limiter's pause was 0 is told by its releases: one of millisecond t ends the copies of earlier ones (one
    that comes late is of the last millisecond with a copy), and one that leaves nobody waiting ends all; so does the
    close of the last producer that waits. Then each producer without marks of its own gets an unmark for each mark.

    Inputs come in the order of their times over all connections; what the machines refuse, and what is no mark, goes
    on as it came. Pure: time comes with the inputs.

    Arguments: `needs_buckets`, whether marks without balances are refused: of connections that open from now on.
    Source: throttle-protocol 4 (`fan_out`), 7.1, 7.2
    """

    __slots__ = ("_connections", "_topics", "needs_buckets")

    def __init__(self, *, needs_buckets: bool = True) -> None:
        self.needs_buckets = needs_buckets
        self._connections: dict[str, _OfConnection] = {}
        self._topics: dict[_Place, RoutedTopic] = {}

    def feed(self, connection: str, given: Input) -> list[Routed]:
        """What machines are to be fed instead of the input; itself where it goes on as it came."""
        action, known = _ACTIONS.get(type(given)), self._connections.get(connection)
        passed = [Routed(connection, given)]
        if action is None or not is_time(given.at_ms):
            return passed
        if known is None:
            if isinstance(given, Connect):
                self._connections[connection] = _OfConnection({}, self.needs_buckets)
            return passed
        if error_in(given, known.facts()) is not None:
            return passed
        return action(self, connection, known, given)

    def is_open(self, connection: str, producer: int) -> bool:
        """Whether the producer is open."""
        return self.is_connected(connection) and producer in self._connections[connection].producers

    def is_connected(self, connection: str) -> bool:
        """Whether the connection is open."""
        return connection in self._connections

    def state(self) -> PlainData:
        """All but `needs_buckets` as plain data, a copy."""
        return {
            "connections": [[name, one.needs_buckets] for name, one in self._connections.items()],
            "topics": [[*place, topic.state()] for place, topic in self._topics.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, needs_buckets: bool) -> Self:
        """Rebuild what `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, _FIELDS)
        router = cls(needs_buckets=needs_buckets)
        router._connections = {name: _OfConnection({}, needs) for name, needs in state["connections"]}
        for broker, name, stored in state["topics"]:
            topic = router._topics[broker, name] = RoutedTopic.from_state(name, stored)
            for (connection, id_), producer in topic.producers.items():
                router._connections[connection].producers[id_] = producer
        return router

    def _connect(self, connection: str, _: "_OfConnection", given: Connect) -> list[Routed]:
        return [Routed(connection, given)]

    def _open(self, connection: str, known: "_OfConnection", given: Open) -> list[Routed]:
        if given.producer not in known.producers:
            place = broker_of(connection), given.topic
            topic = self._topics.setdefault(place, RoutedTopic(given.topic))
            known.producers[given.producer] = topic.open(connection, given.producer)
        return [Routed(connection, given)]

    def _mark(self, _: str, known: "_OfConnection", given: Mark) -> list[Routed]:
        tripping = known.producers[given.producer]
        topic = self._topic_of(tripping)
        trips = [trip for trip in given.trips if topic.trip(tripping, Reason(trip.reason), trip.ordinal)]
        if not trips:
            return []
        routed = [_marked(tripping, given.at_ms, trips, trigger=given.trigger)]
        if given.trigger:
            others = topic.copied(tripping, [Reason(trip.reason) for trip in trips], given.at_ms)
            routed += [_marked(other, given.at_ms, trips, trigger=False) for other in others]
        return routed

    def _unmark(self, _: str, known: "_OfConnection", given: Unmark) -> list[Routed]:
        producer, reason = known.producers[given.producer], Reason(given.reason)
        topic = self._topic_of(producer)
        free = topic.release(producer, reason, given.ordinal, given.at_ms)
        return list(_unmarked(free, reason, given.at_ms))

    def _close_producer(self, connection: str, known: "_OfConnection", given: CloseProducer) -> list[Routed]:
        freed = self._forget(known.producers.pop(given.producer), given.at_ms)
        return [Routed(connection, given), *freed]

    def _close(self, connection: str, known: "_OfConnection", given: Close) -> list[Routed]:
        del self._connections[connection]
        gone = [producer for _, producer in sorted(known.producers.items())]
        freed = [routed for producer in gone for routed in self._forget(producer, given.at_ms)]
        return [Routed(connection, given), *(routed for routed in freed if routed.connection != connection)]

    def _forget(self, producer: RoutedProducer, at_ms: int) -> list[Routed]:
        """A limiter that loses the last producer that waits tells nothing more: its copies end."""
        topic = self._topic_of(producer)
        routed: list[Routed] = []
        for reason, free in topic.close(producer):
            routed += _unmarked(free, reason, at_ms)
        if not topic.producers:
            del self._topics[broker_of(producer.connection), producer.topic]
        return routed

    def _topic_of(self, producer: RoutedProducer) -> RoutedTopic:
        return self._topics[broker_of(producer.connection), producer.topic]


def broker_of(connection: str) -> str:
    """The part of a name that all connections of a broker share, up to its first slash; "" for names without one."""
    return connection.partition("/")[0] if "/" in connection else ""


class _OfConnection(NamedTuple):
    """Open producers of an open connection, and whether it refuses marks without balances."""

    producers: dict[int, RoutedProducer]
    needs_buckets: bool

    def facts(self) -> Facts:
        """What its machine checks inputs against; the client's flag is of no account here."""
        return Facts(self.producers, supports=False, needs_buckets=self.needs_buckets)


def _marked(producer: RoutedProducer, at_ms: int, trips: Iterable[Trip], *, trigger: bool) -> Routed:
    numbered = [Trip(trip.reason, producer.marked(Reason(trip.reason)), trip.buckets) for trip in trips]
    return Routed(producer.connection, Mark(at_ms, producer.id, numbered, trigger))


def _unmarked(producers: Iterable[RoutedProducer], reason: Reason, at_ms: int) -> Iterator[Routed]:
    for producer in producers:
        for ordinal in producer.let_go(reason):
            yield Routed(producer.connection, Unmark(at_ms, producer.id, reason, ordinal))


_ACTIONS: dict[type, Callable[[Router, str, _OfConnection, Any], list[Routed]]] = {
    Connect: Router._connect,
    Open: Router._open,
    Mark: Router._mark,
    Unmark: Router._unmark,
    CloseProducer: Router._close_producer,
    Close: Router._close,
}
