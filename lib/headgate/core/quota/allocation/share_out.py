"""Whole units shared out by weight, and the weighted max-min fair split of a quota (resource-groups 8.1, 8.2).

Arguments are checked by the caller (`headgate.core.quota.allocation.allocation`): amounts and weights >= 0, ids
distinct, lists of equal lengths. Arithmetic is exact at any size.
"""

from collections.abc import Mapping, Sequence


def share_out(amount: int, weights: Sequence[int], ids: Sequence[int]) -> list[int]:
    """The shares sum to `amount` exactly, and each is its part by weight rounded down or up.

    The units that rounding down leaves over go one each to the largest remainders, ties to the smallest id, so the
    order of rows does not matter. Weight 0 gets 0; at least one weight is above 0 where there is anything to share.
    No rows: empty. resource-groups 8.1
    """
    if amount == 0:
        return [0] * len(weights)
    total = sum(weights)
    shares = [amount * weight // total for weight in weights]
    left_over = amount - sum(shares) if shares else 0
    remainders = [amount * weight % total for weight in weights]
    first = sorted(range(len(ids)), key=lambda row: (-remainders[row], ids[row]))
    for row in first[:left_over]:
        shares[row] += 1
    return shares


def shares_by_id(amount: int, weights: Mapping[int, int]) -> dict[int, int]:
    """`share_out` by id. weights: by id."""
    ids = sorted(weights)
    return dict(zip(ids, share_out(amount, [weights[id_] for id_ in ids], ids), strict=True))


def max_min(
    quota: int, demands: Sequence[int | None], weights: Sequence[int], ids: Sequence[int], *, headroom: bool = True
) -> list[int]:
    """Nobody is granted more than it demands while somebody is unmet; the targets sum to `quota` exactly.

    Unmet rows end up level by weight: t_i = min(D_i, level * w_i) to the unit.

    Arguments: `quota` a second, 0 to RATE_MAX; `demands` a second, None unbounded; `weights` 1 to 1000; `headroom`:
    what nobody demands is shared out by weight as well; without it the targets are the demands where all fit.
    resource-groups 8.2
    """
    wanted = [quota if demand is None else min(demand, quota) for demand in demands]
    spare = quota - sum(wanted)
    if spare >= 0:
        extra = share_out(spare, weights, ids) if headroom else [0] * len(wanted)
        return [demand + more for demand, more in zip(wanted, extra, strict=True)]
    return _filled(quota, wanted, weights, ids)


def _filled(quota: int, wanted: Sequence[int], weights: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Targets where the demands exceed the quota."""
    targets = list(wanted)
    unmet, rest, _ = level_by_weight(quota, wanted, weights)
    shares = share_out(rest, [weights[row] for row in unmet], [ids[row] for row in unmet])
    for row, share in zip(unmet, shares, strict=True):
        targets[row] = share
    return targets


def level_by_weight(quota: int, wanted: Sequence[int], weights: Sequence[int]) -> tuple[list[int], int, int]:
    """Where the demands exceed the quota: the rows that are not met, what is left for them, and their weight.

    That by their weight is the level: who asks for no more than its part is met, all such at once. resource-groups 8.2
    """
    unmet = list(range(len(wanted)))
    rest, weight_of_unmet = quota, sum(weights)
    while True:
        met = [row for row in unmet if wanted[row] <= rest * weights[row] // weight_of_unmet]
        if not met:
            return unmet, rest, weight_of_unmet
        rest -= sum(wanted[row] for row in met)
        weight_of_unmet -= sum(weights[row] for row in met)
        gone = set(met)
        unmet = [row for row in unmet if row not in gone]
