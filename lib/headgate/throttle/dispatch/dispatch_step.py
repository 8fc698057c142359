"""The dispatch part of one step of a domain: rows of kind dispatch and limits in, what a form needs of them out.

Order, limits and moves are those of publishes: a row acts at its time and never before the clock; at one instant what
is told of publish rates comes first, then limits, attachments, and rows by seq. What retries do is in
core.dispatch.dispatch_domain, how levels are found in dispatch_chains.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import distinct, encoded, no_ints, no_strings, numbers, places, whole
from headgate.core import usage
from headgate.core.dispatch.dispatch_domain import GROUP, NO_LEVEL
from headgate.core.kernels.columns import NO_VALUE, Flags, Ints
from headgate.core.kernels.dispatch.types import FOLLOW, READ, SET_RATE, DispatchOperations
from headgate.core.kernels.publish.types import UNRESOLVED
from headgate.throttle.dispatch.chains import Subscriptions, chains, levels_by_topic, register_topics, resolve
from headgate.throttle.dispatch.dispatch_state import DispatchState
from headgate.throttle.dispatch.limits import LevelIndex, rates_of
from headgate.throttle.dispatch.publish_averages import ChangedAverages, changed_averages
from headgate.throttle.form import DispatchStep, Result, Rules
from headgate.throttle.limits.changes import Change
from headgate.throttle.limits.effective_limits import topics_under
from headgate.throttle.objects import columns
from headgate.throttle.ordering import interleaved, merged, order
from headgate.throttle.registration import REPLICATOR
from headgate.throttle.state import DomainState


def dispatch_step(  # noqa: PLR0917  what a part of a step has of dispatch
    domain: DomainState,
    rows: pa.Table,
    attachments: Sequence[Change],
    limits: Sequence[Change],
    hour: int,
    rules: Rules,
) -> DispatchStep | None:
    """The step, or None where dispatch has nothing to do.

    The limits in force have the attachments already; `limits` of dispatch are written into it here. hour: in which the
    rows act, as a number.
    """
    state = domain.dispatch
    if not (len(rows) or state.is_begun or any(change.follows_publishes for change in limits)):
        for change in limits:
            domain.in_force.apply(change)
        return None
    counted = _reattach(domain, attachments)
    rows = _counted_rows(rows, rules)
    subscriptions, of_open, of_row = _subscriptions(state, rows)
    topic = register_topics(domain, subscriptions)
    heard = topic[of_row]
    state.topic_hour[heard[heard >= 0]] = hour
    found = chains(domain, subscriptions, topic, limits)
    updates = _updates(domain, limits)
    if not (len(rows) or len(state.keys) or state.is_open or state.published.since_ns != NO_VALUE):
        return None
    operations = merged(domain.clock.done_ns, updates, _reads(rows, of_row, rules))
    return DispatchStep(
        operations=operations,
        subscriptions=subscriptions,
        open=of_open,
        chains=found,
        topic=topic,
        counted=counted,
        begin_ns=domain.clock.done_ns,
        offered=rules.offered,
    )


def follow_publishes(
    domain: DomainState, step: DispatchStep, result: Result, until_ns: int, rules: Rules
) -> DispatchStep:
    """The step with what levels hear of the publishes that the result closed."""
    published = domain.dispatch.published
    if published.since_ns == NO_VALUE:
        return step
    messages, bytes_ = (
        (usage.ADMITTED_MESSAGES, usage.ADMITTED_BYTES) if rules.offered else (usage.MESSAGES, usage.BYTES)
    )
    closed = (result.closed_topic, result.closed_second, result.closed_counts[:, [messages, bytes_]])
    told = changed_averages(published, *closed, len(domain.keys), until_ns, rules.stats_interval_s)
    if not len(told.at_us):
        return step
    follows = _follows(domain, told)
    follows = follows._replace(at_ns=np.maximum(follows.at_ns * 1000, step.begin_ns))
    return step._replace(operations=interleaved(follows, step.operations))


def _follows(domain: DomainState, told: ChangedAverages) -> DispatchOperations:
    """What is told, for each level of each topic, with its time still in microseconds."""
    levels, topic = levels_by_topic(domain)
    first, last = (np.searchsorted(topic, told.topic, side=side) for side in ("left", "right"))
    count = last - first
    row = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    none = np.zeros(len(row), np.int64)
    messages, bytes_ = np.ascontiguousarray(told.averages[row].T)
    return DispatchOperations(
        at_ns=told.at_us[row],
        kind=np.full(len(row), FOLLOW),
        target=levels[place],
        messages=messages,
        bytes=bytes_,
        charged=none,
        exempt=none,
    )


def keep_subscriptions(state: DispatchState, step: DispatchStep, line: Ints) -> None:
    """Keep the subscriptions that still wait, given their positions in the order of their retries; and no level that is
    no group's and was never examined while it limited anything.
    """
    taken = pa.array(line)
    state.subscription_topic = step.subscriptions.topics.take(taken)
    state.subscription_name = step.subscriptions.names.take(taken)
    state.keep(np.ones(len(state.topics), np.bool_), state.are_groups | (state.levels["initialised"] != 0))


def _counted_rows(rows: pa.Table, rules: Rules) -> pa.Table:
    """The rows that levels hear of, in their order."""
    if not len(rows):
        return rows
    if not rules.filtered_entries:
        rows = rows.filter(pc.invert(rows["filtered"]))
    in_order = order(rows)
    return rows.take(pa.array(in_order)) if (np.diff(in_order) != 1).any() else rows


def _reads(rows: pa.Table, subscription: Ints, rules: Rules) -> DispatchOperations:
    """The rows as operations, with their times still in microseconds."""
    caught_up = rows["caught_up"].to_numpy().astype(np.int64)
    return DispatchOperations(
        at_ns=numbers(rows["event_time_us"]),
        kind=np.full(len(rows), READ),
        target=subscription,
        messages=numbers(rows["messages"]),
        bytes=numbers(rows["bytes"]),
        charged=numbers(rows["entries"]) if rules.charges_entries else numbers(rows["messages"]),
        exempt=np.zeros(len(rows), np.int64) if rules.throttles_caught_up else caught_up,
    )


def _subscriptions(state: DispatchState, rows: pa.Table) -> tuple[Subscriptions, Ints, Ints]:
    """Those that wait, those with an open second and those of the rows; where the last two stand among them."""
    kept = len(state.subscription_topic)
    if not (kept or len(state.open_second) or len(rows)):
        return Subscriptions.none(), no_ints(), no_ints()
    topics = pa.concat_arrays([state.subscription_topic, state.open_topic, whole(rows["topic"])])
    names = pa.concat_arrays([state.subscription_name, state.open_name, whole(rows["subscription"])])
    first, position = distinct(encoded(topics)[1], encoded(names)[1])
    taken = pa.array(first)
    _, of_open, of_row = np.split(position, [kept, kept + len(state.open_second)])
    return Subscriptions.of(topics.take(taken), names.take(taken)), of_open, of_row


def _reattach(domain: DomainState, attachments: Sequence[Change]) -> Flags:
    """Carry out attachments of one instant. Which waiting subscriptions their group counts, moved ones first.

    A topic whose group they can move is looked up anew: at its next row, or now if reads of it wait. Where that is
    another group, or none, its subscriptions are retried at this instant, before all others.
    """
    state = domain.dispatch
    counted: Flags = state.subscription_held_by == GROUP + 1
    if not attachments:
        return counted
    old = _groups_of(state)
    under = topics_under(attachments, state.topics).to_numpy().astype(np.int64)
    state.level_of[under] = UNRESOLVED
    waiting = places(state.topics, pc.unique(state.subscription_topic))
    resolve(domain, np.intersect1d(under, waiting))
    stays: Flags = np.equal(old, _groups_of(state))
    if stays.all():
        return counted
    line = np.argsort(stays, kind="stable")
    state.subscription_due_ns = np.where(stays, state.subscription_due_ns, domain.clock.done_ns)[line]
    state.subscription_held_by = state.subscription_held_by[line]
    taken = pa.array(line)
    state.subscription_topic = state.subscription_topic.take(taken)
    state.subscription_name = state.subscription_name.take(taken)
    place = np.empty_like(line)
    place[line] = np.arange(len(line))
    subscription = place[state.reads["subscription"]]
    rows = np.argsort(subscription, kind="stable")
    state.reads = {name: column[rows] for name, column in state.reads.items()} | {"subscription": subscription[rows]}
    return (counted & stays)[line]


def _groups_of(state: DispatchState) -> Ints:
    """The group's level of each subscription that waits, NO_LEVEL: none."""
    topic = places(state.topics, state.subscription_topic)
    is_exempt = pc.starts_with(state.subscription_name, REPLICATOR).to_numpy(zero_copy_only=False).astype(np.bool_)
    groups: Ints = np.where((topic < 0) | is_exempt, NO_LEVEL, np.append(state.level_of, NO_LEVEL)[topic])
    return groups


def _updates(domain: DomainState, limits: Sequence[Change]) -> DispatchOperations:
    """An operation for each level that a limit moves, with its time still in microseconds."""
    state, in_force = domain.dispatch, domain.in_force
    rows: list[tuple[int, ...]] = []
    levels = LevelIndex(state.keys if limits else no_strings())
    for change in limits:
        in_force.apply(change)
        positions = levels.concerned(change)
        rates = rates_of(in_force, levels.keys_at(positions)).tolist()
        rows += [(change.effective_us, SET_RATE, position, *of) for position, of in zip(positions, rates, strict=True)]
        if change.follows_publishes and state.published.since_ns == NO_VALUE:
            state.published.since_ns = max(change.effective_us * 1000, domain.clock.done_ns)
    return DispatchOperations(*columns(rows, len(DispatchOperations._fields)))
