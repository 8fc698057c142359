"""The dispatch part of the array engine: state into records for the kernel, and back."""

import numpy as np

from headgate.core.kernels.dispatch import line_of, run, settle_levels
from headgate.core.kernels.dispatch_types import (
    LEVEL,
    SET_RATE,
    SUBSCRIPTION,
    WITHHELD_READ,
    DispatchArrays,
)
from headgate.core.kernels.domain_types import (
    ADMISSION,
    NONE,
    POOLS,
    WAIT,
    WITHHELD_ROWS,
    Ints,
)
from headgate.core.kernels.links import chain, positions
from headgate.throttle.columns import ints
from headgate.throttle.dispatch_state import READ_FIELDS, DispatchState
from headgate.throttle.dispatch_step import DispatchStep
from headgate.throttle.records import buckets_of, columns_of, floors_of, told
from headgate.throttle.step import DispatchResult, Rules


def run_dispatch(state: DispatchState, step: DispatchStep, until_ns: int, rules: Rules) -> DispatchResult:
    arrays = _laid_out(state, step, rules)
    run(arrays, step.operations, floors_of(step.operations, SET_RATE, rules.max_debt_ms), step.begin_ns, until_ns)
    line = line_of(arrays)
    _take_back(state, arrays, line)
    return DispatchResult(line, *told(arrays))


def _laid_out(state: DispatchState, step: DispatchStep, rules: Rules) -> DispatchArrays:
    """Pools are as large as the step can need.

    A read starts once. A wait is told as it ends or as its causes grow, at most twice an operation or a withheld read,
    each of which can begin one; or it was on as the step began.
    """
    withheld, kept = len(state.reads["at_ns"]), len(state.subscription_topic)
    operations, levels = len(step.operations.at_ns), len(state.keys)
    tells = rules.slot_ms > 0
    subscriptions = np.zeros(len(step.subscription_topic), SUBSCRIPTION)
    subscriptions["topic"] = step.subscription_topic
    subscriptions["due_ns"][:kept] = state.subscription_due_ns
    subscriptions["counted"][:kept] = step.counted
    subscriptions["next"][: max(kept - 1, 0)] = np.arange(1, kept)
    subscriptions["next"][max(kept - 1, 0) : kept] = NONE
    reads = np.empty(withheld + operations if rules.offered else withheld, WITHHELD_READ)
    chain(state.reads["subscription"], reads, subscriptions)
    for name in READ_FIELDS[1:]:
        reads[name][:withheld] = state.reads[name]
    used = ints(*[0] * POOLS)
    used[WITHHELD_ROWS] = withheld
    buckets = buckets_of(state.levels, rules.max_debt_ms)
    settle_levels(buckets)
    arrays = DispatchArrays(
        buckets=buckets,
        limiters=np.zeros(levels, LEVEL),
        level_of=state.level_of,
        subscriptions=subscriptions,
        reads=reads,
        group_waits=np.empty(2 * (operations + withheld + levels) if tells else 0, WAIT),
        admissions=np.empty(operations + withheld if tells and rules.offered else 0, ADMISSION),
        line=ints(0, kept - 1, kept),
        used=used,
        offered=rules.offered,
        tells=tells,
    )
    arrays.limiters["born"] = state.levels["born"]
    if tells:
        arrays.limiters["cause"], arrays.limiters["held_ns"] = state.levels["cause"], state.levels["held_ns"]
    waiting = state.level_of[state.subscription_topic[step.counted]]
    arrays.limiters["waiting"] = np.bincount(waiting, minlength=levels)
    return arrays


def _take_back(state: DispatchState, arrays: DispatchArrays, line: Ints) -> None:
    state.levels = columns_of(arrays, state.levels)
    state.subscription_due_ns = arrays.subscriptions["due_ns"][line]
    rows, subscription = positions(arrays.reads, arrays.subscriptions)
    place = np.zeros(len(arrays.subscriptions), np.int64)
    place[line] = np.arange(len(line))
    order = np.argsort(place[subscription], kind="stable")
    state.reads = {"subscription": place[subscription][order]} | {
        name: arrays.reads[name][rows[order]] for name in READ_FIELDS[1:]
    }
