"""Rates of resource groups: integers per second, 0 to RATE_MAX; None is not limited, 0 blocks (resource-groups 1).

With 1000 brokers of weight 1000 every product of a rate and a weight, and every sum of rates, fits 64 bits.
"""

RATE_MAX = 2**53 - 1
WEIGHT_MAX = 1000
BROKERS_MAX = 1000


def capped(rate: int) -> int:
    """The rate that counts: a larger one is RATE_MAX. resource-groups 1"""
    return min(RATE_MAX, rate)


def capped_or_none(rate: int | None) -> int | None:
    """As `capped`; None, not limited or unbounded, stays None. resource-groups 1"""
    return rate if rate is None or rate < RATE_MAX else RATE_MAX
