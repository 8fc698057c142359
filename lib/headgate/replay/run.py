"""One key of a replay: its rows by time through the operator, and what its brokers exchange round by round."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import numbers
from headgate.arrow.schemas import GROUP_USAGE, GROUP_WAITS, table_of
from headgate.core.quota.groups import UNLIMITED, RatePair
from headgate.quota.control_rows import ControlRows
from headgate.quota.loop import QuotaLoop
from headgate.quota.memory import MemoryExchange
from headgate.replay.delays import TimedForm
from headgate.replay.plan import Plan
from headgate.replay.schemas import REPLAY_LIMITS
from headgate.replay.tally import SECOND_US, Tally
from headgate.throttle.form import Form
from headgate.throttle.limits.changes import Limit
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.ordering import by_broker, order
from headgate.throttle.schemas import EVENTS
from headgate.throttle.state import DomainState
from headgate.throttle.step import advance

MOST_ROWS = 65_536
"""Rows of a round that are kept until it ends; more of them act before."""
STRIDE_MS = 10_000
"""How far time goes at once where brokers have nothing to exchange."""
MOST_RUN_ON_MS = 600_000
"""How long a replay goes on after its last row, at most, for what is still withheld."""
SECONDS_AT_ONCE = 64
_MS_US = 1000


@dataclass(frozen=True)
class Trace:
    """What is known of the whole trace before any of it is replayed: its brokers by name, first and last event time."""

    brokers: tuple[str, ...]
    first_us: int
    last_us: int


Emit = Callable[[str, pa.Table], None]
"""Takes rows of a kind: replay_seconds, replay_limits, tenants, delays, shares."""


class KeyRun:
    """What comes out depends on the rows and the plan alone, not on how the rows are cut into `take`.

    All brokers of the trace are members from its start, and share what nobody has reported on yet by weight. Round by
    round each broker's traffic passes, all report, and what the reports lead to holds from there on, `delay_ms` after
    the end of the epoch that they are about. Memory: the rows of a round, at most about MOST_ROWS, and state.

    Arguments:
        key: of plan.Keys. form: of the plan's kernel. emit: for what comes out.

    """

    def __init__(self, key: str, plan: Plan, trace: Trace, form: Form, emit: Emit) -> None:
        self._plan, self._trace, self._emit = plan, trace, emit
        self._tally = Tally(plan, self._limit_before)
        self._advance = partial(advance, rules=plan.rules, form=TimedForm(form, self._tally.hear))
        self._domains: dict[str, DomainState] = {}
        self._limits: dict[tuple[str, str], list[tuple[int, Limit]]] = {}
        self._waiting: list[pa.Table] = []
        self._rows = self._numbered = self._seconds_due = 0
        self._usage: list[pa.Table] = []
        self._waits: list[pa.Table] = []
        self._phase_ms = plan.delay_ms % plan.round_ms
        self._now_ms = self._round_ms = trace.first_us // _MS_US // plan.round_ms * plan.round_ms
        self._wall_ms, self._owes = self._now_ms, False
        tables = plan.tables_for(key)
        self._loop: QuotaLoop | None = None
        self._stride_ms = plan.round_ms
        if plan.shares and tables.attached_groups():
            exchange = MemoryExchange(tables, plan.quota, plan.delay_ms - self._phase_ms)
            self._loop = QuotaLoop(exchange, plan.quota, demand_visible=plan.rules.offered)
            self._measure(self._loop)
            self._exchange(self._loop)
        else:
            self._stride_ms *= max(1, STRIDE_MS // plan.round_ms)
            self._tell_fixed({group.name: group.quotas(0) for group in tables.attached_groups().values()})

    def take(self, events: pa.Table) -> None:
        """Rows of EVENTS, in the order of event_time_us, none before those of the last call."""
        if not len(events):
            return
        self._waiting.append(events)
        self._rows += len(events)
        newest_us = events["event_time_us"][-1].as_py()
        if newest_us < self._next_us and self._rows < MOST_ROWS:
            return
        rest = self._stops(pa.concat_tables(self._waiting), newest_us)
        if len(rest) >= MOST_ROWS:
            before, rest = _cut(rest, newest_us)
            if len(before):
                self._step(before, newest_us - 1)
        self._waiting, self._rows = [rest], len(rest)

    def end(self) -> None:
        """Nothing more comes: let time go on until nobody is withheld any longer, and tell the rest."""
        waiting = pa.concat_tables([EVENTS.empty_table(), *self._waiting])
        rest, end_us = self._stops(waiting, self._trace.last_us), self._trace.last_us
        if self._plan.rules.offered:
            most_ms = min(self._plan.rules.send_timeout_ms, MOST_RUN_ON_MS) + 1
            self._stop(rest)
            while self._is_withheld() and self._now_ms <= self._trace.last_us // _MS_US + most_ms:
                self._stop(EVENTS.empty_table())
            rest, end_us = EVENTS.empty_table(), self._now_ms * _MS_US
        self._step(rest, end_us, finish=True)
        self._emit("replay_seconds", self._tally.seconds(None))
        for kind, rows in (
            ("tenants", self._tally.tenants()),
            ("delays", self._tally.delays()),
            ("shares", self._tally.shares()),
        ):
            self._emit(kind, rows)

    @property
    def _next_us(self) -> int:
        """The next instant at which something besides traffic happens."""
        next_ms = self._round_ms + (self._phase_ms if self._owes else self._stride_ms)
        return next_ms * _MS_US

    def _is_withheld(self) -> bool:
        return any(len(domain.withheld["at_ns"]) for domain in self._domains.values())

    def _stops(self, events: pa.Table, until_us: int) -> pa.Table:
        """Play up to the last stop by `until_us`; the rows that are left."""
        while self._next_us <= until_us:
            now, events = _cut(events, self._next_us)
            self._stop(now)
        return events

    def _stop(self, events: pa.Table) -> None:
        """The traffic up to the next stop, and what the brokers do there.

        A round ends for all of them: they measure. What they have measured is read, and what follows from it holds,
        after the delay: in the same instant, or at a stop of its own inside the next round.
        """
        at_us = self._next_us
        self._step(events, at_us)
        self._now_ms = at_us // _MS_US
        if self._loop is not None and self._owes:
            self._owes = False
            self._exchange(self._loop)
            return
        self._round_ms = self._now_ms
        if self._loop is not None:
            self._measure(self._loop)
            self._owes = self._phase_ms > 0
            if not self._owes:
                self._exchange(self._loop)
        self._tell_seconds()

    def _tell_seconds(self) -> None:
        self._seconds_due += self._stride_ms
        if self._seconds_due >= SECONDS_AT_ONCE * _MS_US:
            self._emit("replay_seconds", self._tally.seconds(self._now_ms * _MS_US))
            self._forget()
            self._seconds_due = 0

    def _measure(self, loop: QuotaLoop) -> None:
        usage = pa.concat_tables([GROUP_USAGE.empty_table(), *self._usage])
        waits = pa.concat_tables([GROUP_WAITS.empty_table(), *self._waits])
        self._usage, self._waits = [], []
        loop.measure(usage, waits, self._trace.brokers, self._now_ms, self._wall_ms)

    def _exchange(self, loop: QuotaLoop) -> None:
        self._enforce(loop.exchange(self._now_ms, self._wall_ms))

    def _enforce(self, rows: ControlRows) -> None:
        """From here on the brokers go by these limits."""
        changes = [
            (row.broker, row.group, (row.messages_per_s, row.bytes_per_s))
            for row in rows.limits
            if row.traffic_class == 0
        ]
        at_us = self._now_ms * _MS_US
        for seq, (broker, group, rates) in enumerate(changes, 1):
            change = Limit(at_us, seq, broker, "group", group, *rates)
            self._limits.setdefault((broker, group), []).append((at_us, change))
            if broker in self._domains:
                self._domains[broker].pending.append(change)
        self._tell([(group, broker, at_us, *rates) for broker, group, rates in changes])

    def _tell_fixed(self, quotas: dict[str, RatePair]) -> None:
        """Where brokers share nothing each has the whole rate of a group."""
        at_us = self._now_ms * _MS_US
        for group, rates in quotas.items():
            for broker in self._trace.brokers:
                self._limits[broker, group] = [(0, Limit(0, 0, broker, "group", group, *rates))]
        self._tell(
            [(group, broker, at_us, *rates) for group, rates in quotas.items() for broker in self._trace.brokers]
        )

    def _tell(self, rows: list[tuple[str, str, int, int | None, int | None]]) -> None:
        if rows:
            self._emit("replay_limits", table_of(rows, pa.schema([one for one in REPLAY_LIMITS if one.name != "conf"])))

    def _limit_before(self, group: str | None, broker: str, at_us: int) -> RatePair:
        changes = self._limits.get((broker, group or ""), [])
        held = [change for since_us, change in changes if since_us < at_us]
        return (held[-1].messages_per_s, held[-1].bytes_per_s) if held else UNLIMITED

    def _forget(self) -> None:
        """Only the last limit before the seconds to come is of use."""
        open_us = self._now_ms * _MS_US // SECOND_US * SECOND_US
        for changes in self._limits.values():
            over = sum(since_us < open_us for since_us, _ in changes)
            del changes[: max(over - 1, 0)]

    def _step(self, events: pa.Table, high_us: int, *, finish: bool = False) -> None:
        """Bring every broker forward to `high_us`, those that have nothing to do left out."""
        of_brokers = dict(by_broker(self._in_order(events)))
        for broker in sorted(self._domains.keys() | of_brokers.keys()):
            domain = self._domains.get(broker) or self._begin(broker)
            of_broker = of_brokers.get(broker)
            if of_broker is None and not (domain.is_open or domain.pending or finish):
                continue
            rows = {} if of_broker is None else {"events": of_broker}
            out = self._advance(domain, rows, high_us, finish=finish)
            self._tally.take(out.of("topic_usage"), out.of("group_usage"))
            if self._loop is not None:
                self._usage.append(out.of("group_usage"))
                self._waits.append(out.of("group_waits"))

    def _begin(self, broker: str) -> DomainState:
        """A broker's limiters, at its first traffic."""
        limits = [changes[-1][1] for (of, _), changes in self._limits.items() if of == broker and changes]
        self._domains[broker] = DomainState(
            broker, in_force=EffectiveLimits.from_changes([*self._plan.changes, *limits])
        )
        return self._domains[broker]

    def _in_order(self, events: pa.Table) -> pa.Table:
        """The rows as they act; each gets its number as `seq` (TimedForm)."""
        if not len(events):
            return events
        numbered = pa.array(np.arange(self._numbered, self._numbered + len(events)))
        self._numbered += len(events)
        rows = events.take(pa.array(order(events)))
        return rows.set_column(rows.schema.get_field_index("seq"), "seq", numbered)


def _cut(events: pa.Table, at_us: int) -> tuple[pa.Table, pa.Table]:
    """Rows before `at_us`, and the others."""
    before = int(np.searchsorted(numbers(events["event_time_us"]), at_us, side="left"))
    return events.slice(0, before), events.slice(before)
