from functools import cache

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import ints, sums_by
from headgate.core.kernels.columns import NO_VALUE, Ints, Records
from headgate.core.kernels.links import chain, positions
from headgate.core.kernels.publish.publish_domain import plan_all, run
from headgate.core.kernels.publish.publish_limiter import settle
from headgate.core.kernels.publish.types import (
    ADMISSION,
    CLOSED_COLUMNS,
    CLOSED_COUNTS,
    CLOSED_ROWS,
    CLOSED_SECOND,
    CLOSED_TOPIC,
    DUE,
    ENTRY,
    LIMITER,
    MARK_ROWS,
    MARKED,
    POOLS,
    QUEUE,
    SET_LIMIT,
    WAIT,
    WITHHELD,
    DomainArrays,
)
from headgate.core.usage import USAGE_COLUMNS
from headgate.throttle.dispatch.dispatch_step import follow_publishes
from headgate.throttle.form import Result, Rules, Step
from headgate.throttle.keys import BROKER_KEY, are_groups
from headgate.throttle.records import admissions_of, buckets_of, columns_of, floors_of, waits_of
from headgate.throttle.schemas import EVENTS
from headgate.throttle.state import (
    COUNT_FIELDS,
    VERSION,
    WITHHELD_FIELDS,
    DomainState,
    KeyState,
    decode_state,
    encode_state,
)
from headgate.throttle.step import advance


def run_arrays(domain: DomainState, step: Step, rules: Rules) -> Result:
    """See `form.Form`."""
    arrays = _to_arrays(domain, step, rules)
    plan_all(arrays)
    run(arrays, step.operations, floors_of(step.operations, rules.max_debt_ms), step.until_ns, step.finish)
    _from_arrays(domain, arrays)
    marks, closed = arrays.marks[: arrays.used[MARK_ROWS]], arrays.closed[: arrays.used[CLOSED_ROWS]]
    result = Result(
        mark_at_ns=marks["at_ns"].copy(),
        mark_limiter=marks["limiter"].copy(),
        mark_producer=marks["producer"].copy(),
        mark_topic=marks["topic"].copy(),
        mark_seq=marks["seq"].copy(),
        mark_action=marks["action"].copy(),
        mark_times=marks["count"].copy(),
        mark_balance=np.stack([marks["messages_balance"], marks["bytes_balance"]], axis=1),
        mark_rate=np.stack([marks["messages_rate"], marks["bytes_rate"]], axis=1),
        closed_topic=closed[:, CLOSED_TOPIC].copy(),
        closed_second=closed[:, CLOSED_SECOND].copy(),
        closed_counts=closed[:, CLOSED_COUNTS:],
        waits=waits_of(arrays),
        admissions=admissions_of(arrays),
        dispatch=None,
    )
    if step.dispatch is None:
        return result
    from headgate.throttle.dispatch.array_form import run_dispatch  # noqa: PLC0415  its kernels are loaded where needed

    followed = follow_publishes(domain, step.dispatch, result, step.until_ns, rules)
    return result._replace(dispatch=run_dispatch(domain.dispatch, followed, step.until_ns, rules))


def _to_arrays(domain: DomainState, step: Step, rules: Rules) -> DomainArrays:
    """Pools are as large as the step can need.

    A publish is charged at most once, and a charge queues its producer at three limiters at most. An arrival of a
    blocked group queues its producer without a charge: as it comes, and as the producer is released elsewhere. That is
    one entry at most for each arrival and each entry that was kept or that a charge made: entries of a blocked group
    are released as it is blocked no longer, or once, as the step begins, where their topics leave it. An entry makes a
    mark, an unmark and a plan for its queue at most. A wait of a group is told as it ends or as its causes grow, each
    of which an entry brings about, or it was on as the step began.
    """
    limiters, producers = len(domain.keys), len(step.producer_topic)
    kept, withheld = len(domain.entry_limiter), len(domain.withheld["at_ns"])
    charges = len(step.operations.at_ns) + withheld
    queued = 3 * charges + (kept + 4 * charges if _may_hold(domain, step, rules) else 0)
    marks, tells = 2 * queued + kept, rules.slot_ms > 0
    buckets = buckets_of(domain.limiters, rules.max_debt_ms)
    settle(buckets)
    arrays = DomainArrays(
        buckets=buckets,
        limiters=np.zeros(limiters, LIMITER),
        counts=np.zeros((limiters, USAGE_COLUMNS), np.int64),
        entries=np.empty(kept + queued, ENTRY),
        withheld=np.empty(charges, WITHHELD),
        withheld_by=np.empty(producers if rules.offered else 0, QUEUE),
        waits=np.bincount(domain.entry_producer, minlength=producers).astype(np.int64),
        exempt=step.exempt,
        marks=np.empty(marks, MARKED),
        closed=np.empty((marks + 2 * charges + 2 * limiters, CLOSED_COLUMNS), np.int64),
        group_waits=np.empty(queued + limiters if tells else 0, WAIT),
        admissions=np.empty(charges if tells and rules.offered else 0, ADMISSION),
        agenda=np.empty(limiters + producers + queued + 3 * charges + 1, DUE),
        used=ints(kept, withheld, *[0] * (POOLS - 2)),
        broker=domain.keys.index(BROKER_KEY).as_py(),
        quantum=rules.release_quantum,
        offered=rules.offered,
        timeout_ns=rules.send_timeout_ms * 1_000_000,
        tells=tells,
    )
    _lay_limiters(arrays.limiters, arrays.counts, domain, step, tells=tells)
    chain(domain.entry_limiter, arrays.entries, arrays.limiters)
    chain(domain.withheld["producer"], arrays.withheld, arrays.withheld_by)
    arrays.entries["producer"][:kept] = domain.entry_producer
    arrays.entries["count"][:kept] = domain.entry_count
    arrays.entries["topic"][:kept] = step.producer_topic[domain.entry_producer]
    for name in WITHHELD_FIELDS[1:]:
        arrays.withheld[name][:withheld] = domain.withheld[name]
    return arrays


def _may_hold(domain: DomainState, step: Step, rules: Rules) -> bool:
    """Whether a group is blocked at some time of the step, so that arrivals of offered traffic may have to wait."""
    if not rules.offered:
        return False
    changes = step.operations.kind == SET_LIMIT
    rates = (domain.limiters["rate"], step.operations.messages[changes], step.operations.bytes[changes])
    return any(bool((of_some < 0).any()) for of_some in rates)


def _keeps_debt(domain: DomainState) -> Ints:
    """Limits of groups keep their debt on a rate change, all others are replaced (rate-limiters 4.4, 11)."""
    is_group: Ints = are_groups(domain.keys).to_numpy(zero_copy_only=False).astype(np.int64)
    return is_group


def _lay_limiters(limiters: Records, counts: Ints, domain: DomainState, step: Step, *, tells: bool) -> None:
    limiters["next_drain_ns"], limiters["initialised"] = (
        domain.limiters["next_drain_ns"],
        domain.limiters["initialised"],
    )
    limiters["group"] = domain.limiters["group"]
    if tells:
        limiters["cause"], limiters["held_ns"] = domain.limiters["cause"], domain.limiters["held_ns"]
    limiters["keeps_debt"], limiters["second"] = _keeps_debt(domain), NO_VALUE
    limiters["waiting"] = sums_by(domain.entry_count, step.producer_topic[domain.entry_producer], len(limiters))
    topic = domain.usage["topic"]
    limiters["second"][topic], limiters["since_ns"][topic] = domain.usage["second"], domain.usage["since_ns"]
    for column, name in enumerate(COUNT_FIELDS):
        counts[topic, column] = domain.usage[name]


def _from_arrays(domain: DomainState, arrays: DomainArrays) -> None:
    domain.limiters = columns_of(arrays, domain.limiters)
    rows, domain.entry_limiter = positions(arrays.entries, arrays.limiters)
    domain.entry_producer, domain.entry_count = arrays.entries["producer"][rows], arrays.entries["count"][rows]
    rows, producer = positions(arrays.withheld, arrays.withheld_by)
    domain.withheld = {"producer": producer} | {name: arrays.withheld[name][rows] for name in WITHHELD_FIELDS[1:]}
    limiters = arrays.limiters
    topic = np.flatnonzero((limiters["second"] != NO_VALUE) | (limiters["waiting"] > 0))
    domain.usage = {"topic": topic, "second": limiters["second"][topic], "since_ns": limiters["since_ns"][topic]} | {
        name: arrays.counts[topic, column] for column, name in enumerate(COUNT_FIELDS)
    }


@cache
def warm_up() -> None:
    """Compile the kernels of publishes (about 15 s, once), or load them from disk, before a batch needs them."""
    domain = DomainState("warm-up")
    for at_us in (1, 2):
        events = pa.table([[at_us], [at_us], ["b"], ["persistent://t/n/t"], ["p"], ["c"], [1], [1]], schema=EVENTS)
        domain.in_force.default = (1, 1)
        advance(domain, {"events": events}, at_us, Rules(), run_arrays)
        domain = decode_state(VERSION, encode_state(KeyState({domain.broker: domain}))).domains[domain.broker]
