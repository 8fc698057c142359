"""What brokers report of groups: the same in the benchmark of a row of rg_usage, and in the test of its size."""

import random

from headgate.core.quota.usage.usage import Usage


def usage(chance: random.Random) -> Usage:
    """1 to 1,000 messages a second of 100 to 2,000 bytes; one broker in five is held back by its share."""
    admitted = int(10 ** chance.uniform(0, 3))
    size = int(10 ** chance.uniform(2, 3.3))
    if chance.random() < 0.2:
        offered = admitted + chance.randrange(admitted)
        return Usage((admitted, admitted * size), (offered, offered * size), (admitted, None), (True, False))
    limit = admitted + chance.randrange(2 * admitted)
    return Usage((admitted, admitted * size), (admitted, admitted * size), (limit, None), (False, False))
