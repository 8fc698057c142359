"""What all brokers that hold the same view of a cell share: safe shares, targets, claims (resource-groups 9).

The result depends on nothing but its arguments. It is worked out once per view, whoever evaluates it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.core.quota.allocation.allocation import Demands, Profile, allocate, coupled_demands
from headgate.core.quota.allocation.share_out import max_min, share_out, shares_by_id
from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason, StepParameters
from headgate.core.quota.rates import capped_or_none
from headgate.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Membership:
    """C: who is a member, with what weight, and of whom nothing was heard for the epoch, for long, or ever.

    awaited: members that had joined by the epoch and never said a word (profile max_min).
    """

    weights: Mapping[int, int]
    total_weight: int
    missing: frozenset[int]
    silent: frozenset[int]
    report_age: int
    awaited: frozenset[int] = frozenset()

    @property
    def fenced(self) -> bool:
        """Whether the silent are the majority, so that nobody exceeds its safe share."""
        return 2 * (len(self.weights) - len(self.silent)) < len(self.weights)

    @property
    def all_silent(self) -> bool:
        """Whether nothing was heard of anyone for long, the evaluating broker included: the table is unreadable."""
        return len(self.silent) == len(self.weights)

    def cluster_shares(self, quota: int) -> dict[int, int]:
        """The quota by weight over C, by broker. Source: resource-groups 9.1."""
        return shares_by_id(quota, self.weights)

    def counts_as_silent(self, broker_id: int) -> bool:
        """Whether it counts with its safe share, for a row that is too old; who is awaited has none."""
        return broker_id in self.silent and broker_id not in self.awaited

    def outcome(
        self, reason: Reason, limit: int | None, target: int | None, safe_share: int | None, demand: int | None = 0
    ) -> CellLimit:
        """A limit with what membership adds to its explanation."""
        counts = len(self.missing), len(self.silent), self.report_age
        return CellLimit(limit, target, safe_share, demand, *counts, reason)


@dataclass(frozen=True, slots=True)
class Shares:
    """M and who is awaited, a row each: what 9.2 works out for all of them before it looks at one.

    quota: a second, 1 to RATE_MAX. demands: D_j, the silent at their safe share. safe: by weight over M. targets: t_j.
    reported: q_j(e). Lists in the order of `ids`, which is ascending; `row_of` is the inverse of `ids`.
    """

    quota: int
    ids: Sequence[int]
    row_of: Mapping[int, int]
    demands: Demands
    safe: Sequence[int]
    targets: Sequence[int]
    reported: Sequence[int]


@dataclass(frozen=True, slots=True)
class Assessment:
    """A view under a quota. `shares` is None where the quota is None or 0: there nothing is shared out.

    usage: admitted a second of the members that have a row, by broker (profile pulsar). raises_gated: as in the view.
    """

    quota: int | None
    membership: Membership
    shares: Shares | None
    usage: Mapping[int, int]
    raises_gated: bool


def assess(parameters: StepParameters, quota: int | None, view: CellView) -> Assessment:
    """What holds for every broker that evaluates `view` under `quota` (a second, >= 0; None not limited).

    Source: resource-groups 9.1, 9.2.
    """
    basis = _basis(parameters, quota, view)
    return _assessment(parameters, basis, basis.demands)


def assess_coupled(
    parameters: StepParameters, quotas: tuple[int | None, int | None], views: tuple[CellView, CellView]
) -> tuple[Assessment, Assessment]:
    """As `assess` for messages and bytes of a group and class together: demands are those of 8.5.

    Both views have the same members, M and epoch. Independent where either quota is None or the profile is not max_min.
    Source: resource-groups 8.5.
    """
    of_messages, of_bytes = (_basis(parameters, quota, view) for quota, view in zip(quotas, views, strict=True))
    demands = of_messages.demands, of_bytes.demands
    if parameters.profile is Profile.MAX_MIN:
        active = of_messages.active
        weights, ids = [member.weight for member in active], [member.broker_id for member in active]
        demands = coupled_demands((of_messages.quota, of_bytes.quota), demands, weights, ids)
    return _assessment(parameters, of_messages, demands[0]), _assessment(parameters, of_bytes, demands[1])


@dataclass(frozen=True, slots=True)
class _Basis:
    """What is known before the profile runs.

    active: M, and who is awaited. `demands` and `safe` are over these, empty where nothing is shared out.
    """

    quota: int | None
    view: CellView
    membership: Membership
    active: Sequence[CellMember]
    demands: Demands
    safe: Sequence[int]


def _basis(parameters: StepParameters, quota: int | None, view: CellView) -> _Basis:
    quota = capped_or_none(quota)
    membership = _membership(parameters, view)
    active = sorted(_counted(view, membership, quota or 0), key=lambda member: member.broker_id)
    safe = share_out(quota or 0, [member.weight for member in active], [member.broker_id for member in active])
    demands = [
        safe_share if membership.counts_as_silent(member.broker_id) else _row(member).demand
        for member, safe_share in zip(active, safe, strict=True)
    ]
    return _Basis(quota, view, membership, active, demands, safe)


def _counted(view: CellView, membership: Membership, quota: int) -> Iterable[CellMember]:
    """M, and who is awaited, as if it had said that it uses what it may enforce at first: its cluster share."""
    cluster_shares = membership.cluster_shares(quota) if membership.awaited else {}
    for member in view.members:
        if member.active:
            yield member
        elif member.broker_id in membership.awaited:
            share = cluster_shares[member.broker_id]
            yield replace(member, row=CellRow(view.as_of, share, share, share, idle=False))


def is_silent(age: int, silent_rounds: int) -> bool:
    """Whether a broker counts as silent: so many epochs after the last one that it has reported on.

    Source: resource-groups 9.2
    """
    return age >= silent_rounds


def _membership(parameters: StepParameters, view: CellView) -> Membership:
    members = view.members
    awaits = parameters.profile is Profile.MAX_MIN
    weights = {member.broker_id: member.weight for member in members}
    ages = [view.as_of - member.covered_epoch for member in members]
    return Membership(
        weights=weights,
        total_weight=sum(weights.values()),
        missing=frozenset(member.broker_id for member in members if member.missing),
        silent=frozenset(
            member.broker_id
            for member, age in zip(members, ages, strict=True)
            if is_silent(age, parameters.silent_rounds)
        ),
        report_age=max([0, *ages]),
        awaited=frozenset(member.broker_id for member in members if awaits and member.is_awaited),
    )


def _assessment(parameters: StepParameters, basis: _Basis, demands: Demands) -> Assessment:
    usage = {member.broker_id: member.row.admitted for member in basis.view.members if member.row is not None}
    shares = _shares(parameters, basis, demands, usage) if basis.quota else None
    return Assessment(basis.quota, basis.membership, shares, usage, basis.view.raises_gated)


def _shares(parameters: StepParameters, basis: _Basis, demands: Demands, usage: Mapping[int, int]) -> Shares:
    quota, ids = basis.quota or 0, [member.broker_id for member in basis.active]
    weights = [member.weight for member in basis.active]
    if parameters.profile is Profile.MAX_MIN:
        targets = max_min(quota, demands, weights, ids)
    elif parameters.profile is Profile.PULSAR:  # looks at C, for one broker at a time
        targets = [0] * len(ids)
    else:
        by_usage = allocate(parameters.profile, quota, [usage[id_] for id_ in ids], weights, ids)
        targets = [target or 0 for target in by_usage]
    return Shares(
        quota=quota,
        ids=ids,
        row_of={id_: row for row, id_ in enumerate(ids)},
        demands=demands,
        safe=basis.safe,
        targets=targets,
        reported=list(_reported(basis, targets)),
    )


def _reported(basis: _Basis, targets: Sequence[int]) -> Iterable[int]:
    """q_j(e): what each active broker may be using as far as the view tells."""
    for member, safe_share, target in zip(basis.active, basis.safe, targets, strict=True):
        row = _row(member)
        if basis.membership.counts_as_silent(member.broker_id):
            yield safe_share
        elif row.limit is None:
            yield target
        elif row.idle and row.epoch < basis.view.as_of:
            yield max(row.limit, target)
        else:
            yield row.limit


def _row(member: CellMember) -> CellRow:
    if member.row is None:
        raise InvalidArgument(f"view: broker {member.broker_id} is in M without a row; M are members with one")
    return member.row
