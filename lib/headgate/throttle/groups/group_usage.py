"""Usage of resource groups by slot of time, and the times in which their limiters made producers or reads wait.

Both are told as far as a step has come; what the steps tell, added up, does not depend on how the input was cut.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import no_ints, sums_by
from headgate.arrow.schemas import GROUP_LEAVES, GROUP_USAGE, GROUP_WAITS
from headgate.core.kernels.columns import Flags, Ints
from headgate.core.kernels.dispatch.types import READ
from headgate.core.kernels.publish.types import BY_BYTES, BY_MESSAGES, PUBLISH, TOLD, Operations
from headgate.throttle.form import DispatchStep, Result, Rules, Starts, Waits
from headgate.throttle.groups.known_topics import KnownTopics
from headgate.throttle.keys import scopes_and_names
from headgate.throttle.state import DomainState

PUBLISH_CLASS, DISPATCH_CLASS = 0, 1
_MS_NS = 1_000_000
_CLOSE = 8


def group_usage(domain: DomainState, operations: Operations, exempt: Flags, result: Result, rules: Rules) -> pa.Table:
    """A row for each group and slot with publishes. exempt: producers that do not count."""
    group_of = domain.limiters["group"]
    if rules.slot_ms == 0 or not (group_of >= 0).any():
        return GROUP_USAGE.empty_table()
    of_group = np.flatnonzero((operations.kind == PUBLISH) & (group_of[operations.topic] >= 0))
    of_group = of_group[~exempt[operations.producer[of_group]]]
    arrived = _rows(operations, of_group)
    let_in = np.stack(result.admissions) if rules.offered else None
    cells = _Cells(domain.broker, PUBLISH_CLASS, domain.keys, group_of, len(domain.keys))
    return _usage(cells, domain.known_topics, arrived, let_in, rules)


def dispatch_usage(domain: DomainState, step: DispatchStep, starts: Starts, rules: Rules) -> pa.Table:
    """A row for each group and slot with dispatches: offered as reads came, admitted as they were charged."""
    state, operations = domain.dispatch, step.operations
    if rules.slot_ms == 0:
        return GROUP_USAGE.empty_table()
    came = np.flatnonzero(operations.kind == READ)
    came = came[step.has_group[operations.target[came]] & (operations.exempt[came] == 0)]
    topic = step.topic[operations.target[came]]
    arrived = np.stack([operations.at_ns[came], topic, operations.messages[came], operations.bytes[came]])
    counted = starts.counted != 0
    columns = (starts.at_ns, step.topic[starts.subscription], starts.messages, starts.bytes)
    let_in = np.stack([column[counted] for column in columns]) if rules.offered else None
    cells = _Cells(domain.broker, DISPATCH_CLASS, state.keys, state.level_of, max(len(state.topics), len(state.keys)))
    return _usage(cells, state.known_topics, arrived, let_in, rules)


class _Cells(NamedTuple):
    """Which groups' usage it is: keys of their limiters, the position of each topic's among them, and how many numbers
    topics and limiters have at most.
    """

    broker: str
    traffic_class: int
    keys: pa.StringArray
    group_of: Ints
    numbers: int


def _rows(operations: Operations, chosen: Ints) -> Ints:
    columns = (operations.at_ns, operations.topic, operations.messages, operations.bytes)
    return np.stack([column[chosen] for column in columns])


def _usage(cells: _Cells, known: KnownTopics, arrived: Ints, let_in: Ints | None, rules: Rules) -> pa.Table:
    """A row for each group and slot with traffic: time, topic, messages and bytes of what arrived and was let in.

    Offered is what arrived, admitted what was let in: the same in admitted traffic (let_in None). topics: those of the
    group whose first traffic in their epoch lies in the slot.
    """
    at_ns, topic, messages, bytes_ = arrived if let_in is None else np.concatenate([arrived, let_in], axis=1)
    if not len(at_ns):
        return GROUP_USAGE.empty_table()
    at_ms = at_ns // _MS_NS
    slots, of_slot = _distinct(at_ms // rules.slot_ms)
    groups, of_group = _distinct(cells.group_of[topic] * len(slots) + of_slot)
    is_first = _firsts(cells, known, at_ms, topic, rules.epoch_ms)
    came = slice(0, arrived.shape[1])
    admitted = came if let_in is None else slice(arrived.shape[1], None)
    sums = [
        sums_by(amounts[part], of_group[part], len(groups))
        for part in (admitted, came)
        for amounts in (messages, bytes_)
    ]
    topics = np.bincount(of_group, weights=is_first, minlength=len(groups)).astype(np.int64)
    columns = [slots[groups % len(slots)] * rules.slot_ms, *sums, topics]
    return pa.table([*_group_columns(cells, groups // len(slots)), *columns], GROUP_USAGE)


def _firsts(cells: _Cells, known: KnownTopics, at_ms: Ints, topic: Ints, epoch_ms: int) -> Ints:
    """1 where a topic has its first traffic in an epoch for the group that it has now, else 0; remembers the newest."""
    group_of, count = cells.group_of, cells.numbers
    order = np.argsort(at_ms, kind="stable")
    epochs, of_epoch = _distinct(at_ms // epoch_ms)
    pairs, of_pair = _distinct(of_epoch * count + topic)
    first = np.empty(len(pairs), np.int64)
    first[of_pair[order[::-1]]] = order[::-1]  # of several the last that is written stays
    places = topic[first] * count + group_of[topic[first]]
    before = known.topic * count + known.group
    is_new = (epochs[of_epoch[first]] != known.epoch) | ~np.isin(places, before)
    newest = int(epochs[-1])
    kept = [before] if newest == known.epoch else []
    newly = np.unique(np.concatenate([*kept, places[epochs[of_epoch[first]] == newest]]))
    known.epoch, known.topic, known.group = newest, newly // count, newly % count
    firsts = np.zeros(len(topic), np.int64)
    firsts[first[is_new]] = 1
    return firsts


def _distinct(values: Ints) -> tuple[Ints, Ints]:
    """Distinct values in order, and each value's place among them; without sorting where they lie close together."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > _CLOSE * len(values):
        distinct, codes = np.unique(values, return_inverse=True)
        return distinct, codes.astype(np.int64)
    is_there = np.zeros(span, np.bool_)
    is_there[values - low] = True
    return np.flatnonzero(is_there) + low, (np.cumsum(is_there) - 1)[values - low]


def leave_rows(broker: str, traffic_class: int, groups: pa.StringArray) -> pa.Table:
    """Rows of GROUP_LEAVES: these groups, by their keys, have no topics on the broker any more."""
    cells = _Cells(broker, traffic_class, groups, no_ints(), 0)
    return pa.table(_group_columns(cells, np.arange(len(groups))), GROUP_LEAVES)


def group_waits(domain: DomainState, result: Result, until_ns: int, rules: Rules) -> pa.Table:
    """The waits of publishes that ended, or changed their causes, in the step, and those that go on, as far as
    `until_ns`.
    """
    cells = _Cells(domain.broker, PUBLISH_CLASS, domain.keys, domain.limiters["group"], len(domain.keys))
    return _waits(cells, domain.limiters, result.waits, until_ns, rules)


def dispatch_waits(domain: DomainState, waits: Waits, until_ns: int, rules: Rules) -> pa.Table:
    """As group_waits, of dispatches."""
    state = domain.dispatch
    cells = _Cells(domain.broker, DISPATCH_CLASS, state.keys, state.level_of, len(state.keys))
    return _waits(cells, state.levels, waits, until_ns, rules)


def _waits(cells: _Cells, limiters: dict[str, Ints], waits: Waits, until_ns: int, rules: Rules) -> pa.Table:
    if rules.slot_ms == 0:
        return GROUP_WAITS.empty_table()
    cause, held_ns = limiters["cause"], limiters["held_ns"]
    on = np.flatnonzero((cause != 0) & (held_ns < until_ns))
    limiter, from_ns, until, causes = (
        np.concatenate(pair)
        for pair in zip(waits, (on, held_ns[on], np.full(len(on), until_ns), cause[on]), strict=True)
    )
    cause[on] |= TOLD
    held_ns[on] = until_ns
    from_ms = from_ns // _MS_NS
    until_ms = np.maximum(-(-until // _MS_NS), from_ms + 1)
    flags = [pa.array((causes & bit) != 0) for bit in (BY_MESSAGES, BY_BYTES)]
    return pa.table([*_group_columns(cells, limiter), from_ms, until_ms, *flags], GROUP_WAITS)


def _group_columns(cells: _Cells, limiters: Ints) -> list[pa.Array]:
    """Broker, group and class of rows about `limiters`."""
    _, names = scopes_and_names(cells.keys.take(pa.array(limiters, pa.int64())), cells.broker)
    count = len(limiters)
    return [
        pa.repeat(cells.broker, count),
        pc.cast(names, pa.string()),
        pa.repeat(pa.scalar(cells.traffic_class, pa.int8()), count),
    ]
