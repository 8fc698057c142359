"""Arrays that the kernels of a domain work on. One row of state a limiter, in registration order.

Instants are ns of event time. Arrays of two columns hold messages in column 0 and bytes in column 1; counts have the
columns of `core.usage`.
"""

from typing import NamedTuple

import numpy as np
from numpy import int64
from numpy.typing import NDArray

from headgate.core.kernels.int128 import MIN

Ints = NDArray[np.int64]

NONE = int(MIN)  # no pending drain, no open second, no link, no publish behind a mark
PERIOD_NS = int64(1_000_000_000)
RESOLUTION_NS = int64(16_000_000)
SLOWEST_FAST_RATE = PERIOD_NS // (RESOLUTION_NS + 1)  # at or below it a token takes longer than the resolution
PUBLISH, SET_LIMIT = 0, 1
MARK, UNMARK = 1, 0


class Limiters(NamedTuple):
    """State of the limiters.

    rate 0: no bucket. floor: -max_debt, MIN without a bound. born: charged before. head, tail: its queue.
    """

    rate: Ints
    balance: Ints
    last_ns: Ints
    remainder_ns: Ints
    floor: Ints
    next_drain_ns: Ints
    born: Ints
    reprice: Ints
    head: Ints
    tail: Ints


class Entries(NamedTuple):
    """Pool of queue entries: the next in the same queue, who waits, its topic's limiter. `used[0]` are in use."""

    next: Ints
    producer: Ints
    topic: Ints
    used: Ints


class Withheld(NamedTuple):
    """Pool of arrivals withheld in offered traffic, linked per producer (head, tail by producer)."""

    next: Ints
    at_ns: Ints
    topic: Ints
    group: Ints
    messages: Ints
    bytes: Ints
    seq: Ints
    used: Ints
    head: Ints
    tail: Ints


class Usage(NamedTuple):
    """Usage of the open second by topic limiter.

    second: its number (NONE: nothing yet). counts: by the columns of core.usage. waiting: queue entries; since_ns: from
    when on the time that they wait is not counted yet.
    """

    second: Ints
    counts: Ints
    waiting: Ints
    since_ns: Ints


class Operations(NamedTuple):
    """What happens, in order.

    kind PUBLISH: topic and group limiter (-1: none). SET_LIMIT: the limiter in `topic`, rates in the amounts.
    """

    at_ns: Ints
    kind: Ints
    topic: Ints
    group: Ints
    producer: Ints
    messages: Ints
    bytes: Ints
    seq: Ints


class Marks(NamedTuple):
    """Marks and unmarks in the order they happen; seq is NONE on unmarks."""

    at_ns: Ints
    limiter: Ints
    producer: Ints
    topic: Ints
    seq: Ints
    action: Ints
    used: Ints


class Closed(NamedTuple):
    """Usage of closed seconds: topic limiter, second, counts."""

    topic: Ints
    second: Ints
    counts: Ints
    used: Ints


class Agenda(NamedTuple):
    """Heap of due work by (due, owner): drains, whose owner is the limiter, and above those time-outs of producers."""

    due_ns: Ints
    owner: Ints
    size: Ints


class Domain(NamedTuple):
    """Everything that one run works on. broker: its limiter or -1. waits: queue entries by producer."""

    limiters: Limiters
    entries: Entries
    withheld: Withheld
    waits: Ints
    usage: Usage
    marks: Marks
    closed: Closed
    agenda: Agenda
    broker: int
    quantum: int
    offered: bool
    timeout_ns: int
