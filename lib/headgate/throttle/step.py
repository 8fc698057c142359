"""One step of a domain: events, limit changes and time in, state changed, marks and usage out. No clock, no engine."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import numbers
from headgate.arrow.runs import in_full
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.kernels.publish.types import LEAVE, PUBLISH, SET_LIMIT, Operations
from headgate.core.numbers import HOUR_NS
from headgate.rows.kinds import DISPATCH as DISPATCHES
from headgate.rows.kinds import PUBLISH as PUBLISHES
from headgate.throttle.apart.connection_topics import first_publishes
from headgate.throttle.dispatch.dispatch_step import dispatch_step, keep_subscriptions
from headgate.throttle.dispatch.told import dispatch_decisions
from headgate.throttle.forget import forget
from headgate.throttle.form import DispatchResult, DispatchStep, Form, Rules, Step
from headgate.throttle.groups.departures import Departures
from headgate.throttle.groups.group_usage import dispatch_usage, dispatch_waits, group_usage, group_waits
from headgate.throttle.kinds import APART, KINDS, OUTPUT_BLOCKS
from headgate.throttle.limits.changes import (
    ATTACHMENT,
    LIMIT,
    OF_DISPATCH,
    Change,
    in_order,
)
from headgate.throttle.objects import columns
from headgate.throttle.ordering import Due, Gathered, due, in_time, late, merged, order
from headgate.throttle.output import marks_table, usage_table
from headgate.throttle.registration import keep_waiting, producers, reattach, register, replicators
from headgate.throttle.state import BrokerClock, DomainState

_NO_ROWS = {kind.rows.block: kind.rows.schema.empty_table() for kind in KINDS}


class Output(NamedTuple):
    """Rows by table (kinds.OUTPUT_BLOCKS), tables without rows left out; equal marks may be one row (arrow.runs). late:
    how many rows came behind the domain's clock, and acted at it.
    """

    rows: Mapping[str, pa.Table]
    late: int

    def of(self, table: str) -> pa.Table:
        """The rows of one table, each of them."""
        return pa.concat_tables(in_full(self.rows.get(table, OUTPUT_BLOCKS[table].empty_table())))


def moved(clock: BrokerClock, high_us: int, rules: Rules, *, finish: bool = False) -> BrokerClock:
    """The clock when time has come to `high_us`: it never goes back."""
    high_us = max(clock.high_us, high_us)
    return BrokerClock(high_us, max(_bound_us(high_us, rules, finish=finish) * 1000, clock.done_ns))


def _bound_us(high_us: int, rules: Rules, *, finish: bool) -> int:
    """Up to there nothing is held back any longer."""
    return high_us - rules.hold_back_ms * 1000 - 1 if rules.hold_back_ms > 0 and not finish else high_us


def advance(
    domain: DomainState,
    arrived: Mapping[str, pa.Table],
    high_us: int,
    rules: Rules,
    form: Form,
    *,
    finish: bool = False,
) -> Output:
    """Take rows in, let time come to `high_us`, and return what happened up to there.

    arrived: rows by kind (schemas.TRAFFIC); a kind without any may be missing. Rows act in the order (event_time, seq),
    kinds that share no limiter apart from each other. None acts before the domain's clock: a late row acts at the
    highest time reached. With a hold-back, rows and time from `high_us - hold_back_ms` on wait in the state, until
    `finish`: what comes that late is still in order, also among rows of one instant.
    """
    clock = moved(domain.clock, high_us, rules, finish=finish)
    bound_us = _bound_us(clock.high_us, rules, finish=finish)
    rows = _due_rows(domain, arrived, bound_us)
    events, dispatches = rows[PUBLISHES.block], rows[DISPATCHES.block]
    behind = sum(late(of_kind, domain.clock.done_ns) for of_kind in rows.values() if len(of_kind))
    changes = _due_changes(domain, clock.done_ns // 1000)
    told = Gathered()
    for kind in APART:
        of_kind = [change for change in changes if change.kind in kind.limits]
        told.add(kind.step(domain, Due(rows[kind.rows.block], of_kind, clock.done_ns)))
        changes = [change for change in changes if change.kind not in kind.limits]
    changes = _without_first(domain, events, dispatches, changes)
    parts = _parts(domain, events, dispatches, changes, clock.done_ns)
    by_form, departures = Gathered(), Departures()
    for part in parts:
        if part.begins_hour:
            forget(domain, part.hour, rules)
        if rules.slot_ms:
            departures.watch(domain, part.attachments)
        by_form.add(_run(domain, part, rules, form, finish=finish and part is parts[-1]))
    domain.clock = clock
    by_form.add({"group_leaves": departures.rows(domain)})
    return Output(_all_in_time(by_form.tables(), told.tables()), behind)


def _all_in_time(some: dict[str, pa.Table], others: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows of both; those of a table that both have are in the order of time in each."""
    shared = {name: in_time(rows, others[name]) for name, rows in some.items() if name in others}
    return some | others | shared


def _due_rows(domain: DomainState, arrived: Mapping[str, pa.Table], bound_us: int) -> dict[str, pa.Table]:
    """The rows of each kind up to `bound_us`, those that waited with them; later ones wait in the domain."""
    rows = {}
    for kind, none in _NO_ROWS.items():
        rows[kind], held = due(domain.held.pop(kind, none), arrived.get(kind, none), bound_us)
        if len(held):
            domain.held[kind] = held
    return rows


class Part(NamedTuple):
    """A time in which every topic has one group: what is attached at its start, and then happens up to `until_ns`.

    hour: the number of that in which all of it lies. begins_hour: nothing has happened in that hour before.
    """

    hour: int
    begins_hour: bool
    attachments: list[Change]
    limits: list[Change]
    events: pa.Table
    dispatches: pa.Table
    until_ns: int


def _parts(
    domain: DomainState, events: pa.Table, dispatches: pa.Table, changes: list[Change], until_ns: int
) -> list[Part]:
    """The step, cut at the times of attachments, and before each hour in which something happens: time ends the one
    before it first. At the time of an attachment limits come before the cut, those of groups that end and traffic after
    it.
    """
    done_ns = domain.clock.done_ns
    limits = [change for change in changes if change.kind != ATTACHMENT]
    by_time: dict[int, list[Change]] = {}
    for change in changes:
        if change.kind == ATTACHMENT:
            by_time.setdefault(max(change.effective_us * 1000, done_ns), []).append(change)
    event_ns, dispatch_ns = (
        np.maximum(numbers(rows["event_time_us"]) * 1000, done_ns) for rows in (events, dispatches)
    )
    at_ns = np.array([max(change.effective_us * 1000, done_ns) for change in limits], np.int64)
    hour, *hours = _hours(done_ns, event_ns, dispatch_ns, at_ns, np.array([*by_time, until_ns], np.int64))
    begins_ns = {begun * HOUR_NS - 1 for begun in hours}
    if not by_time and not begins_ns:
        return [Part(hour, False, [], limits, events, dispatches, until_ns)]
    cuts_ns = np.array(sorted(by_time.keys() | begins_ns), np.int64)
    of_event, of_dispatch = (np.searchsorted(cuts_ns, of_rows, side="right") for of_rows in (event_ns, dispatch_ns))
    ends = np.array([change.ends_group for change in limits], np.bool_)
    of_limit = np.where(ends, *(np.searchsorted(cuts_ns, at_ns, side=side) for side in ("right", "left")))
    count = len(cuts_ns) + 1
    events_in, dispatches_in = _by_part(events, of_event, count), _by_part(dispatches, of_dispatch, count)
    limits_in: list[list[Change]] = [[] for _ in range(count)]
    for change, of_change in zip(limits, of_limit.tolist(), strict=True):
        limits_in[of_change].append(change)
    parts: list[Part] = []
    for i, end_ns in enumerate([*cuts_ns.tolist(), until_ns]):
        begin_ns = int(cuts_ns[i - 1]) if i else done_ns
        here = limits_in[i], events_in[i], dispatches_in[i]
        hour = (begin_ns + 1) // HOUR_NS if i else hour
        is_first = i > 0 and begin_ns in begins_ns
        parts.append(Part(hour, is_first, by_time.get(begin_ns, []) if i else [], *here, end_ns))
    first = parts[0]
    is_idle = not first.limits and not len(first.events) + len(first.dispatches) and first.until_ns == done_ns
    return parts[1:] if is_idle else parts


def _by_part(rows: pa.Table, part: Ints, parts: int) -> list[pa.Table]:
    """The rows of each part, in the order in which they are."""
    together = rows.take(pa.array(np.argsort(part, kind="stable")))
    ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
    return [together.slice(start, end - start) for start, end in pairwise([0, *ends])]


def _hours(done_ns: int, *instants: Ints) -> list[int]:
    """The numbers of the hour that a domain has reached, in which one without a clock begins, and of later ones."""
    later = np.unique(np.concatenate([of_some // HOUR_NS for of_some in instants])).tolist()
    reached = later[0] if done_ns == NO_VALUE else done_ns // HOUR_NS
    return [reached, *(hour for hour in later if hour > reached)]


def _run(domain: DomainState, part: Part, rules: Rules, form: Form, *, finish: bool) -> dict[str, pa.Table]:
    """What one part brings, by table."""
    left = reattach(domain, part.attachments)
    places = order(part.events)
    topic = register(domain, part.events, places, broker=rules.whole_brokers)
    attached = _attached(domain, part, places, topic) if rules.connection_topics else None
    domain.hour[topic] = part.hour
    known = producers(domain, part.events, topic, offered=rules.offered)
    publishes = _publishes(part.events, places, topic, known.of_event)
    updates = _updates(domain, [change for change in part.limits if change.kind == LIMIT])
    operations = merged(domain.clock.done_ns, _leaves(left), updates, publishes)
    dispatch = _dispatch_step(domain, part, rules)
    exempt = replicators(known.name)
    result = form(domain, Step(operations, known.topic, exempt, part.until_ns, finish=finish, dispatch=dispatch), rules)
    domain.clock = domain.clock._replace(done_ns=part.until_ns)
    told = Gathered()
    marks = marks_table(domain, result, known.name, known.connection)
    told.add({"marks": marks if attached is None else in_time(attached, marks)})
    told.add({"topic_usage": usage_table(domain, result, offered=rules.offered)})
    told.add({"group_usage": group_usage(domain, operations, exempt, result, rules)})
    told.add({"group_waits": group_waits(domain, result, part.until_ns, rules)})
    if dispatch is not None and result.dispatch is not None:
        told.add(_dispatched(domain, dispatch, result.dispatch, part.until_ns, rules, finish=finish))
    keep_waiting(domain, known, offered=rules.offered, quantum=rules.release_quantum)
    return told.tables()


def _attached(domain: DomainState, part: Part, order: Ints, topic: Ints) -> pa.Table:
    known, done_ns = domain.connection_topics, domain.clock.done_ns
    return first_publishes(known, domain.broker, done_ns, part.events, order=order, topic=topic, hour=part.hour)


def _dispatch_step(domain: DomainState, part: Part, rules: Rules) -> DispatchStep | None:
    limits = [change for change in part.limits if change.kind in OF_DISPATCH]
    return dispatch_step(domain, part.dispatches, part.attachments, limits, part.hour, rules)


def _dispatched(
    domain: DomainState, step: DispatchStep, result: DispatchResult, until_ns: int, rules: Rules, *, finish: bool
) -> dict[str, pa.Table]:
    """Usage and waits of groups by dispatches, and what became of those; who still waits is kept."""
    state = domain.dispatch
    told = {
        "group_usage": dispatch_usage(domain, step, result.starts, rules),
        "group_waits": dispatch_waits(domain, result.waits, until_ns, rules),
        "dispatch_decisions": dispatch_decisions(domain.broker, state, step, result, until_ns, finish=finish),
    }
    keep_subscriptions(state, step, result.line)
    return told


def _due_changes(domain: DomainState, bound_us: int) -> list[Change]:
    """Take the changes that hold by `bound_us` out of the pending ones, in their order."""
    pending = in_order(domain.pending)
    now = [change for change in pending if change.effective_us <= bound_us]
    domain.pending = pending[len(now) :]
    return now


def _without_first(domain: DomainState, events: pa.Table, dispatches: pa.Table, changes: list[Change]) -> list[Change]:
    """Write what holds before a domain's first event into its in_force: no limiter is there to hear of it.

    A job's first batch brings all limits of its conf files, and each would be looked for among all topics.
    """
    times = [pc.min(rows["event_time_us"]).as_py() for rows in (events, dispatches) if len(rows)]
    if len(domain.keys) or len(domain.dispatch.topics) or len(domain.dispatch.keys) or not times:
        return changes
    first_us = min(times)
    early = [change for change in changes if change.effective_us <= first_us]
    for change in early:
        domain.in_force.apply(change)
    if domain.dispatch.published.since_ns == NO_VALUE and any(change.follows_publishes for change in early):
        domain.dispatch.published.since_ns = first_us * 1000
    return changes[len(early) :]


def _publishes(events: pa.Table, places: Ints, topic: Ints, producer: Ints) -> Operations:
    """The events in their order, with their times still in microseconds."""
    return Operations(
        at_ns=numbers(events["event_time_us"])[places],
        kind=np.full(len(places), PUBLISH),
        topic=topic[places],
        producer=producer[places],
        messages=numbers(events["messages"])[places],
        bytes=numbers(events["bytes"])[places],
        seq=numbers(events["seq"])[places],
    )


def _leaves(limiters: Ints) -> Operations:
    """Groups whose queues have lost topics let them go, before anything else happens: their time is long past."""
    rows: list[tuple[int, ...]] = [(0, LEAVE, limiter, -1, 0, 0, NO_VALUE) for limiter in limiters.tolist()]
    return Operations(*columns(rows, len(Operations._fields)))


def _updates(domain: DomainState, changes: list[Change]) -> Operations:
    """One operation for each limiter that a change moves, with its time still in microseconds."""
    rows: list[tuple[int, ...]] = []
    for change in changes:
        domain.in_force.apply(change)
        for position in domain.in_force.limiters_under(change, domain.keys):
            messages_per_s, bytes_per_s = domain.in_force.rates_of(domain.keys[position].as_py())
            rows.append((change.effective_us, SET_LIMIT, position, -1, messages_per_s, bytes_per_s, NO_VALUE))
    return Operations(*columns(rows, len(Operations._fields)))
