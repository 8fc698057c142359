"""The dispatch part of one step of a domain: rows of kind dispatch and limits in, what an engine needs of them out.

Order, limits and moves are those of publishes: a row acts at its time and never before the clock; at one instant limits
come first, then attachments, then rows by seq. What retries do is in core.dispatch_domain.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.dispatch_types import READ, SET_RATE, DispatchOperations
from headgate.core.kernels.domain_types import NO_GROUP, UNRESOLVED, Flags, Ints
from headgate.throttle.changes import Change
from headgate.throttle.columns import distinct, encoded, ints, no_ints, numbers, places, strings
from headgate.throttle.dispatch_state import DispatchState
from headgate.throttle.keys import group_key
from headgate.throttle.limits import topics_under
from headgate.throttle.ordering import merged, order
from headgate.throttle.registration import REPLICATOR
from headgate.throttle.state import DomainState


class DispatchStep(NamedTuple):
    """What an engine gets of dispatch for one step.

    subscription_topic: the topic of each subscription, those of the state first. counted: whether the level of a
    subscription of the state counts it as waiting: not so where its topic has just come to another level. begin_ns: the
    clock as the step begins.
    """

    operations: DispatchOperations
    subscription_topic: Ints
    subscription_name: pa.StringArray
    counted: Flags
    begin_ns: int


def dispatch_step(
    domain: DomainState, rows: pa.Table, attachments: Sequence[Change], limits: Iterable[Change], *, offered: bool
) -> DispatchStep | None:
    """The step, or None where dispatch has nothing to do: nothing is attached, or never was with dispatches.

    The book has the attachments already; `limits` of dispatch are written into it here.
    """
    state = domain.dispatch
    counted = _reattach(domain, attachments)
    rows, topic = _of_groups(domain, rows)
    updates = _updates(domain, limits)
    if not len(state.keys):
        return None
    of_level = np.flatnonzero(state.level_of[topic] >= 0)
    if len(of_level) < len(rows):
        rows, topic = rows.take(pa.array(of_level)), topic[of_level]
    topics, names, subscription = _subscriptions(state, rows, topic, offered=offered)
    reads = DispatchOperations(
        numbers(rows["event_time_us"]),
        np.full(len(rows), READ),
        topic,
        subscription,
        numbers(rows["messages"]),
        numbers(rows["bytes"]),
    )
    operations = merged(domain.clock.done_ns, updates, reads)
    return DispatchStep(operations, topics, names, counted, domain.clock.done_ns)


def keep_subscriptions(state: DispatchState, step: DispatchStep, line: Ints) -> None:
    """Keep the subscriptions that still wait, given their positions in the order of their retries."""
    state.subscription_topic = step.subscription_topic[line]
    state.subscription_name = step.subscription_name.take(pa.array(line))


def _of_groups(domain: DomainState, rows: pa.Table) -> tuple[pa.Table, Ints]:
    """The rows, in their order, that may belong to a group, and the positions of their topics, which are registered.

    Replicators are exempt (resource-groups 2).
    """
    if not len(rows) or not domain.book.has_attachments:
        return rows.slice(0, 0), no_ints()
    rows = rows.filter(pc.invert(pc.starts_with(rows["subscription"], REPLICATOR)))
    in_order = order(rows)
    if (np.diff(in_order) != 1).any():
        rows = rows.take(pa.array(in_order))
    return rows, _register(domain, rows)


def _register(domain: DomainState, rows: pa.Table) -> Ints:
    state = domain.dispatch
    topics, codes = encoded(rows["topic"])  # topics in the order of their first rows
    found = places(state.topics, topics)
    new = topics.filter(pa.array(found < 0))
    if len(new):
        state.topics = pa.concat_arrays([state.topics, new])
        state.level_of = np.concatenate([state.level_of, np.full(len(new), UNRESOLVED)])
        found = places(state.topics, topics)
    _resolve(domain, found[state.level_of[found] == UNRESOLVED])
    return found[codes]


def _resolve(domain: DomainState, topics: Ints) -> None:
    """Look up the levels of these topics, and make those that are not there yet, in their order."""
    if not len(topics):
        return
    state = domain.dispatch
    groups, codes = encoded(domain.book.groups_of(state.topics.take(pa.array(topics))))
    _add_levels(domain, groups.filter(pa.array(places(state.keys, groups) < 0)))
    state.level_of[topics] = np.append(places(state.keys, groups), NO_GROUP)[codes]


def _add_levels(domain: DomainState, keys: pa.StringArray) -> None:
    if not len(keys):
        return
    state = domain.dispatch
    state.keys = pa.concat_arrays([state.keys, keys])
    rates = ints(*(rate for key in keys.to_pylist() for rate in domain.book.dispatch_rates_of(key))).reshape(-1, 2)
    for name, values in state.levels.items():
        added = rates if name == "rate" else np.zeros((len(keys), *values.shape[1:]), np.int64)
        state.levels[name] = np.concatenate([values, added])


def _reattach(domain: DomainState, attachments: Sequence[Change]) -> Flags:
    """Carry out attachments of one instant. Which waiting subscriptions stay at their level, moved ones first.

    A topic whose group they can move is looked up anew: at its next row, or now if reads of it wait. Where that is
    another level, or none, its subscriptions are retried at this instant, before all others.
    """
    state = domain.dispatch
    stays: Flags = np.ones(len(state.subscription_topic), np.bool_)
    if not attachments or not len(state.topics):
        return stays
    old = state.level_of.copy()
    under = topics_under(attachments, state.topics).to_numpy().astype(np.int64)
    state.level_of[under] = UNRESOLVED
    _resolve(domain, np.intersect1d(under, state.subscription_topic))
    stays = np.equal(old[state.subscription_topic], state.level_of[state.subscription_topic])
    if stays.all():
        return stays
    line = np.argsort(stays, kind="stable")
    state.subscription_due_ns = np.where(stays, state.subscription_due_ns, domain.clock.done_ns)[line]
    state.subscription_topic = state.subscription_topic[line]
    state.subscription_name = state.subscription_name.take(pa.array(line))
    place = np.empty_like(line)
    place[line] = np.arange(len(line))
    subscription = place[state.reads["subscription"]]
    rows = np.argsort(subscription, kind="stable")
    state.reads = {name: column[rows] for name, column in state.reads.items()} | {"subscription": subscription[rows]}
    moved: Flags = stays[line]
    return moved


def _updates(domain: DomainState, limits: Iterable[Change]) -> DispatchOperations:
    """One operation for each limit of a level, with its time still in microseconds."""
    operations: list[tuple[int, ...]] = []
    positions = {key: position for position, key in enumerate(domain.dispatch.keys.to_pylist())}
    for change in limits:
        domain.book.apply(change)
        position = positions.get(group_key(change.name))
        if position is not None:
            rates = domain.book.dispatch_rates_of(group_key(change.name))
            operations.append((change.effective_us, SET_RATE, position, -1, *rates))
    columns = np.array(operations, np.int64).reshape(-1, len(DispatchOperations._fields)).T
    return DispatchOperations(*np.ascontiguousarray(columns))


def _subscriptions(
    state: DispatchState, rows: pa.Table, topic: Ints, *, offered: bool
) -> tuple[Ints, pa.StringArray, Ints]:
    """Topics and names of the subscriptions of the state (first) and of the rows, and each row's subscription.

    Admitted traffic does not ask whose a delivery was.
    """
    kept = len(state.subscription_topic)
    if not offered or not len(rows):
        return state.subscription_topic, state.subscription_name, np.full(len(rows), -1)
    topics = np.concatenate([state.subscription_topic, topic])
    names = pa.concat_arrays([state.subscription_name, strings(rows["subscription"])])
    first, subscription = distinct(topics, encoded(names)[1])
    return topics[first], names.take(pa.array(first)), subscription[kept:]
