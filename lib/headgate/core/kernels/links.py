"""Linked lists in records: many queues in one pool, each with a head and a tail."""

import numpy as np
from numpy import int64

from headgate.core.kernels.columns import NO_VALUE, Ints, Records
from headgate.core.kernels.compiled import borrowing, kernel


@borrowing
def chain(owner: Ints, items: Records, queues: Records) -> None:
    """Link the first items of the pool, which are listed in queue order with their owners; all queues start empty."""
    for i in range(queues.size):
        queues[i].head = NO_VALUE
        queues[i].tail = NO_VALUE
    for item in range(owner.size):
        queue = queues[owner[item]]
        items[item].next = NO_VALUE
        if queue.head == NO_VALUE:
            queue.head = item
        else:
            items[queue.tail].next = item
        queue.tail = item


@kernel
def positions(items: Records, queues: Records) -> tuple[Ints, Ints]:
    """The inverse of `chain`: items in the order of owner, then place in its queue, and their owners."""
    count = 0
    for owner in range(queues.size):
        item = queues[owner].head
        while item != NO_VALUE:
            count += 1
            item = items[item].next
    found, owners = np.empty(count, int64), np.empty(count, int64)
    n = 0
    for owner in range(queues.size):
        item = queues[owner].head
        while item != NO_VALUE:
            found[n], owners[n] = item, owner
            n += 1
            item = items[item].next
    return found, owners
