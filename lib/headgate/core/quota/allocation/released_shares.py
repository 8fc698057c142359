"""Shares by usage alone: the released arithmetic and the three texts of PIP-82 (resource-groups 8.3, 8.4).

They exist for comparison and migration: each rescales or bends what was used, so a broker that was idle while others
used the group starts low. Arguments are checked by the caller (`headgate.core.quota.allocation.allocation`).
"""

from collections.abc import Sequence

from headgate.core.numbers import MAX
from headgate.core.quota.allocation.binary32 import from_integer, rounded
from headgate.core.quota.allocation.share_out import share_out


def pulsar_share(quota: int, own: int, total: int) -> int:
    """The released quota of one broker, to the unit: at least 1 unless nobody used anything, then the whole quota.

    Every operation is rounded to single precision by itself; only quota - total is exact. Nothing caps the result at
    the quota; it saturates at 2^63 - 1.

    Arguments, a second: `quota` >= 0, `own` admitted >= 0, `total` admitted of all >= 0. resource-groups 8.3
    """
    if total == 0:
        return quota
    fraction = rounded(from_integer(own) / from_integer(total))
    residual = rounded(from_integer(quota - total) * fraction)
    return min(int(max(rounded(from_integer(own) + residual), 1.0)), MAX)


def residual_equal(quota: int, usage: Sequence[int]) -> list[int]:
    """Each gets its usage and the whole unused rest; the parts of the quota by usage where that is exceeded.

    The limits sum to more than the quota while n > 1 brokers leave a rest. resource-groups 8.4
    """
    total = sum(usage)
    if total <= quota:
        return [used + quota - total for used in usage]
    return [used * quota // total for used in usage]


def residual_proportional(quota: int, usage: Sequence[int], weights: Sequence[int], ids: Sequence[int]) -> list[int]:
    """The quota by usage, by weight where nobody used anything; the limits sum to the quota. resource-groups 8.4"""
    return share_out(quota, usage if any(usage) else weights, ids)


def steal(quota: int, usage: Sequence[int], ids: Sequence[int]) -> list[int]:
    """The lower half moves halfway up to its mirror in the upper half; then the rest of the quota is spread evenly.

    Where usage exceeds the quota those above the mean pay by their excess, never below 0. Halfway counts from usage.
    resource-groups 8.4
    """
    count, total = len(usage), sum(usage)
    ranked = sorted(range(count), key=lambda row: (usage[row], ids[row]))
    limits = list(usage)
    for rank in range(count // 2):
        row, mirror = ranked[rank], ranked[count - 1 - rank]
        limits[row] += (usage[mirror] - usage[row]) // 2
    rest, even = quota - total, [1] * count
    if rest >= 0:
        return [limit + share for limit, share in zip(limits, share_out(rest, even, ids), strict=True)]
    excesses = [max(0, count * used - total) for used in usage]
    payments = share_out(-rest, excesses if any(excesses) else even, ids)
    return [max(0, limit - payment) for limit, payment in zip(limits, payments, strict=True)]
