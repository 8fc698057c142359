"""What became of each subscription's dispatches, second by second: let go on, or held back and by which level."""

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import distinct, sums_by
from headgate.arrow.schemas import TIMESTAMP
from headgate.core.dispatch.dispatch_domain import PLACES
from headgate.core.kernels.columns import Ints
from headgate.core.kernels.dispatch.types import READ
from headgate.core.numbers import SECOND_NS
from headgate.throttle.dispatch.dispatch_state import DispatchState
from headgate.throttle.form import DispatchResult, DispatchStep
from headgate.throttle.schemas import DISPATCH_COUNTS, DISPATCH_DECISIONS

_COLUMN = {name: number for number, name in enumerate(DISPATCH_COUNTS)}
_FIRST_PLACE = _COLUMN["held_by_broker"]


def dispatch_decisions(
    broker: str, state: DispatchState, step: DispatchStep, result: DispatchResult, until_ns: int, *, finish: bool
) -> pa.Table:
    """Rows of DISPATCH_DECISIONS for the seconds that have ended by `until_ns`, with `finish` for all; others stay
    open.

    Of admitted traffic a delivery is allowed if all its levels had permits, and otherwise held back, as a broker would
    have done. Of offered traffic a read counts when it comes, and as allowed when it starts.
    """
    came = np.flatnonzero(step.operations.kind == READ)
    parts = (
        _arrivals(step, came, result.held_by),
        _starts(result),
        (step.open, state.open_second, state.open_counts),
    )
    subscription, second, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    first, cell = distinct(second, subscription) if len(second) else (second, second)
    summed = np.empty((len(first), len(DISPATCH_COUNTS)), np.int64)
    for column in range(len(DISPATCH_COUNTS) - 1):
        summed[:, column] = sums_by(counts[:, column], cell, len(first))
    longest = np.zeros(len(first), np.int64)
    np.maximum.at(longest, cell, counts[:, -1])
    summed[:, -1] = longest
    subscription, second = subscription[first], second[first]
    has_ended = ((second + 1) * SECOND_NS <= until_ns) | finish
    ended, goes_on = np.flatnonzero(has_ended), np.flatnonzero(~has_ended)
    topics, names = step.subscriptions[:2]
    still = pa.array(subscription[goes_on])
    state.open_second, state.open_counts = second[goes_on], summed[goes_on]
    state.open_topic, state.open_name = topics.take(still), names.take(still)
    whose = pa.array(subscription[ended])
    columns = [
        pa.array(second[ended] * 1_000_000, pa.int64()).cast(TIMESTAMP),
        pa.repeat(pa.scalar(broker, pa.string()), len(ended)),
        topics.take(whose),
        names.take(whose),
        *summed[ended].T,
    ]
    return pa.table(columns, DISPATCH_DECISIONS)


def _arrivals(step: DispatchStep, came: Ints, place: Ints) -> tuple[Ints, Ints, Ints]:
    """Subscription, second and counts of what came: with it, in admitted traffic, what was allowed."""
    operations = step.operations
    counts = np.zeros((len(came), len(DISPATCH_COUNTS)), np.int64)
    amounts = np.stack([np.ones(len(came), np.int64), operations.messages[came], operations.bytes[came]], axis=1)
    counts[:, _COLUMN["reads"] : _COLUMN["bytes"] + 1] = amounts
    if not step.offered:
        counts[:, _COLUMN["allowed_reads"] : _COLUMN["allowed_bytes"] + 1] = np.where(place[:, None] == 0, amounts, 0)
    for number in range(PLACES):
        counts[:, _FIRST_PLACE + number] = place == number + 1
    return operations.target[came], operations.at_ns[came] // SECOND_NS, counts


def _starts(result: DispatchResult) -> tuple[Ints, Ints, Ints]:
    """The same of what started in offered traffic."""
    starts = result.starts
    counts = np.zeros((len(starts.at_ns), len(DISPATCH_COUNTS)), np.int64)
    delay_ns = starts.at_ns - starts.arrived_ns
    for name, values in {
        "allowed_reads": np.ones(len(delay_ns), np.int64),
        "allowed_messages": starts.messages,
        "allowed_bytes": starts.bytes,
        "delayed_reads": (delay_ns > 0).astype(np.int64),
        "delay_ns": delay_ns,
        "max_delay_ns": delay_ns,
    }.items():
        counts[:, _COLUMN[name]] = values
    return starts.subscription, starts.at_ns // SECOND_NS, counts
