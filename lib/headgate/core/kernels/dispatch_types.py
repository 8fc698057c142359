"""Arrays that the kernels of dispatch work on: a record a level, a waiting subscription, a withheld read.

Instants are ns of event time. `buckets` has messages in column 0 and bytes in column 1.
"""

from typing import NamedTuple

import numpy as np

from headgate.core.kernels.domain_types import PERIOD_NS, Ints, Records

READ, SET_RATE = range(2)
RETRY_NS = PERIOD_NS

LEVEL = np.dtype([("born", np.int8), ("cause", np.int8), ("held_ns", np.int64), ("waiting", np.int64)])
"""A level but for its buckets.

born: examined before. waiting: subscriptions whose reads it has skipped. cause: the dimensions for want of which reads
do not start, as bits, 0 without a wait; with TOLD, the wait was told up to `held_ns`, from when on it is not told yet.
"""
SUBSCRIPTION = np.dtype([(name, np.int64) for name in ("next", "due_ns", "topic", "head", "tail", "counted")])
"""A subscription: the next in the line of those that wait, when its first read is retried, its withheld reads, and
whether its level counts it as waiting.
"""
WITHHELD_READ = np.dtype([(name, np.int64) for name in ("next", "at_ns", "messages", "bytes")])
"""A read withheld in offered traffic, linked per subscription."""

FIRST, LAST, COUNT = range(3)
"""Positions in `DispatchArrays.line`: both ends of the line of waiting subscriptions, and how many they are."""


class DispatchOperations(NamedTuple):
    """What happens, in order.

    kind READ: a delivery, or a read that wants to start, of `topic` and (offered traffic) `subscription`. SET_RATE: of
    the level in `topic`, rates in the amounts.
    """

    at_ns: Ints
    kind: Ints
    topic: Ints
    subscription: Ints
    messages: Ints
    bytes: Ints


class DispatchArrays(NamedTuple):
    """Everything that one run works on; names are those of DomainArrays where kernels of both are the same.

    buckets: BUCKET by level and dimension, rate 0: none, below: blocked. limiters: LEVEL by level. level_of: the level
    that a topic is charged to, below 0: none. reads: WITHHELD_READ. used: as in DomainArrays. tells: whether waits and
    starts are told.
    """

    buckets: Records
    limiters: Records
    level_of: Ints
    subscriptions: Records
    reads: Records
    group_waits: Records
    admissions: Records
    line: Ints
    used: Ints
    offered: bool
    tells: bool
