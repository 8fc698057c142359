"""Array form of the rounds of a trace: the views of all brokers in a round are worked out together.

The readable form is `play` of `headgate.conformance.oracles.quota_rounds.rounds`; a test holds both equal. This one
plays what scenarios consist of: every broker is a member from the first round, none comes back, demand is visible,
rates stay below RATE_LIMIT. Profile max_min is `step_many` of the kernels; the others, which only traces
ever run, are worked out here.

An array over brokers has one entry a broker; a matrix has a row for each receiver and a column for each sender.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headgate.conformance.oracles.quota_rounds.trace import (
    GONE,
    Crash,
    Event,
    Heal,
    MemberLost,
    Partition,
    PlayedRound,
    QuotaSet,
    Round,
    RoundParameters,
    Trace,
)
from headgate.core.kernels.quota_allocation import NONE, Cells, Cluster, Reports, step_many
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.allocation.share_out import share_out

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

RATE_LIMIT = 2**30
"""Products of two rates fit 64 bits below it."""
NEVER = -1


@dataclass(frozen=True, slots=True)
class View:
    """What the running brokers hold as of an epoch: a row a receiver, a column a member.

    receivers, members: broker ids, ascending. own: the column of each receiver. heard: the newest epoch heard of each
    member, NEVER without any. active: it is in M. admitted, demand, limit, idle: in its row at the epoch.
    """

    as_of: int
    receivers: Numbers
    members: Numbers
    own: Numbers
    heard: Numbers
    active: Flags
    admitted: Numbers
    demand: Numbers
    limit: Numbers
    idle: Flags

    def of_own(self, matrix: NDArray) -> NDArray:
        """The entry of each receiver about itself."""
        return matrix[np.arange(self.receivers.size), self.own]


@dataclass(frozen=True, slots=True)
class Played:
    """The rounds, and by how much targets of any view missed the quota at most: 0 where they always sum to it."""

    rounds: list[PlayedRound]
    target_gap: int


def play(trace: Trace, parameters: RoundParameters) -> Played:
    """The limits and the traffic of every round. Raises ValueError for a trace that is beyond this form.

    Source: resource-groups 18, `rounds`.
    """
    if trace.initial is not None or trace.members is not None or not trace.demand_visible:
        raise ValueError("trace: allowed are all brokers as members, first limits by rule, and visible demand")
    rounds = _Rounds(trace, parameters)
    played = [rounds.play(number, round_) for number, round_ in enumerate(trace.rounds)]
    return Played(played, rounds.target_gap)


class _Rounds:
    """The state between two rounds."""

    def __init__(self, trace: Trace, parameters: RoundParameters) -> None:
        count = trace.brokers
        self._parameters = parameters
        self._quota = trace.quota
        self._weights = np.array([trace.weight_of(broker) for broker in range(count)], np.int64)
        self._is_member, self._runs = np.ones(count, np.bool_), np.ones(count, np.bool_)
        made = (len(trace.rounds), count)
        self._admitted, self._demand, self._limit = (np.zeros(made, np.int64) for _ in range(3))
        self._heard = np.full((count, count), NEVER)
        self._used = np.zeros((count, count), np.bool_)
        self._idle_since = np.full((count, count), NEVER)
        self._limits = np.zeros(count, np.int64)
        self._apart: Flags | None = None
        self._lost = [round_.lost for round_ in trace.rounds]
        self.target_gap = 0

    def play(self, number: int, round_: Round) -> PlayedRound:
        as_of = number - self._parameters.staleness
        for event in round_.events:
            self._apply(event)
        if max((*round_.demand, self._quota or 0), default=0) > RATE_LIMIT:
            raise ValueError(f"round {number}: allowed are rates up to {RATE_LIMIT}")
        if number == 0:
            if self._is_member.any():
                self._limits[:] = self._first_limits()
        elif as_of >= 0 and self._runs.any():
            self._limits[self._runs] = self._new_limits(as_of)
        demand = np.array(round_.demand, np.int64)
        passed = np.where(self._limits == NONE, demand, np.minimum(demand, self._limits))
        admitted = np.where(self._runs, passed, 0)
        self._admitted[number], self._demand[number], self._limit[number] = admitted, demand, self._limits
        if as_of + 1 >= 0:
            self._deliver(as_of + 1)
        limits = [
            (None if limit == NONE else limit) if runs else GONE
            for limit, runs in zip(self._limits.tolist(), self._runs.tolist(), strict=True)
        ]
        return PlayedRound(self._quota, tuple(limits), tuple(admitted.tolist()), tuple(round_.demand))

    def _apply(self, event: Event) -> None:
        match event:
            case QuotaSet(quota):
                self._quota = quota
            case Crash(broker):
                self._runs[broker] = False
            case MemberLost(broker):
                self._runs[broker] = self._is_member[broker] = False
            case Partition(sides):
                self._apart = ~np.any([np.outer(*[_flags(self._runs.size, side)] * 2) for side in sides], axis=0)
            case Heal():
                self._apart = None
            case _:
                raise ValueError(f"event: got {event}, allowed are those of the scenarios")

    def _first_limits(self) -> Numbers | int:
        if not self._quota:
            return NONE if self._quota is None else 0
        if self._parameters.step.profile is Profile.PULSAR:
            return self._quota
        return np.array(self._cluster_shares(), np.int64)

    def _cluster_shares(self) -> list[int]:
        """By weight over C; 0 for who is no member."""
        weights = np.where(self._is_member, self._weights, 0)
        return share_out(self._quota or 0, weights.tolist(), range(weights.size))

    def _deliver(self, epoch: int) -> None:
        """Reports of an epoch reach everyone, but for lost ones and across a partition; one's own always arrives."""
        arrives = ~_lost_matrix(self._lost[epoch], self._runs.size)
        if self._apart is not None:
            arrives = arrives & ~self._apart
        arrives = (arrives | np.eye(self._runs.size, dtype=np.bool_)) & np.outer(self._runs, self._runs)
        idle = self._demand[epoch] == 0
        self._heard[arrives] = epoch
        self._used |= arrives & ~idle
        self._idle_since[arrives & ~idle] = NEVER
        self._idle_since[arrives & idle & (self._idle_since == NEVER)] = epoch

    def _view(self, as_of: int) -> View:
        receivers, members = np.flatnonzero(self._runs), np.flatnonzero(self._is_member)
        held = np.ix_(receivers, members)
        heard, since = self._heard[held], self._idle_since[held]
        lingers = (since == NEVER) | (heard - since < self._parameters.linger_rounds)
        row = np.maximum(heard, 0), members
        return View(
            as_of,
            receivers,
            members,
            np.searchsorted(members, receivers),
            heard,
            (heard != NEVER) & self._used[held] & lingers,
            np.where(heard == NEVER, 0, self._admitted[row]),
            self._demand[row],
            self._limit[row],
            self._demand[row] == 0,
        )

    def _new_limits(self, as_of: int) -> Numbers:
        """Of the running brokers, in their order."""
        view = self._view(as_of)
        if not self._quota:
            return np.full(view.receivers.size, NONE if self._quota is None else 0)
        step = self._parameters.step
        silent = as_of - view.heard >= step.silent_rounds
        all_silent = silent.all(axis=1)
        weights = self._weights[view.receivers]
        floors = self._quota * weights // self._weights[view.members].sum() * step.floor_percent // 100
        entry = np.where(view.active.any(axis=1), floors, np.array(self._cluster_shares())[view.receivers])
        if step.profile is Profile.MAX_MIN:
            limits = self._bounded(view, silent)
        else:
            safe = _own_share(self._quota, np.where(view.active, self._weights[view.members], 0), view)
            by_usage = _PROFILES[step.profile](self._quota, view, self._weights[view.members])
            limits = np.where(all_silent, safe, np.maximum(by_usage, floors))
        limits = np.where(view.of_own(view.active), limits, entry)
        if step.profile is Profile.PULSAR:
            return np.where(all_silent, limits, _pulsar(self._quota, view))
        return limits

    def _bounded(self, view: View, silent: Flags) -> Numbers:
        """Profile max_min of the active brokers; a view is a cell. Entries of others are 0.

        A cluster has one number of missing and of silent members. Views that differ there are evaluated together as
        long as they agree in what follows from it: whether all were heard, and whether the silent are the majority.
        """
        missing = view.heard < view.as_of
        fenced = 2 * (~silent).sum(axis=1) < view.members.size
        limits = np.zeros(view.receivers.size, np.int64)
        kinds = 2 * missing.any(axis=1) + fenced
        for kind in np.unique(kinds):
            chosen = np.flatnonzero(kinds == kind)
            cluster = Cluster(
                view.members.size,
                int(self._weights[view.members].sum()),
                silent=view.members.size if kind % 2 else 0,
                missing=int(kind >= 2),
            )
            limits[chosen] = self._stepped(view, chosen, silent, missing, cluster)
        return limits

    def _stepped(self, view: View, chosen: Numbers, silent: Flags, missing: Flags, cluster: Cluster) -> Numbers:
        awaited = view.heard[chosen] == NEVER
        counted = view.active[chosen] | awaited
        shares = np.array(self._cluster_shares())[view.members]
        offsets = np.concatenate([[0], np.cumsum(counted.sum(axis=1))])
        columns = np.broadcast_to(np.arange(view.members.size), counted.shape)[counted]
        brokers = view.members[columns]
        cells = Cells(
            np.full(chosen.size, self._quota),
            offsets,
            brokers,
            self._weights[brokers],
            np.where(awaited, shares, view.demand[chosen])[counted],
        )
        reports = Reports(
            np.where(awaited, shares, view.limit[chosen])[counted],
            (view.idle & (view.heard < view.as_of))[chosen][counted] & ~awaited[counted],
            silent[chosen][counted] & ~awaited[counted],
            missing[chosen][counted],
            self._limits[brokers],
        )
        steps = step_many(self._parameters.step, cells, reports, cluster)
        filled = np.flatnonzero(np.diff(offsets))
        if filled.size:
            sums = np.add.reduceat(steps.targets, offsets[filled])
            self.target_gap = max(self.target_gap, int(np.abs(sums - self._quota).max()))
        rows = np.arange(chosen.size)
        own = offsets[:-1] + counted.cumsum(axis=1)[rows, view.own[chosen]] - 1
        is_active = view.active[chosen][rows, view.own[chosen]]
        return np.where(is_active, np.append(steps.limits, 0)[np.where(is_active, own, -1)], 0)


@lru_cache(maxsize=1024)
def _lost_matrix(lost: frozenset[tuple[int, int]], brokers: int) -> Flags:
    """Traces of one size share what they lose; a set of pairs is kept as a matrix, by receiver and sender."""
    matrix = np.zeros((brokers, brokers), np.bool_)
    if lost:
        senders, receivers = np.array(sorted(lost)).T
        matrix[receivers, senders] = True
    return matrix


def _flags(count: int, numbers: frozenset[int]) -> Flags:
    flags = np.zeros(count, np.bool_)
    flags[list(numbers)] = True
    return flags


def _own_share(amount: Numbers | int, weights: Numbers, view: View) -> Numbers:
    """Each receiver's own part of `amount`, one of its view, by `weights`: 0 for who takes no part (8.1)."""
    amounts = np.broadcast_to(amount, view.receivers.shape)[:, None]
    totals = np.maximum(weights.sum(axis=1), 1)[:, None]
    shares, remainders = np.divmod(amounts * weights, totals)
    left_over = amounts[:, 0] - shares.sum(axis=1)
    own = view.of_own(remainders)[:, None]
    earlier = np.arange(view.members.size) < view.own[:, None]
    rank = ((remainders > own) | ((remainders == own) & earlier)).sum(axis=1)
    return np.where(weights.any(axis=1), view.of_own(shares) + (rank < left_over), 0)


def _usage(view: View) -> tuple[Numbers, Numbers, Numbers]:
    """What M admitted, by receiver and member, each receiver's own part of it, and the sums."""
    usage = np.where(view.active, view.admitted, 0)
    return usage, view.of_own(usage), usage.sum(axis=1)


def _pulsar(quota: int, view: View) -> Numbers:
    """8.3 over the members that have a row, in single precision."""
    own, total = view.of_own(view.admitted), view.admitted.sum(axis=1)
    single = np.float32
    with np.errstate(invalid="ignore"):
        fraction = own.astype(single) / total.astype(single)
        limits = np.maximum(own.astype(single) + (quota - total).astype(single) * fraction, single(1))
    return np.where(total == 0, quota, np.where(total == 0, 0, limits).astype(np.int64))


def _residual_equal(quota: int, view: View, _weights: Numbers) -> Numbers:
    _, own, total = _usage(view)
    return np.where(total <= quota, own + quota - total, own * quota // np.maximum(total, 1))


def _residual_proportional(quota: int, view: View, weights: Numbers) -> Numbers:
    usage, _, total = _usage(view)
    return _own_share(quota, np.where((total > 0)[:, None], usage, np.where(view.active, weights, 0)), view)


def _steal(quota: int, view: View, _weights: Numbers) -> Numbers:
    usage, own, total = _usage(view)
    count = view.active.sum(axis=1)
    ranked = np.sort(np.where(view.active, usage, np.iinfo(np.int64).max), axis=1)
    before = (usage < own[:, None]) | ((usage == own[:, None]) & (np.arange(view.members.size) < view.own[:, None]))
    rank = (before & view.active).sum(axis=1)
    mirror = ranked[np.arange(count.size), np.maximum(count - 1 - rank, 0)]
    lifted = np.where(rank < count // 2, own + (mirror - own) // 2, own)
    even = view.active.astype(np.int64)
    excess = np.where(view.active, np.maximum(count[:, None] * usage - total[:, None], 0), 0)
    spread = _own_share(np.maximum(quota - total, 0), even, view)
    paid = _own_share(np.maximum(total - quota, 0), np.where(excess.any(axis=1)[:, None], excess, even), view)
    return np.maximum(lifted + spread - paid, 0)


_PROFILES = {
    Profile.PULSAR: lambda quota, view, _weights: _pulsar(quota, view),
    Profile.PIP82_RESIDUAL_EQUAL: _residual_equal,
    Profile.PIP82_RESIDUAL_PROPORTIONAL: _residual_proportional,
    Profile.PIP82_STEAL: _steal,
}
