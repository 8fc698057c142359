"""What the stateful operator does with one key: its blocks and its state in, blocks for the tables out. No engine."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import decode, encode
from headgate.core.kernels.columns import NO_VALUE
from headgate.keyed.operator import Block, StateCodec
from headgate.keyed.slots import home_of
from headgate.throttle.form import Form, Rules
from headgate.throttle.limits.changes import (
    Change,
    changes_of,
    changes_table,
    in_order,
    reissued_late,
    without_superseded,
)
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.ordering import Gathered, by_broker
from headgate.throttle.schemas import PROGRESS, TRAFFIC
from headgate.throttle.state import VERSION, BrokerClock, DomainState, KeyState, decode_state, encode_state
from headgate.throttle.step import advance, moved

HISTORY_US = 3_600_000_000
"""How far behind the others a broker may first appear and still meet every change at its time: an hour."""
SPARE_CHANGES = 1000
"""Superseded changes that a key keeps in any case, whatever their age."""


@dataclass(frozen=True)
class ThrottleOperator:
    """The operator of the throttle job.

    kernel: the form of the rules ([operator] kernel). given: changes known at the start, for keys that the control
    stream does not reach (state key `topic`). around: puts a form that looks on around that of the kernel, None: no.
    """

    rules: Rules
    kernel: str = "numba"
    given: tuple[Change, ...] = field(default=())
    around: Callable[[Form], Form] | None = None
    codec = StateCodec(VERSION, KeyState, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator."""
        form_of(self.kernel)

    def step(self, key: str, state: KeyState, blocks: Iterable[Block]) -> list[Block]:
        """See `step_key`."""
        form = form_of(self.kernel)
        return step_key(key, state, blocks, self.rules, self.around(form) if self.around else form, self.given)


@dataclass
class Arrived:
    """The blocks of one key and batch, put together. traffic: rows by kind and broker."""

    traffic: dict[str, dict[str, pa.Table]] = field(default_factory=dict)
    high_us: dict[str, int] = field(default_factory=dict)
    everywhere_us: int = NO_VALUE
    changes: list[Change] = field(default_factory=list)
    dead_letters: list[Block] = field(default_factory=list)
    finish_us: int = NO_VALUE

    @property
    def brokers(self) -> set[str]:
        """Those whose time it tells."""
        return self.high_us.keys() | {broker for of_kind in self.traffic.values() for broker in of_kind}

    def of(self, broker: str) -> dict[str, pa.Table]:
        """The broker's rows by kind; kinds of which nothing came are left out."""
        return {kind: of_kind[broker] for kind, of_kind in self.traffic.items() if broker in of_kind}


def arrived(blocks: Iterable[Block]) -> Arrived:
    by_kind: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        by_kind[block.kind].append(block)
    result = Arrived(dead_letters=by_kind["dead_letters"])
    for block in by_kind["changes"]:
        result.changes += changes_of(decode(block.block))
    for block in by_kind["ticks"]:
        for broker, event_time_us, finish in zip(*decode(block.block).to_pydict().values(), strict=True):
            if finish:
                result.finish_us = max(result.finish_us, event_time_us)
            if broker is None:
                result.everywhere_us = max(result.everywhere_us, event_time_us)
            else:
                result.high_us[broker] = max(result.high_us.get(broker, NO_VALUE), event_time_us)
    for kind in by_kind.keys() & TRAFFIC.keys():
        result.traffic[kind] = dict(by_broker(pa.concat_tables(decode(block.block) for block in by_kind[kind])))
    return result


@cache
def form_of(kernel: str) -> Form:
    """The form that [operator] kernel names; `numba` loads the compiler, and compiles what is not compiled yet."""
    if kernel == "python":
        from headgate.throttle.readable_form import run_readable  # noqa: PLC0415

        return run_readable
    from headgate.throttle.array_form import run_arrays, warm_up  # noqa: PLC0415

    warm_up()
    return run_arrays


def step_key(  # noqa: PLR0917  one call a key and batch, its arguments are what the operator has
    key: str,
    state: KeyState,
    blocks: Iterable[Block],
    rules: Rules,
    form: Form,
    given: tuple[Change, ...] = (),
) -> list[Block]:
    """Bring the key's domains forward by what arrived; `state` is changed in place.

    A finish comes before the traffic that arrives with it: wherever batches end, it closes the same.

    given: changes known from the start of the job, by seq, for keys that are topics: no row on the control stream
    reaches all of them. A key takes those that concern its topic, or its broker, each once: by its number, as those
    that were superseded may be gone from the table meanwhile.
    """
    arrival = arrived(blocks)
    _take_changes(state, [*_given_anew(key, state, given), *arrival.changes])
    out = list(arrival.dead_letters)
    told = Gathered()
    progress = []
    for broker in sorted(state.heard.keys() | arrival.brokers):
        rows = arrival.of(broker)
        count = sum(map(len, rows.values()))
        high_us = max(*map(_highest_us, rows.values()), arrival.high_us.get(broker, NO_VALUE), arrival.everywhere_us)
        if arrival.finish_us != NO_VALUE:
            told.add(_finish(state, broker, arrival.finish_us, rules, form))
        if broker not in state.domains and not count:
            state.clocks[broker] = clock = moved(state.clocks.get(broker, BrokerClock()), high_us, rules)
            if high_us != NO_VALUE and rules.slots and key == home_of(broker, rules.slots):
                progress.append(_heard(key, broker, clock))
            continue
        domain = state.domains.get(broker) or _begin(state, broker)
        if not count and high_us <= domain.clock.high_us and not arrival.changes:
            progress.append(_progress(key, domain, 0, 0))
            continue
        output = advance(domain, rows, high_us, rules, form)
        told.add(output.rows)
        progress.append(_progress(key, domain, count, output.late))
        if not count and domain.is_empty:
            state.clocks[broker] = state.domains.pop(broker).clock
    if arrival.changes:
        _forget(state, arrival, rules)
    told.add({"progress": pa.Table.from_pylist(progress, PROGRESS)})
    return out + [Block(name, len(rows), encode(_without_nulls(rows))) for name, rows in told.tables().items()]


def _highest_us(rows: pa.Table) -> int:
    return pc.max(rows["event_time_us"]).as_py()  # type: ignore[no-any-return]


def _finish(state: KeyState, broker: str, finish_us: int, rules: Rules, form: Form) -> Mapping[str, pa.Table]:
    """Close what is open on a broker; one that has nothing here only learns of the time."""
    domain = state.domains.get(broker)
    if domain is None:
        state.clocks[broker] = moved(state.clocks.get(broker, BrokerClock()), finish_us, rules, finish=True)
        return {}
    return advance(domain, {}, finish_us, rules, form, finish=True).rows


def _without_nulls(table: pa.Table) -> pa.Table:
    """The table without the columns that hold nothing; its reader adds them again by the schema."""
    return table.select([name for name in table.column_names if table[name].null_count < len(table)])


def _given_anew(key: str, state: KeyState, given: tuple[Change, ...]) -> list[Change]:
    """Those of `given`, in the order of their numbers, that the key has not looked at yet."""
    if not given or given[-1].seq < state.taken:
        return []
    new = [change for change in given if change.seq >= state.taken and change.concerns(key)]
    state.taken = given[-1].seq + 1
    return new


def _take_changes(state: KeyState, changes: list[Change]) -> None:
    """Changes are pending in every domain they hold on, and kept for brokers that are yet to come."""
    if not changes:
        return
    reached_us = {broker: clock.done_ns // 1000 for broker, clock in state.heard.items()}
    kept = [*changes, *reissued_late(state.changes, changes, reached_us)]
    state.changes = pa.concat_tables([state.changes, changes_table(kept)]).combine_chunks()
    for broker, domain in state.domains.items():
        domain.pending += [change for change in changes if change.holds_on(broker)]


def _begin(state: KeyState, broker: str) -> DomainState:
    """A new domain, at the time that its broker has reached.

    Changes up to what is forgotten are in force from its first event on, later ones at their time.
    """
    changes = [change for change in changes_of(state.changes) if change.holds_on(broker)]
    settled = in_order(change for change in changes if change.effective_us <= state.forgotten_us)
    pending = [change for change in changes if change.effective_us > state.forgotten_us]
    clock = state.clocks.pop(broker, BrokerClock())
    state.domains[broker] = DomainState(broker, clock, pending=pending, in_force=EffectiveLimits.from_changes(settled))
    return state.domains[broker]


def _forget(state: KeyState, arrival: Arrived, rules: Rules) -> None:
    """Drop the superseded changes HISTORY_US behind the highest event time heard of, once they are SPARE_CHANGES.

    All slots hear the same times. A broker whose first event is not further behind meets the same limits as if nothing
    had been dropped; one further behind, those in force at the horizon, or the true ones if nothing was dropped yet.
    """
    heard_us = max(arrival.everywhere_us, *(clock.high_us for clock in state.heard.values()), NO_VALUE)
    horizon_us = max(heard_us - rules.hold_back_ms * 1000 - HISTORY_US, NO_VALUE)
    behind = state.changes.filter(pc.less_equal(state.changes["effective_us"], horizon_us))
    names = behind.group_by(["broker", "kind", "scope", "name"], use_threads=False).aggregate([])
    if len(behind) - len(names) > SPARE_CHANGES:
        state.changes = changes_table(without_superseded(changes_of(state.changes), horizon_us))
        state.forgotten_us = max(state.forgotten_us, horizon_us)


def _heard(key: str, broker: str, clock: BrokerClock) -> dict[str, object]:
    """The time of a broker without a domain here: nothing of it came yet, or it is another job's."""
    return dict.fromkeys(PROGRESS.names, 0) | {
        "key": key,
        "broker": broker,
        "event_time_us": clock.high_us,
        "is_open": False,
    }


def _progress(key: str, domain: DomainState, rows: int, late: int) -> dict[str, object]:
    return _heard(key, domain.broker, domain.clock) | {
        "rows": rows,
        "late": late,
        "waiting": int(domain.entry_count.sum()) + len(domain.dispatch.subscription_due_ns),
        "producers": len(np.unique(domain.entry_producer)),
        "subscriptions": len(domain.dispatch.subscription_due_ns),
        "is_open": domain.is_open,
    }
