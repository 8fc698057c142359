"""The records that machines have, in the order of their links: what is kept of them."""

import numpy as np
from numpy import int64

from headgate.core.kernels.columns import Ints
from headgate.core.kernels.compiled import kernel
from headgate.core.kernels.protocol.links import sort_producers
from headgate.core.kernels.protocol.types import CONDITIONS, IDS, NONE, PRODUCERS, QUEUE, Machines

Owned = tuple[Ints, Ints]
"""Places in a pool, and the connection of each."""


@kernel
def order(m: Machines, connections: Ints) -> tuple[Owned, Ints, Owned, Owned]:
    """Producers, open ids, queued receipts and conditions of these connections."""
    producers, of_producer = np.empty(m.used[PRODUCERS], int64), np.empty(m.used[PRODUCERS], int64)
    ids = np.empty(m.used[IDS], int64)
    queued, of_queued = np.empty(m.used[QUEUE], int64), np.empty(m.used[QUEUE], int64)
    conditions, of_condition = np.empty(m.used[CONDITIONS], int64), np.empty(m.used[CONDITIONS], int64)
    n, open_ids, waiting, known = 0, 0, 0, 0
    for c in connections:
        sort_producers(m, c)
        connection = m.connections[c]
        p = connection.first_producer
        while p != NONE:
            producers[n], of_producer[n] = p, c
            n += 1
            p = m.producers[p].next
        i = connection.first_id
        while i != NONE:
            ids[open_ids] = i
            open_ids += 1
            i = m.ids[i].after
        i = connection.first_queued
        while i != NONE:
            queued[waiting], of_queued[waiting] = i, c
            waiting += 1
            i = m.queued[i].next
        i = connection.condition
        while i != NONE:
            conditions[known], of_condition[known] = i, c
            known += 1
            i = m.conditions[i].next
    return (
        (producers[:n], of_producer[:n]),
        ids[:open_ids],
        (queued[:waiting], of_queued[:waiting]),
        (conditions[:known], of_condition[:known]),
    )
