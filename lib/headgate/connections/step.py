"""One step of a key: marks of its connections in, what became of their reads out. No clock, no engine."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded
from headgate.arrow.schemas import table_of
from headgate.connections.kept import Followed, Kept
from headgate.connections.state import BrokerConnections, Brokers
from headgate.connections.topic_counts import Place, TopicCounts
from headgate.core.connections.connection_reads import TYPES, Transition
from headgate.core.connections.connection_rules import CONDITIONS
from headgate.core.numbers import MIN
from headgate.core.publish.publish_limiter import Scope
from headgate.core.publish.throttle_tracker import SCOPE_TYPES, ThrottleType
from headgate.throttle.ordering import by_broker
from headgate.throttle.schemas import CONNECTIONS

_RANKS = {
    "action": pa.array(["close", "open", "attach", "unmark", "mark"]),
    "type": pa.array([*CONDITIONS, *(SCOPE_TYPES[scope] for scope in (Scope.TOPIC, Scope.BROKER, Scope.GROUP))]),
}
"""Rows of one instant and `seq` in the order in which they act; limiters as they are evaluated (rate-limiters 4)."""
_ORDER = ("at_ns", "seq", "action", "type", "connection", "topic", "producer", "limiter")
_READ = ("at_ns", "action", "type", "topic", "scope", "limiter")
_NOTHING_HELD = (None,) * len(TYPES)


class StepOutput(NamedTuple):
    """Rows for the tables. topics: of one second, connection and topic, rows of several steps add up."""

    connections: pa.Table
    topics: pa.Table


OF_QUOTAS = frozenset(
    {ThrottleType.TOPIC_PUBLISH_RATE, ThrottleType.RESOURCE_GROUP_PUBLISH_RATE, ThrottleType.BROKER_PUBLISH_RATE}
)
"""Types of marks that limits of publishes make; all others are for the sake of memory."""


def follow(brokers: Brokers, marks: pa.Table, silent_ns: int = 0) -> StepOutput:
    """Bring the connections of a key forward by MARKS; `brokers` is changed in place.

    What is open, held by nothing and without a row for longer than `silent_ns` (0: never) begins anew with its next
    row. So it can be forgotten, once rows that are no more than `silent_ns` behind the newest one of their broker
    would begin it anew.

    Rows act in the order of their time, those of one instant in that of `seq`, after those that time alone did; a row
    that is late acts at the highest time that its connection has seen.
    """
    counts = TopicCounts()
    told = [_of_broker(brokers, broker, rows, counts, silent_ns) for broker, rows in by_broker(marks)]
    return StepOutput(pa.concat_tables([CONNECTIONS.empty_table(), *told]), counts.table())


def _of_broker(brokers: Brokers, broker: str, rows: pa.Table, counts: TopicCounts, silent_ns: int) -> pa.Table:
    """CONNECTIONS of one broker; what it brings for topics is counted in `counts`."""
    rows = _in_order(rows)
    names, codes = encoded(rows["connection"])
    kept = Kept(brokers.get(broker, BrokerConnections()), names)
    transitions: list[tuple[object, ...]] = []
    known_names = names.to_pylist()
    columns = (rows[name].to_pylist() for name in _READ)
    for code, at_ns, action, type_, topic, scope, limiter in zip(codes.tolist(), *columns, strict=True):
        followed, name = kept.get(code), known_names[code]
        if followed.is_silent(at_ns, silent_ns):
            kept.forget(code)
            followed = kept.get(code)
        followed.is_attached |= action == "attach"
        if topic is not None:
            followed.topics[topic] = None
        transition = _acted(followed, action, type_, at_ns)
        if followed.reads.is_over:
            kept.forget(code)
        if action == "mark" and topic is not None:
            counts.mark(Place.of(followed.reads.high_ns, broker, name), topic)
        if transition is None:
            continue
        cause = _cause(followed, action, type_)
        transitions.append(_row(broker, name, transition, (cause, scope, limiter)))
        if transition.auto_read is False:
            counts.pause(Place.of(transition.at_ns, broker, name), followed, by_quotas=cause in OF_QUOTAS)
    brokers[broker] = kept.stored(pc.max(rows["at_ns"]).as_py() - 2 * silent_ns if silent_ns and len(rows) else MIN)
    if not len(brokers[broker].name):
        del brokers[broker]
    return table_of(transitions, CONNECTIONS)


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows that say something, in the order in which they act."""
    rows = rows.filter(pc.is_in(rows["action"], value_set=_RANKS["action"]))
    columns = {name: rows[name] for name in _ORDER} | {"seq": rows["seq"].fill_null(MIN)}
    columns |= {name: pc.index_in(rows[name], value_set=ranks) for name, ranks in _RANKS.items()}
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in _ORDER]))


def _acted(followed: Followed, action: str, type_: str, at_ns: int) -> Transition | None:
    match action:
        case "mark":
            return followed.reads.mark(type_, at_ns)
        case "unmark":
            return followed.reads.unmark(type_, at_ns)
        case "open":
            return followed.reads.open(at_ns)
        case "close":
            return followed.reads.close(at_ns)
    return None


def _cause(followed: Followed, action: str, type_: str | None) -> str:
    """The type of a mark or unmark; of an open the first that is marked; `close` is its own."""
    if action == "close":
        return action
    return type_ or next(iter(followed.reads.tracker.counts()))


def _row(broker: str, name: str, transition: Transition, cause: tuple[str | None, ...]) -> tuple[object, ...]:
    at_ns, auto_read, paused, resumed, throttled_connections, paused_ns, held_ns = transition
    counts = (paused, resumed, throttled_connections, paused_ns)
    return (at_ns, at_ns // 1000, broker, name, auto_read, *cause, *counts, *(held_ns or _NOTHING_HELD))
