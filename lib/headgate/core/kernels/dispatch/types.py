"""Arrays that the kernels of dispatch work on: a record a level, a waiting subscription, a withheld read.

Places of levels in a chain, and what stands for none, are those of `headgate.core.dispatch.dispatch_domain`. Instants
are ns of event time. `buckets` has messages in column 0 and bytes in column 1.
"""

from typing import NamedTuple

import numpy as np

from headgate.core.kernels.columns import Ints, Records

READ, SET_RATE, FOLLOW = range(3)

LEVEL = np.dtype(
    [(name, np.int8) for name in ("initialised", "cause", "group", "relative", "limits")]
    + [(name, np.int64) for name in ("held_ns", "waiting", "period_s")]
)
"""A level but for its buckets.

group: a group's, which keeps its debt on a rate change. initialised: examined before; of others than groups: examined
while it limited anything. relative, period_s, limits (the dimensions that are limited, as bits): of others than groups.
waiting: subscriptions whose reads a group has skipped. cause: the dimensions for want of which a group's reads do not
start, as bits, 0 without a wait; with TOLD, the wait was told up to `held_ns`, from when on it is not told yet.
"""
SUBSCRIPTION = np.dtype([(name, np.int64) for name in ("next", "due_ns", "head", "tail", "counted", "held_by")])
"""A subscription: the next in the line of those that wait, when its first read is retried, its withheld reads, whether
its group counts it as waiting, and the place from 1 of the level that skipped it last.
"""
WITHHELD_READ = np.dtype([(name, np.int64) for name in ("next", "at_ns", "messages", "bytes", "charged", "exempt")])
"""A read withheld in offered traffic, linked per subscription."""
START = np.dtype([(name, np.int64) for name in ("at_ns", "subscription", "messages", "bytes", "arrived_ns", "counted")])
"""A read of offered traffic that started; counted: its group was charged."""

FIRST, LAST, COUNT = range(3)
"""Positions in `DispatchArrays.line`: both ends of the line of waiting subscriptions, and how many they are."""


class DispatchOperations(NamedTuple):
    """What happens, in order.

    kind READ: a delivery, or a read that wants to start, of the subscription in `target`; charged: messages or entries,
    whatever levels count; exempt: no level is read or charged. SET_RATE: of the level in `target`: rates in the
    amounts, its period in seconds in `charged`, whether it is relative in `exempt`. FOLLOW: the topic of the level in
    `target` is published to so fast.
    """

    at_ns: Ints
    kind: Ints
    target: Ints
    messages: Ints
    bytes: Ints
    charged: Ints
    exempt: Ints


class DispatchArrays(NamedTuple):
    """Everything that one run works on; names are those of DomainArrays where kernels of both are the same.

    buckets: BUCKET by level and dimension, rate 0: none, below: blocked. With `classic`, of others than groups it is a
    window: rate its permits, balance what is acquired, last_ns its next renewal (NONE: not started), remainder_ns the
    permits from then on (0: as before). limiters: LEVEL by level. configured, averages: rates that are set, and publish
    rates, by level and dimension. chains: levels of each subscription by place, NO_LEVEL: none. reads: WITHHELD_READ.
    held_by: of each operation that is a read, the place from 1 of the level without permits, 0: none. starts: START.
    used: as in DomainArrays. tells: whether waits are told. max_debt_ms: below 0: no bound.
    """

    buckets: Records
    limiters: Records
    configured: Ints
    averages: Ints
    chains: Ints
    subscriptions: Records
    reads: Records
    group_waits: Records
    held_by: Ints
    starts: Records
    line: Ints
    used: Ints
    offered: bool
    tells: bool
    classic: bool
    max_debt_ms: int
