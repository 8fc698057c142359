"""The dispatch part of the array form: state into records for the kernel, and back."""

from functools import cache

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import ints
from headgate.core.dispatch.dispatch_domain import GROUP
from headgate.core.kernels.columns import NO_VALUE, Ints, Records
from headgate.core.kernels.dispatch.dispatch_domain import DONE, TOLD_AT_ONCE, begin, line_of, run
from headgate.core.kernels.dispatch.dispatch_levels import settle_levels
from headgate.core.kernels.dispatch.types import (
    LEVEL,
    READ,
    START,
    SUBSCRIPTION,
    WITHHELD_READ,
    DispatchArrays,
)
from headgate.core.kernels.links import chain, positions
from headgate.core.kernels.publish.types import ADMISSION_ROWS, POOLS, WAIT, WAIT_ROWS, WITHHELD_ROWS
from headgate.throttle.dispatch.dispatch_state import READ_FIELDS, DispatchState
from headgate.throttle.dispatch.dispatch_step import follow_publishes
from headgate.throttle.form import DispatchResult, DispatchStep, Result, Rules, Starts, Step
from headgate.throttle.readable_form import run_readable
from headgate.throttle.records import buckets_of, columns_of, waits_of
from headgate.throttle.schemas import TRAFFIC
from headgate.throttle.state import VERSION, DomainState, KeyState, decode_state, encode_state
from headgate.throttle.step import advance


def run_dispatch(state: DispatchState, step: DispatchStep, until_ns: int, rules: Rules) -> DispatchResult:
    arrays, place = _to_arrays(state, step, rules), 0
    begin(arrays, step.begin_ns)
    while (place := run(arrays, step.operations, place, until_ns)) != DONE:
        arrays = _with_room(arrays)
    line = line_of(arrays)
    _from_arrays(state, arrays, line)
    started = arrays.starts[: arrays.used[ADMISSION_ROWS]]
    starts = Starts._make(started[name].copy() for name in Starts._fields)
    return DispatchResult(line, waits_of(arrays), arrays.held_by[step.operations.kind == READ], starts)


def _to_arrays(state: DispatchState, step: DispatchStep, rules: Rules) -> DispatchArrays:
    """Pools but for waits are as large as the step can need: a read starts once.

    A wait is told as it ends or as its causes grow, at each retry anew, of which a step over a long gap has many: there
    is room for those of a short one.
    """
    withheld, operations = len(state.reads["at_ns"]), len(step.operations.at_ns)
    levels, kept = len(state.keys), len(state.subscription_due_ns)
    tells = rules.slot_ms > 0
    subscriptions = _subscriptions(state, step)
    reads = np.empty(withheld + operations if rules.offered else withheld, WITHHELD_READ)
    chain(state.reads["subscription"], reads, subscriptions)
    for name in READ_FIELDS[1:]:
        reads[name][:withheld] = state.reads[name]
    used = ints(*[0] * POOLS)
    used[WITHHELD_ROWS] = withheld
    arrays = DispatchArrays(
        buckets=_buckets(state, rules),
        limiters=_levels(state, step),
        configured=state.levels["configured"].copy(),
        averages=state.levels["averages"].copy(),
        chains=step.chains,
        subscriptions=subscriptions,
        reads=reads,
        group_waits=np.empty(TOLD_AT_ONCE * (operations + withheld + levels) if tells else 0, WAIT),
        held_by=np.zeros(operations, np.int64),
        starts=np.empty(operations + withheld if rules.offered else 0, START),
        line=ints(0, kept - 1, kept),
        used=used,
        offered=rules.offered,
        tells=tells,
        classic=rules.classic,
        max_debt_ms=rules.max_debt_ms,
    )
    settle_levels(arrays)
    return arrays


def _with_room(arrays: DispatchArrays) -> DispatchArrays:
    """With twice the room for waits."""
    told = arrays.used[WAIT_ROWS]
    waits = np.empty(2 * len(arrays.group_waits), WAIT)
    waits[:told] = arrays.group_waits[:told]
    return arrays._replace(group_waits=waits)


def _subscriptions(state: DispatchState, step: DispatchStep) -> Records:
    kept = len(state.subscription_due_ns)
    subscriptions = np.zeros(len(step.subscriptions.names), SUBSCRIPTION)
    subscriptions["due_ns"][:kept] = state.subscription_due_ns
    subscriptions["held_by"][:kept] = state.subscription_held_by
    subscriptions["counted"][:kept] = step.counted
    subscriptions["next"][: max(kept - 1, 0)] = np.arange(1, kept)
    subscriptions["next"][max(kept - 1, 0) : kept] = NO_VALUE
    return subscriptions


def _buckets(state: DispatchState, rules: Rules) -> Records:
    """Floors of groups follow from their rates, those of others are kept."""
    buckets = buckets_of(state.levels, rules.max_debt_ms)
    buckets["floor"] = np.where(state.are_groups[:, None], buckets["floor"], state.levels["floor"])
    return buckets


def _levels(state: DispatchState, step: DispatchStep) -> Records:
    levels = np.zeros(len(state.keys), LEVEL)
    levels["group"] = state.are_groups
    levels["limits"] = (state.levels["configured"] > 0) @ np.array([1, 2])
    for name in ("initialised", "cause", "held_ns", "period_s", "relative"):
        levels[name] = state.levels[name]
    waiting = step.chains[: len(step.counted)][step.counted, GROUP]
    levels["waiting"] = np.bincount(waiting, minlength=len(levels))
    return levels


def _from_arrays(state: DispatchState, arrays: DispatchArrays, line: Ints) -> None:
    kept = {"configured": arrays.configured, "averages": arrays.averages}
    levels = columns_of(arrays, {name: column for name, column in state.levels.items() if name not in kept})
    levels["floor"] = np.where(state.are_groups[:, None], 0, levels["floor"])
    state.levels = {name: kept[name] if name in kept else levels[name] for name in state.levels}
    state.subscription_due_ns = arrays.subscriptions["due_ns"][line]
    state.subscription_held_by = arrays.subscriptions["held_by"][line]
    rows, subscription = positions(arrays.reads, arrays.subscriptions)
    place = np.zeros(len(arrays.subscriptions), np.int64)
    place[line] = np.arange(len(line))
    order = np.argsort(place[subscription], kind="stable")
    state.reads = {"subscription": place[subscription][order]} | {
        name: arrays.reads[name][rows[order]] for name in READ_FIELDS[1:]
    }


@cache
def warm_up() -> None:
    """Compile the kernels of dispatches, or load them from disk, before the first batch needs them."""

    def form(domain: DomainState, step: Step, rules: Rules) -> Result:
        result = run_readable(domain, step._replace(dispatch=None), rules)
        if step.dispatch is None:
            return result
        followed = follow_publishes(domain, step.dispatch, result, step.until_ns, rules)
        return result._replace(dispatch=run_dispatch(domain.dispatch, followed, step.until_ns, rules))

    domain = DomainState("warm-up")
    for at_us in (1, 2):
        row = [at_us, at_us, "b", "persistent://t/n/t", "s", 1, 1, 1, False, False]
        dispatches = pa.table([[value] for value in row], schema=TRAFFIC["dispatches"])
        domain.in_force.default = (1, 1)
        advance(domain, {"dispatches": dispatches}, at_us, Rules(), form)
        domain = decode_state(VERSION, encode_state(KeyState({domain.broker: domain}))).domains[domain.broker]
