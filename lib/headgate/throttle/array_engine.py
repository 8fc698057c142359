"""The engine in array form: lays a domain's state out for the compiled kernel, runs it, and takes the state back."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain import plan_all, run
from headgate.core.kernels.domain_types import (
    NONE,
    Agenda,
    Closed,
    Domain,
    Entries,
    Ints,
    Limiters,
    Marks,
    Usage,
    Withheld,
)
from headgate.core.kernels.limiter import debt_floors
from headgate.core.kernels.links import chain, positions
from headgate.core.usage import USAGE_COLUMNS
from headgate.throttle.domain import Result, Rules, Step, advance
from headgate.throttle.keys import BROKER_KEY, group_key
from headgate.throttle.schemas import EVENTS
from headgate.throttle.state import (
    COUNT_FIELDS,
    VERSION,
    WITHHELD_FIELDS,
    DomainState,
    KeyState,
    decode_state,
    encode_state,
    ints,
)


def run_arrays(domain: DomainState, step: Step, rules: Rules) -> Result:
    """See `domain.Engine`."""
    arrays = _laid_out(domain, step, rules)
    plan_all(arrays)
    floors = debt_floors(np.stack([step.operations.messages, step.operations.bytes], axis=1), rules.max_debt_ms)
    run(arrays, step.operations, floors, step.until_ns, step.finish)
    _take_back(domain, arrays)
    n, m = arrays.marks.used[0], arrays.closed.used[0]
    marks = [column[:n].copy() for column in arrays.marks[:-1]]
    closed = [arrays.closed.topic[:m].copy(), arrays.closed.second[:m].copy(), arrays.closed.counts[:m].copy()]
    return Result._make([*marks, *closed])


def _laid_out(domain: DomainState, step: Step, rules: Rules) -> Domain:
    """Pools are as large as the step can need: a charge marks at most three limiters, a mark is undone at most once."""
    limiters, producers = len(domain.keys), len(step.producer_topic)
    kept, withheld = len(domain.entry_limiter), len(domain.withheld["at_ns"])
    charges = len(step.operations.at_ns) + withheld
    marks = 6 * charges + kept
    seconds = marks + 2 * charges + 2 * limiters
    due = limiters + producers + 6 * charges + 1
    queue_next, head, tail = chain(domain.entry_limiter, limiters, kept + 3 * charges)
    withholding = producers if rules.offered else 0
    held_next, held_head, held_tail = chain(domain.withheld["producer"], withholding, charges)
    return Domain(
        Limiters(
            rate=domain.limiters["rate"].copy(),
            balance=domain.limiters["balance"].copy(),
            last_ns=domain.limiters["last_ns"].copy(),
            remainder_ns=domain.limiters["remainder_ns"].copy(),
            floor=debt_floors(domain.limiters["rate"], rules.max_debt_ms),
            next_drain_ns=domain.limiters["next_drain_ns"].copy(),
            born=domain.limiters["born"].copy(),
            reprice=_reprice(domain),
            head=head,
            tail=tail,
        ),
        Entries(
            queue_next,
            _room(domain.entry_producer, 3 * charges),
            _room(step.producer_topic[domain.entry_producer], 3 * charges),
            ints(kept),
        ),
        Withheld._make(
            [
                held_next,
                *(_room(domain.withheld[name], charges - withheld) for name in WITHHELD_FIELDS[1:]),
                ints(withheld),
                held_head,
                held_tail,
            ]
        ),
        np.bincount(domain.entry_producer, minlength=producers).astype(np.int64),
        _usage(domain, step, limiters),
        Marks._make([*(np.empty(marks, np.int64) for _ in range(6)), ints(0)]),
        Closed(
            np.empty(seconds, np.int64),
            np.empty(seconds, np.int64),
            np.empty((seconds, USAGE_COLUMNS), np.int64),
            ints(0),
        ),
        Agenda(np.empty(due, np.int64), np.empty(due, np.int64), ints(0)),
        broker=domain.keys.index(BROKER_KEY).as_py(),
        quantum=rules.release_quantum,
        offered=rules.offered,
        timeout_ns=rules.send_timeout_ms * 1_000_000,
    )


def _reprice(domain: DomainState) -> Ints:
    """Limits of groups are repriced, all others replaced (rate-limiters 4.4, 11)."""
    is_group: Ints = pc.starts_with(domain.keys, group_key("")).to_numpy(zero_copy_only=False).astype(np.int64)
    return is_group


def _room(values: Ints, more: int) -> Ints:
    grown = np.empty(len(values) + more, np.int64)
    grown[: len(values)] = values
    return grown


def _usage(domain: DomainState, step: Step, limiters: int) -> Usage:
    second, since_ns = np.full(limiters, NONE), np.zeros(limiters, np.int64)
    counts = np.zeros((limiters, USAGE_COLUMNS), np.int64)
    topic = domain.usage["topic"]
    second[topic], since_ns[topic] = domain.usage["second"], domain.usage["since_ns"]
    for column, name in enumerate(COUNT_FIELDS):
        counts[topic, column] = domain.usage[name]
    waiting = np.bincount(step.producer_topic[domain.entry_producer], minlength=limiters).astype(np.int64)
    return Usage(second, counts, waiting, since_ns)


def _take_back(domain: DomainState, arrays: Domain) -> None:
    for name in domain.limiters:
        domain.limiters[name] = getattr(arrays.limiters, name)
    rows, domain.entry_limiter = positions(arrays.entries.next, arrays.limiters.head)
    domain.entry_producer = arrays.entries.producer[rows]
    rows, producer = positions(arrays.withheld.next, arrays.withheld.head)
    domain.withheld = {"producer": producer} | {
        name: column[rows] for name, column in zip(WITHHELD_FIELDS[1:], arrays.withheld[1:7], strict=True)
    }
    usage = arrays.usage
    topic = np.flatnonzero((usage.second != NONE) | (usage.waiting > 0))
    domain.usage = {"topic": topic, "second": usage.second[topic], "since_ns": usage.since_ns[topic]} | {
        name: usage.counts[topic, column] for column, name in enumerate(COUNT_FIELDS)
    }


def warm_up() -> None:
    """Compile the kernels (about 20 s, once), or load them from disk, before the first batch needs them."""
    domain = DomainState("warm-up")
    for at_us in (1, 2):
        events = pa.table(
            [[at_us], [at_us], ["b"], ["persistent://t/n/t"], [None], ["p"], ["c"], [1], [1]], schema=EVENTS
        )
        domain.book.default = (1, 1)
        advance(domain, events, at_us, Rules(), run_arrays, finish=False)
        domain = decode_state(VERSION, encode_state(KeyState({domain.broker: domain}))).domains[domain.broker]
