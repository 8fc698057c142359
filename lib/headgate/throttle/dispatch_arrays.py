"""The dispatch part of the array engine: state into records for the kernel, and back."""

import numpy as np

from headgate.core.kernels.dispatch import line_of, run, settle_levels
from headgate.core.kernels.dispatch_types import (
    LEVEL,
    SET_RATE,
    SUBSCRIPTION,
    WITHHELD_READ,
    DispatchArrays,
    DispatchOperations,
)
from headgate.core.kernels.domain_types import (
    ADMISSION,
    ADMISSION_ROWS,
    NONE,
    POOLS,
    WAIT,
    WAIT_ROWS,
    WITHHELD_ROWS,
    Ints,
    Records,
)
from headgate.core.kernels.limiter import debt_floors
from headgate.core.kernels.links import chain, positions
from headgate.core.kernels.token_bucket import BUCKET
from headgate.throttle.dispatch_state import READ_FIELDS, DispatchState
from headgate.throttle.dispatch_step import DispatchStep
from headgate.throttle.state import BUCKET_FIELDS, ints
from headgate.throttle.step import Admissions, DispatchResult, Rules, Waits


def run_dispatch(state: DispatchState, step: DispatchStep, until_ns: int, rules: Rules) -> DispatchResult:
    arrays = _laid_out(state, step, rules)
    run(arrays, step.operations, _floors(step.operations, rules), step.begin_ns, until_ns)
    line = line_of(arrays)
    _take_back(state, arrays, line)
    waits = arrays.group_waits[: arrays.used[WAIT_ROWS]]
    admissions = arrays.admissions[: arrays.used[ADMISSION_ROWS]]
    return DispatchResult(
        line,
        Waits._make(waits[name].copy() for name in Waits._fields),
        Admissions._make(admissions[name].copy() for name in Admissions._fields),
    )


def _floors(operations: DispatchOperations, rules: Rules) -> Ints:
    """Debt bounds of the new rates, by operation; of limit changes only, no other has rates."""
    floors = np.zeros((len(operations.at_ns), 2), np.int64)
    changes = np.flatnonzero(operations.kind == SET_RATE)
    rates = np.stack([operations.messages[changes], operations.bytes[changes]], axis=1)
    floors[changes] = debt_floors(rates, rules.max_debt_ms)
    return floors


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
    arrays = DispatchArrays(
        buckets=_buckets(state, rules),
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


def _buckets(state: DispatchState, rules: Rules) -> Records:
    buckets = np.zeros((len(state.keys), 2), BUCKET)
    for name in BUCKET_FIELDS:
        buckets[name] = state.levels[name]
    buckets["floor"] = debt_floors(state.levels["rate"], rules.max_debt_ms)
    settle_levels(buckets)
    return buckets


def _take_back(state: DispatchState, arrays: DispatchArrays, line: Ints) -> None:
    for name in state.levels:
        records = arrays.buckets if name in BUCKET_FIELDS else arrays.limiters
        state.levels[name] = records[name].astype(np.int64)
    state.subscription_due_ns = arrays.subscriptions["due_ns"][line]
    rows, subscription = positions(arrays.reads, arrays.subscriptions)
    place = np.zeros(len(arrays.subscriptions), np.int64)
    place[line] = np.arange(len(line))
    order = np.argsort(place[subscription], kind="stable")
    state.reads = {"subscription": place[subscription][order]} | {
        name: arrays.reads[name][rows[order]] for name in READ_FIELDS[1:]
    }
