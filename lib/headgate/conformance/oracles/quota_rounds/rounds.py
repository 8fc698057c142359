"""The feedback loop in rounds: brokers admit, report, hear of each other and set their limits (resource-groups 18).

One report per broker and round, nothing suppressed. The trace is the whole input, so equal traces play alike.
"""

from typing import NamedTuple

from headgate.conformance.oracles.quota_rounds.trace import (
    GONE,
    Crash,
    Event,
    Heal,
    Limit,
    MemberJoined,
    MemberLost,
    Partition,
    PlayedRound,
    QuotaSet,
    Round,
    RoundParameters,
    Trace,
)
from headgate.core.quota.evaluation.assessment import Assessment, assess
from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView, demand_of, lingers
from headgate.core.quota.evaluation.step import decide, first_limit
from headgate.core.quota.rates import capped, capped_or_none


class Heard(NamedTuple):
    """What one broker holds of another's present life: the newest row and, while idle, since when.

    used: some row was not idle. first_idle_epoch: of the first idle row after the newest that is not; None: not idle.
    """

    row: CellRow
    used: bool
    first_idle_epoch: int | None


def play(trace: Trace, parameters: RoundParameters) -> list[PlayedRound]:
    """The limits and the traffic of every round. Source: resource-groups 18, `rounds`."""
    rounds = _Rounds(trace, parameters)
    return [rounds.play(number, round_) for number, round_ in enumerate(trace.rounds)]


class _Rounds:
    """The state between two rounds.

    members: C. running: evaluates, admits and reports. made: reports of the present life, by broker and epoch; it is
    the table. held: what each running broker heard of each member. unheard_epoch: n of a broker never heard.
    """

    def __init__(self, trace: Trace, parameters: RoundParameters) -> None:
        self._trace, self._parameters = trace, parameters
        self._quota = capped_or_none(trace.quota)
        self._members = set(range(trace.brokers) if trace.members is None else trace.members)
        self._running = set(self._members)
        self._made: dict[int, dict[int, CellRow]] = {broker: {} for broker in self._members}
        self._held: dict[int, dict[int, Heard]] = {broker: {} for broker in self._members}
        self._unheard_epoch = dict.fromkeys(self._members, -1)
        self._limits: dict[int, int | None] = {}
        self._sides: tuple[frozenset[int], ...] | None = None

    def play(self, number: int, round_: Round) -> PlayedRound:
        as_of = number - self._parameters.staleness
        for event in round_.events:
            self._apply(event, number, as_of)
        self._limits = self._new_limits(number, as_of)
        demand = tuple(capped(amount) for amount in round_.demand)
        admitted = [0] * self._trace.brokers
        for broker in self._running:
            admitted[broker] = _admitted(demand[broker], self._limits[broker])
            self._made[broker][number] = self._report(number, demand[broker], self._limits[broker])
        self._deliver(as_of + 1)
        limits: list[Limit] = [GONE] * self._trace.brokers
        for broker, limit in self._limits.items():
            limits[broker] = limit
        return PlayedRound(self._quota, tuple(limits), tuple(admitted), demand)

    def _apply(self, event: Event, number: int, as_of: int) -> None:
        match event:
            case QuotaSet(quota):
                self._quota = capped_or_none(quota)
            case Crash(broker):
                self._running.discard(broker)
            case MemberLost(broker):
                self._members.discard(broker)
                self._forget(broker)
            case MemberJoined(broker):
                self._forget(broker)
                self._members.add(broker)
                self._running.add(broker)
                self._unheard_epoch[broker] = number - 1
                self._made[broker] = {}
                self._held[broker] = self._read_table(as_of)
            case Partition(sides):
                self._sides = sides
            case Heal():
                self._sides = None

    def _forget(self, broker: int) -> None:
        """The broker's present life ends: its reports are gone from the table and from what others hold."""
        self._running.discard(broker)
        self._limits.pop(broker, None)
        self._made.pop(broker, None)
        self._held.pop(broker, None)
        for heard in self._held.values():
            heard.pop(broker, None)

    def _read_table(self, as_of: int) -> dict[int, Heard]:
        """What a broker holds that reads every report up to the epoch `as_of` at once."""
        held: dict[int, Heard] = {}
        for member in self._members:
            for epoch, row in self._made[member].items():
                if epoch <= as_of:
                    held[member] = _hear(held.get(member), row)
        return held

    def _new_limits(self, number: int, as_of: int) -> dict[int, int | None]:
        if number == 0:
            return {broker: self._initial(broker) for broker in self._running}
        if as_of < 0:
            return {broker: self._limits.get(broker) for broker in self._running}
        assessments: dict[tuple[int, ...], Assessment] = {}
        entries: dict[tuple[int, int], CellMember] = {}
        limits: dict[int, int | None] = {}
        members = sorted(self._members)
        for broker in self._running:
            held = self._held[broker]
            same_view = tuple(id(held.get(member)) for member in members)
            if same_view not in assessments:
                view = CellView(
                    as_of, tuple(self._entry(member, held.get(member), as_of, entries) for member in members)
                )
                assessments[same_view] = assess(self._parameters.step, self._quota, view)
            outcome = decide(self._parameters.step, assessments[same_view], broker, self._limits.get(broker))
            limits[broker] = outcome.limit
        return limits

    def _initial(self, broker: int) -> int | None:
        if self._trace.initial is not None:
            return capped_or_none(self._trace.initial[broker])
        weights = {member: self._trace.weight_of(member) for member in self._members}
        return first_limit(self._parameters.step, self._quota, broker, weights).limit

    def _entry(
        self, broker: int, heard: Heard | None, as_of: int, entries: dict[tuple[int, int], CellMember]
    ) -> CellMember:
        """A member in the view of all that hold the same of it."""
        key = broker, id(heard)
        if key not in entries:
            entries[key] = self._member(broker, heard, as_of)
        return entries[key]

    def _member(self, broker: int, heard: Heard | None, as_of: int) -> CellMember:
        weight = self._trace.weight_of(broker)
        if heard is None:
            newest = self._unheard_epoch[broker]
            return CellMember(broker, weight, newest, missing=newest < as_of, active=False, row=None, unheard=True)
        newest, since = heard.row.epoch, heard.first_idle_epoch
        active = heard.used and (since is None or lingers(newest, since, self._parameters.linger_rounds))
        return CellMember(broker, weight, newest, missing=newest < as_of, active=active, row=heard.row)

    def _report(self, number: int, demand: int, limit: int | None) -> CellRow:
        admitted = _admitted(demand, limit)
        idle, offered = demand == 0, demand if self._trace.demand_visible else None
        counted = demand_of(idle=idle, admitted=admitted, offered=offered, throttled=demand > admitted)
        return CellRow(number, admitted, counted, limit, idle)

    def _deliver(self, epoch: int) -> None:
        """Reports of an epoch reach everyone, but for lost ones and across a partition; one's own always arrives."""
        if epoch < 0:
            return
        lost = self._trace.rounds[epoch].lost
        for sender in self._running:
            row = self._made[sender].get(epoch)
            if row is None:
                continue
            after: dict[tuple[bool, int | None], Heard] = {}
            for receiver in self._running:
                if receiver == sender or ((sender, receiver) not in lost and self._connected(sender, receiver)):
                    held = self._held[receiver]
                    heard = _hear(held.get(sender), row)
                    # one object for all that hold the same, so that equal views are found by identity
                    held[sender] = after.setdefault((heard.used, heard.first_idle_epoch), heard)

    def _connected(self, sender: int, receiver: int) -> bool:
        return self._sides is None or any(sender in side and receiver in side for side in self._sides)


def _hear(before: Heard | None, row: CellRow) -> Heard:
    used = before is not None and before.used
    if not row.idle:
        return Heard(row, used=True, first_idle_epoch=None)
    since = before.first_idle_epoch if before is not None else None
    return Heard(row, used, row.epoch if since is None else since)


def _admitted(demand: int, limit: int | None) -> int:
    return demand if limit is None else min(demand, limit)
