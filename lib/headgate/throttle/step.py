"""One step of a domain: events, limit changes and time in, state changed, marks and usage out. No clock, no engine."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import NONE, PUBLISH, SET_LIMIT, Ints, Operations
from headgate.throttle.keys import BROKER_KEY
from headgate.throttle.limits import LimitChange, in_order
from headgate.throttle.output import marks_table, usage_table
from headgate.throttle.state import Clock, DomainState, encoded, numbers, strings


@dataclass(frozen=True)
class Rules:
    """Settings of a job that its results depend on, besides the limits.

    max_debt_ms: debt bound in ms of tokens, -1: none. release_quantum: producers a wake, 0: all (rate-limiters 4.3,
    4.5). offered: events are arrivals, those of waiting producers are withheld up to send_timeout_ms. hold_back_ms:
    rows wait this long for earlier ones. broker_wide: a broker's publishes share its broker limiter in this layout.
    """

    max_debt_ms: int = -1
    release_quantum: int = 0
    offered: bool = False
    send_timeout_ms: int = 30_000
    hold_back_ms: int = 0
    broker_wide: bool = False


class Step(NamedTuple):
    """What an engine gets for one step: what to do in its order, each producer's topic, and up to when time comes."""

    operations: Operations
    producer_topic: Ints
    until_ns: int
    finish: bool


class Result(NamedTuple):
    """Marks and closed usage of one step, with positions of limiters, producers and topics (domain_types)."""

    mark_at_ns: Ints
    mark_limiter: Ints
    mark_producer: Ints
    mark_topic: Ints
    mark_seq: Ints
    mark_action: Ints
    closed_topic: Ints
    closed_second: Ints
    closed_counts: Ints


class Engine(Protocol):
    """Carries out a step on a domain's state, in array form or in the readable one."""

    def __call__(self, domain: DomainState, step: Step, rules: Rules) -> Result: ...


class Output(NamedTuple):
    """Rows for the tables; late: how many events came behind the domain's clock, and acted at it."""

    marks: pa.Table
    usage: pa.Table
    late: int


def moved(clock: Clock, high_us: int, rules: Rules, *, finish: bool = False) -> Clock:
    """The clock when time has come to `high_us`: it never goes back."""
    high_us = max(clock.high_us, high_us)
    return Clock(high_us, max(_bound_us(high_us, rules, finish=finish) * 1000, clock.done_ns))


def _bound_us(high_us: int, rules: Rules, *, finish: bool) -> int:
    """Up to there nothing is held back any longer."""
    return high_us - rules.hold_back_ms * 1000 - 1 if rules.hold_back_ms > 0 and not finish else high_us


def advance(
    domain: DomainState, events: pa.Table, high_us: int, rules: Rules, engine: Engine, *, finish: bool = False
) -> Output:
    """Take `events` in, let time come to `high_us`, and return what happened up to there.

    Events act in the order (event_time, seq), never before the domain's clock: a late one acts at the highest time
    reached. With a hold-back, events and time from `high_us - hold_back_ms` on wait in the state, until `finish`: what
    comes that late is still in order, also among rows of one instant.
    """
    clock = moved(domain.clock, high_us, rules, finish=finish)
    events = _due_events(domain, events, _bound_us(clock.high_us, rules, finish=finish))
    late = int((numbers(events["event_time_us"]) * 1000 < domain.clock.done_ns).sum())
    changes = _without_first(domain, events, _due_changes(domain, clock.done_ns // 1000))
    order = _order(events)
    positions = _register(domain, events, order, rules)
    producers = _producers(domain, events, positions.topic, rules)
    publishes = _publishes(events, order, positions, producers.of_event)
    operations = _in_order(domain, publishes, _updates(domain, changes))
    result = engine(domain, Step(operations, producers.topic, clock.done_ns, finish), rules)
    domain.clock = clock
    output = Output(
        marks_table(domain, result, producers.name, producers.connection),
        usage_table(domain, result, offered=rules.offered),
        late,
    )
    _keep_waiting(domain, producers)
    return output


def _due_events(domain: DomainState, events: pa.Table, bound_us: int) -> pa.Table:
    if len(domain.held):
        events = pa.concat_tables([domain.held, events])
    if not len(events):
        return events
    due = pc.less_equal(events["event_time_us"], bound_us)
    if pc.all(due).as_py():
        domain.held = events.slice(0, 0)
        return events
    domain.held = events.filter(pc.invert(due)).combine_chunks()
    return events.filter(due)


def _order(events: pa.Table) -> Ints:
    """Rows by (event_time, seq); where the source left rows equal in both, by what they say, never by how they came."""
    time_us, seq = numbers(events["event_time_us"]), numbers(events["seq"])
    order: Ints = np.lexsort((seq, time_us))
    tied = (np.diff(time_us[order]) == 0) & (np.diff(seq[order]) == 0)
    if not tied.any():
        return order
    columns = ("event_time_us", "seq", "topic", "producer", "connection", "messages", "bytes")
    by_all = pc.sort_indices(events, sort_keys=[(name, "ascending") for name in columns])
    return by_all.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _due_changes(domain: DomainState, bound_us: int) -> list[LimitChange]:
    """Take the changes that hold by `bound_us` out of the pending ones, in their order."""
    pending = in_order(domain.pending)
    due = [change for change in pending if change.effective_us <= bound_us]
    domain.pending = pending[len(due) :]
    return due


def _without_first(domain: DomainState, events: pa.Table, changes: list[LimitChange]) -> list[LimitChange]:
    """Write the limits that hold before a domain's first event into its book: no limiter is there to hear of them.

    A job's first batch brings all limits of its conf files, and each would be looked for among all topics.
    """
    if len(domain.keys) or not len(events):
        return changes
    first_us = pc.min(events["event_time_us"]).as_py()
    early = [change for change in changes if change.effective_us <= first_us]
    for change in early:
        domain.book.apply(change)
    return changes[len(early) :]


class Positions(NamedTuple):
    """Limiter positions by event row; -1 is none."""

    topic: Ints
    group: Ints


def _register(domain: DomainState, events: pa.Table, order: Ints, rules: Rules) -> Positions:
    """Positions of the events' limiters.

    New ones are registered in the order topic, broker, group of the first event that reaches them.
    """
    n = len(events)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    topics, topic_codes = encoded(events["topic"])
    groups, group_codes = encoded(events["group"])
    shared = pa.array([BROKER_KEY] if rules.broker_wide and n else [], pa.string())
    wanted = pa.concat_arrays([topics, shared, groups])
    first = np.concatenate(
        [
            _first_rank(topic_codes, rank, len(topics)) * 3,
            np.ones(len(shared), np.int64),
            _first_rank(group_codes, rank, len(groups)) * 3 + 2,
        ]
    )
    found = pc.index_in(wanted, value_set=domain.keys).fill_null(-1).to_numpy().astype(np.int64)
    new = np.flatnonzero(found < 0)
    new = new[np.argsort(first[new], kind="stable")]
    found[new] = len(domain.keys) + np.arange(len(new))
    _append_limiters(domain, wanted.take(pa.array(new)))
    at = np.append(found, -1)
    return Positions(at[topic_codes], np.where(group_codes < 0, -1, at[len(topics) + len(shared) + group_codes]))


def _first_rank(codes: Ints, rank: Ints, size: int) -> Ints:
    first = np.full(size, np.iinfo(np.int64).max // 4)
    present = codes >= 0
    np.minimum.at(first, codes[present], rank[present])
    return first


def _append_limiters(domain: DomainState, keys: pa.StringArray) -> None:
    if not len(keys):
        return
    domain.keys = pa.concat_arrays([domain.keys, keys])
    rates = np.array([domain.book.rates_of(key) for key in keys.to_pylist()], np.int64)
    start = {"rate": rates, "next_drain_ns": np.full(len(keys), NONE)}
    for name, values in domain.limiters.items():
        added = start.get(name, np.zeros((len(keys), *values.shape[1:]), np.int64))
        domain.limiters[name] = np.concatenate([values, added])


class Producers(NamedTuple):
    """Producers of the state (first) and of the events: topic, name, connection; and each event's producer."""

    topic: Ints
    name: pa.StringArray
    connection: pa.StringArray
    of_event: Ints


def _producers(domain: DomainState, events: pa.Table, topic: Ints, rules: Rules) -> Producers:
    """In admitted traffic every event counts as a producer of its own: producers have no state but queue entries."""
    kept = len(domain.producer_topic)
    topics = np.concatenate([domain.producer_topic, topic])
    names = pa.concat_arrays([domain.producer_name, strings(events["producer"])])
    connections = pa.concat_arrays([domain.producer_connection, strings(events["connection"])])
    if not rules.offered:
        return Producers(topics, names, connections, kept + np.arange(len(events)))
    _, name_codes = encoded(pa.chunked_array([names]))
    _, connection_codes = encoded(pa.chunked_array([connections]))
    _, first, inverse = np.unique(
        np.stack([topics, name_codes, connection_codes]), axis=1, return_index=True, return_inverse=True
    )
    place = np.empty(len(first), np.int64)
    by_first = np.argsort(first)
    place[by_first] = np.arange(len(first))
    rows = first[by_first]
    return Producers(topics[rows], names.take(rows), connections.take(rows), place[inverse.ravel()][kept:])


def _publishes(events: pa.Table, order: Ints, positions: Positions, producer: Ints) -> Operations:
    """The events in their order, with their times still in microseconds."""
    return Operations(
        numbers(events["event_time_us"])[order],
        np.full(len(order), PUBLISH),
        positions.topic[order],
        positions.group[order],
        producer[order],
        numbers(events["messages"])[order],
        numbers(events["bytes"])[order],
        numbers(events["seq"])[order],
    )


def _in_order(domain: DomainState, publishes: Operations, updates: Operations) -> Operations:
    """Publishes and updates by time in ns, none before the clock: updates before publishes of the same instant."""
    publishes, updates = (
        operations._replace(at_ns=np.maximum(operations.at_ns * 1000, domain.clock.done_ns))
        for operations in (publishes, updates)
    )
    if not len(updates.at_ns):
        return publishes
    kind = np.repeat([0, 1], [len(updates.at_ns), len(publishes.at_ns)])
    order = np.lexsort((kind, np.concatenate([updates.at_ns, publishes.at_ns])))
    return Operations(*(np.concatenate(pair)[order] for pair in zip(updates, publishes, strict=True)))


def _updates(domain: DomainState, changes: list[LimitChange]) -> Operations:
    """One operation for each limiter that a change moves, with its time still in microseconds."""
    rows: list[tuple[int, ...]] = []
    for change in changes:
        domain.book.apply(change)
        for position in domain.book.limiters_under(change, domain.keys):
            messages_per_s, bytes_per_s = domain.book.rates_of(domain.keys[position].as_py())
            rows.append((change.effective_us, SET_LIMIT, position, -1, -1, messages_per_s, bytes_per_s, NONE))
    columns = np.array(rows, np.int64).reshape(-1, len(Operations._fields)).T
    return Operations(*np.ascontiguousarray(columns))


def _keep_waiting(domain: DomainState, producers: Producers) -> None:
    """Keep the producers that still wait, numbered anew in the order in which they were known."""
    waiting = np.unique(np.concatenate([domain.entry_producer, domain.withheld["producer"]]))
    domain.entry_producer = np.searchsorted(waiting, domain.entry_producer)
    domain.withheld["producer"] = np.searchsorted(waiting, domain.withheld["producer"])
    domain.producer_topic = producers.topic[waiting]
    domain.producer_name = producers.name.take(waiting)
    domain.producer_connection = producers.connection.take(waiting)
