"""Linked lists in arrays: many queues in one pool, each with a head and a tail."""

import numpy as np
from numpy import int64

from headgate.core.kernels import kernel
from headgate.core.kernels.domain_types import NONE, Ints


@kernel
def chain(owner: Ints, owners: int, capacity: int) -> tuple[Ints, Ints, Ints]:
    """Links of items that are listed in queue order with their owners: (next by item, head by owner, tail by owner)."""
    following = np.empty(capacity, int64)
    head, tail = np.full(owners, NONE), np.full(owners, NONE)
    for item in range(owner.size):
        following[item] = NONE
        if head[owner[item]] == NONE:
            head[owner[item]] = item
        else:
            following[tail[owner[item]]] = item
        tail[owner[item]] = item
    return following, head, tail


@kernel
def positions(following: Ints, head: Ints) -> tuple[Ints, Ints]:
    """The inverse of `chain`: items in the order of owner, then place in its queue, and their owners."""
    count = 0
    for owner in range(head.size):
        item = head[owner]
        while item != NONE:
            count += 1
            item = following[item]
    items, owners = np.empty(count, int64), np.empty(count, int64)
    n = 0
    for owner in range(head.size):
        item = head[owner]
        while item != NONE:
            items[n], owners[n] = item, owner
            n += 1
            item = following[item]
    return items, owners
