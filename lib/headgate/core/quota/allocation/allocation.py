"""A cluster's quota allocated to brokers: profiles, divisions, coupled dimensions (resource-groups 8).

Every function here is pure and checks its input as a whole first (section 16); rates above RATE_MAX count as RATE_MAX.
Equal inputs give equal results on every broker, in any order of rows.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from headgate.core.quota.allocation.allocation_input import (
    check_ids,
    check_lengths,
    check_quota,
    check_values,
    check_weights,
)
from headgate.core.quota.allocation.released_shares import pulsar_share, residual_equal, residual_proportional, steal
from headgate.core.quota.allocation.share_out import max_min, share_out
from headgate.core.quota.rates import capped, capped_or_none
from headgate.errors import InvalidArgument

Limits = list[int | None]
Demands = Sequence[int | None]
Name = TypeVar("Name", bound=StrEnum)


class Profile(StrEnum):
    """How a quota becomes targets: by demand, or by usage alone (resource-groups 8.2 to 8.4)."""

    MAX_MIN = "max_min"
    PULSAR = "pulsar"
    PIP82_RESIDUAL_EQUAL = "pip82_residual_equal"
    PIP82_RESIDUAL_PROPORTIONAL = "pip82_residual_proportional"
    PIP82_STEAL = "pip82_steal"


class Division(StrEnum):
    """How a limit is divided below the broker (resource-groups 8.6)."""

    MAX_MIN = "max_min"
    EVEN = "even"
    PROPORTIONAL = "proportional"


def allocate(
    profile: str,
    quota: int | None,
    values: Demands,
    weights: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> Limits:
    """Each broker's part of `quota`, in the order of rows. max_min: the parts sum to the quota to the unit.

    Quota None: None for all. Quota 0 is a quota like any other here; blocking in every profile is `step`'s rule.

    Arguments:
        profile: a `Profile`, by name.
        quota: a second, >= 0; None is not limited.
        values: demand for max_min (None is unbounded), admitted usage for all others; a second, >= 0.
        weights: 1 to 1000, all 1 by default.
        ids: integers, each once, 0 to n - 1 by default.

    Raises BadAllocation for the first mistake in the order of section 16, InvalidArgument for an unknown profile.
    Source: resource-groups 8.2 to 8.4.

    """
    chosen = named(Profile, profile)
    return _checked(quota, values, weights, ids, unbounded_allowed=chosen is Profile.MAX_MIN, rule=_PROFILES[chosen])


def divide(
    division: str,
    limit: int | None,
    values: Demands,
    weights: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> Limits:
    """The parts of `limit` sum to it; None stays None, 0 stays 0.

    As `allocate`, with a `Division` in place of a profile. `values` is demand for max_min, usage otherwise.
    resource-groups 8.6
    """
    chosen = named(Division, division)
    return _checked(limit, values, weights, ids, unbounded_allowed=chosen is Division.MAX_MIN, rule=_DIVISIONS[chosen])


def pulsar_limit(quota: int | None, own: int, usage: Sequence[int]) -> int | None:
    """The released quota of a broker that admitted `own`, `usage` being the whole map, its own entry included.

    Raises BadAllocation; `own` is checked first. resource-groups 8.3
    """
    check_values([own, *usage], unbounded_allowed=False)
    check_quota(quota)
    if quota is None:
        return None
    return pulsar_share(capped(quota), capped(own), sum(map(capped, usage)))


def allocate_coupled(
    quotas: tuple[int | None, int | None],
    demands: tuple[Demands, Demands],
    weights: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> tuple[Limits, Limits]:
    """max_min in both dimensions; a broker bound in one hands back what it cannot use of the other.

    Arguments are pairs (messages, bytes), otherwise as for `allocate`. With either quota None the cells stay
    independent. Values of both dimensions are checked first, then both quotas. resource-groups 8.5
    """
    check_values([*demands[0], *demands[1]], unbounded_allowed=True)
    for quota in quotas:
        check_quota(quota)
    weights, ids = _rows(len(demands[0]), weights, ids)
    check_lengths(len(demands[0]), demands[1])
    coupled = coupled_demands(quotas, demands, weights, ids)
    messages, of_bytes = (
        allocate(Profile.MAX_MIN, quota, wanted, weights, ids) for quota, wanted in zip(quotas, coupled, strict=True)
    )
    return messages, of_bytes


def coupled_demands(
    quotas: tuple[int | None, int | None], demands: tuple[Demands, Demands], weights: Sequence[int], ids: Sequence[int]
) -> tuple[Demands, Demands]:
    """D' of 8.5: each dimension's demand, cut to what the broker can use of it within its part of the other.

    Arguments as for `allocate_coupled`, checked already. resource-groups 8.5
    """
    if quotas[0] is None or quotas[1] is None:
        return demands
    quota_m, quota_b = capped(quotas[0]), capped(quotas[1])
    messages = [quota_m if demand is None else capped(demand) for demand in demands[0]]
    of_bytes = [quota_b if demand is None else capped(demand) for demand in demands[1]]
    granted_m = max_min(quota_m, messages, weights, ids, headroom=False)
    granted_b = max_min(quota_b, of_bytes, weights, ids, headroom=False)
    return _cut(messages, of_bytes, granted_b), _cut(of_bytes, messages, granted_m)


def named(kind: type[Name], name: str) -> Name:
    """The member of `kind` with this name. Raises InvalidArgument, which lists the known ones."""
    try:
        return kind(name)
    except ValueError:
        raise InvalidArgument(f"{kind.__name__.lower()}: got {name!r}, allowed are {', '.join(kind)}") from None


def _cut(demands: Sequence[int], others: Sequence[int], granted: Sequence[int]) -> list[int]:
    """Demands in one dimension, cut where the other grants less than it demands; unchanged where either is 0."""
    return [
        min(demand, grant * demand // other) if demand and other else demand
        for demand, other, grant in zip(demands, others, granted, strict=True)
    ]


_Rule = Callable[[int, Sequence[int | None], Sequence[int], Sequence[int]], list[int]]


def _checked(
    quota: int | None,
    values: Demands,
    weights: Sequence[int] | None,
    ids: Sequence[int] | None,
    *,
    unbounded_allowed: bool,
    rule: _Rule,
) -> Limits:
    check_values(values, unbounded_allowed=unbounded_allowed)
    check_quota(quota)
    weights, ids = _rows(len(values), weights, ids)
    if quota is None:
        return [None] * len(values)
    return list(rule(capped(quota), [capped_or_none(value) for value in values], weights, ids))


def _rows(count: int, weights: Sequence[int] | None, ids: Sequence[int] | None) -> tuple[Sequence[int], Sequence[int]]:
    """Weights and ids, checked; the defaults where they are not given."""
    weights = [1] * count if weights is None else weights
    ids = range(count) if ids is None else ids
    check_weights(weights)
    check_ids(ids)
    check_lengths(count, weights, ids)
    return weights, ids


def _usage(values: Sequence[int | None]) -> list[int]:
    return [value or 0 for value in values]


def _pulsar(quota: int, values: Sequence[int | None], _weights: Sequence[int], _ids: Sequence[int]) -> list[int]:
    usage = _usage(values)
    total = sum(usage)
    return [pulsar_share(quota, own, total) for own in usage]


_PROFILES: dict[Profile, _Rule] = {
    Profile.MAX_MIN: max_min,
    Profile.PULSAR: _pulsar,
    Profile.PIP82_RESIDUAL_EQUAL: lambda quota, values, _weights, _ids: residual_equal(quota, _usage(values)),
    Profile.PIP82_RESIDUAL_PROPORTIONAL: lambda quota, values, weights, ids: residual_proportional(
        quota, _usage(values), weights, ids
    ),
    Profile.PIP82_STEAL: lambda quota, values, _weights, ids: steal(quota, _usage(values), ids),
}
_DIVISIONS: dict[Division, _Rule] = {
    Division.MAX_MIN: max_min,
    Division.EVEN: lambda limit, values, _weights, ids: share_out(limit, [1] * len(values), ids),
    Division.PROPORTIONAL: lambda limit, values, _weights, ids: share_out(
        limit, _usage(values) if any(values) else [1] * len(values), ids
    ),
}
