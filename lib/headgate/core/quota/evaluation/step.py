"""From the view of a cell to the limit of a broker: one evaluation of an epoch (resource-groups 9).

`assess` works out what all brokers that hold the same view share, `decide` one broker's limit from it; `step` is both.
All are pure functions of parameters, quota, present limit and view, so every broker and every replay agree.
"""

from collections.abc import Mapping

from headgate.core.numbers import at_least
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.allocation.released_shares import pulsar_share
from headgate.core.quota.evaluation.assessment import Assessment, Membership, Shares, assess
from headgate.core.quota.evaluation.cell_view import CellView
from headgate.core.quota.evaluation.step_parameters import CellLimit, Mode, Reason, StepParameters
from headgate.core.quota.rates import capped
from headgate.errors import InvalidArgument


def step(
    parameters: StepParameters, quota: int | None, broker_id: int, present: int | None, view: CellView
) -> CellLimit:
    """The limit of `broker_id` from here on, and why.

    Down at once, up as far as the view allows: while every broker evaluates the same complete view the limits of M sum
    to at most the quota and the floors. None and 0 are never exchanged.

    Arguments, rates a second:
        parameters: of the job.
        quota: of the cell, >= 0; larger than RATE_MAX counts as that; None is not limited.
        broker_id: a member of the view, unless the quota is None or 0.
        present: its limit now; None is not limited, as right after joining.
        view: as of the epoch chosen by 7.3.

    Raises InvalidArgument for a broker that is no member. Source: resource-groups 9.2.
    """
    return decide(parameters, assess(parameters, quota, view), broker_id, present)


def decide(parameters: StepParameters, assessment: Assessment, broker_id: int, present: int | None) -> CellLimit:
    """The limit of one broker under an assessment; arguments as for `step`. Source: resource-groups 9.2."""
    membership, shares = assessment.membership, assessment.shares
    if shares is None:
        return _unshared(membership, assessment.quota)
    if broker_id not in membership.weights:
        raise InvalidArgument(f"broker_id: got {broker_id}, allowed are the view's members; evaluate members alone")
    row = shares.row_of.get(broker_id)
    floor = _floor(parameters, shares.quota, membership, broker_id)
    if parameters.profile is Profile.PULSAR and not membership.all_silent:
        return _released(assessment, shares, broker_id)
    if row is None or broker_id in membership.awaited:
        return _entry(membership, shares, broker_id, floor)
    safe, target = shares.safe[row], shares.targets[row]
    if parameters.profile is Profile.MAX_MIN:
        limit, reason = _bounded(parameters, assessment, shares, row, present)
        if limit < floor:
            limit, reason = floor, Reason.FLOOR
    elif membership.all_silent:
        limit, target, reason = safe, safe, Reason.FENCED
    else:
        limit, reason = max(target, floor), Reason.PROFILE
    return membership.outcome(reason, limit, target, safe, shares.demands[row])


def first_limit(
    parameters: StepParameters,
    quota: int | None,
    broker_id: int,
    weights: Mapping[int, int],
    *,
    is_shared_out: bool = False,
) -> CellLimit:
    """The limit before any view: the cluster share, which sums to the quota; profile pulsar: the quota, as released.

    weights: of the members C, by broker, `broker_id` among them. is_shared_out: the broker has just joined, and others
    have the quota among them already: the floor. Source: resource-groups 9.2.
    """
    nobody_heard = Membership(weights, sum(weights.values()), frozenset(), frozenset(), 0)
    if not quota:
        return _unshared(nobody_heard, quota)
    quota = capped(quota)
    share = nobody_heard.cluster_shares(quota)[broker_id]
    if parameters.profile is Profile.PULSAR:
        return nobody_heard.outcome(Reason.PROFILE, quota, quota, share)
    if is_shared_out:
        return nobody_heard.outcome(Reason.ENTRY, _floor(parameters, quota, nobody_heard, broker_id), 0, 0)
    return nobody_heard.outcome(Reason.CLUSTER_SHARE, share, share, share)


def limit_without_transport(quota: int | None, broker_count: int) -> CellLimit:
    """Where a broker hears of no other it takes an equal part, rounded down, for as long as it lasts: never the quota.

    broker_count: N of resourceGroupBrokerCount, >= 1. Source: resource-groups 10.
    """
    alone = Membership({}, 0, frozenset(), frozenset(), 0)
    at_least(1, broker_count, "broker_count")
    if not quota:
        return _unshared(alone, quota)
    share = capped(quota) // broker_count
    return alone.outcome(Reason.NO_TRANSPORT, share, share, share)


def _floor(parameters: StepParameters, quota: int, membership: Membership, broker_id: int) -> int:
    """A part of the broker's part by weight over C. Source: resource-groups 9.1."""
    return quota * membership.weights[broker_id] // membership.total_weight * parameters.floor_percent // 100


def _unshared(membership: Membership, quota: int | None) -> CellLimit:
    """Quota None or 0: nothing is shared out, and neither ever turns into the other."""
    reason = Reason.UNSET if quota is None else Reason.BLOCKED
    return membership.outcome(reason, quota, quota, quota)


def _released(assessment: Assessment, shares: Shares, broker_id: int) -> CellLimit:
    """Profile pulsar: a member without a row adds 0, and nothing else of 9.2 applies."""
    usage, row = assessment.usage, shares.row_of.get(broker_id)
    limit = pulsar_share(shares.quota, usage.get(broker_id, 0), sum(usage.values()))
    safe, demand = (0, 0) if row is None else (shares.safe[row], shares.demands[row])
    return assessment.membership.outcome(Reason.PROFILE, limit, limit, safe, demand)


def _entry(membership: Membership, shares: Shares, broker_id: int, floor: int) -> CellLimit:
    """A broker outside M: room for its first messages where the quota is shared out among M; else its cluster share.

    That share is kept free for it once it is awaited.
    """
    if broker_id not in membership.awaited and len(shares.ids) > len(membership.awaited):
        return membership.outcome(Reason.ENTRY, floor, 0, 0)
    share = membership.cluster_shares(shares.quota)[broker_id]
    return membership.outcome(Reason.CLUSTER_SHARE, share, share, share)


def _bounded(
    parameters: StepParameters, assessment: Assessment, shares: Shares, row: int, present: int | None
) -> tuple[int, Reason]:
    """Profile max_min for an active broker: the target or the gate, then dead band and fence in this order."""
    missing, safe, target = assessment.membership.missing, shares.safe[row], shares.targets[row]
    complete = not assessment.raises_gated and missing <= {shares.ids[row]}
    if present is None or target <= present or (parameters.mode is Mode.FAST and complete):
        limit, reason = target, Reason.TARGET
    else:
        limit, reason = _gated(parameters, missing, shares, row), Reason.GATED
    if present is not None and limit - present > 0 and (limit - present) * 100 < parameters.dead_band_percent * safe:
        limit, reason = present, Reason.DEAD_BAND
    if assessment.membership.fenced and safe < limit:
        limit, reason = safe, Reason.FENCED
    return limit, reason


def _gated(parameters: StepParameters, missing: frozenset[int], shares: Shares, row: int) -> int:
    """The limit reported in the view and a part of the capacity that the view shows as free.

    It counts from the reported limit, never the present one, or freed capacity would be spent twice where the view is
    two or more epochs old. Members that are missing are taken to claim at least a part of what this one claims.
    """
    claims = [max(0, target - limit) for target, limit in zip(shares.targets, shares.reported, strict=True)]
    own = claims[row]
    assumed = own * parameters.missing_claim_percent // 100
    claimed = sum(
        max(claim, assumed) if id_ in missing and id_ != shares.ids[row] else claim
        for id_, claim in zip(shares.ids, claims, strict=True)
    )
    free = max(0, shares.quota * (100 + parameters.overshoot_percent) // 100 - sum(shares.reported))
    return shares.reported[row] + (own if claimed <= free else own * free // claimed)
