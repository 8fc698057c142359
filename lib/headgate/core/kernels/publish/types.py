"""Arrays that the kernels of a domain work on. One row of state a limiter, in registration order.

Rows are records, because a publish goes to limiters all over memory: a record is one or two cache lines, a column each
would be ten. Instants are ns of event time. `buckets` has messages in column 0 and bytes in column 1; counts have the
columns of `core.usage`.
"""

from typing import NamedTuple

import numpy as np
from numpy import int64

from headgate.core.kernels.columns import Flags, Ints, Records
from headgate.core.usage import USAGE_COLUMNS

PERIOD_NS = int64(1_000_000_000)
RESOLUTION_NS = int64(16_000_000)
PUBLISH, SET_LIMIT, LEAVE = range(3)
BY_MESSAGES, BY_BYTES, TOLD = 1, 2, 4
"""Bits of a limiter's cause."""
NO_GROUP, UNRESOLVED = -1, -2
"""What a topic has in place of its group's limiter: none, or not looked up yet."""
MARK, UNMARK = 1, 0


def _of_ints(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in names])


LIMITER = np.dtype(
    [("second", np.int64), ("group", np.int32)]
    + [(name, np.int8) for name in ("initialised", "keeps_debt", "cause", "spare")]
    + [(name, np.int64) for name in ("next_drain_ns", "head", "tail", "waiting", "since_ns", "held_ns")]
)
"""A limiter but for its buckets, and what a topic has besides its counts; as large as a cache line.

What every publish reads stands first: an array need not begin with a cache line.

head, tail: its queue. initialised: charged before. second: the open one's number (NONE: nothing yet). waiting: the
topic's queue entries; since_ns: from when on the time that they wait is not counted yet. group: the topic's group
limiter, NO_GROUP or UNRESOLVED. cause: the dimensions for which a group makes producers wait, as bits, 0 if none waits;
with TOLD, the wait was told up to `held_ns`, from when on it is not told yet.
"""
ENTRY = _of_ints("next", "producer", "topic", "count")
"""A queue entry: the next in the same queue, who waits, its topic's limiter, and how many marks it stands for."""
WITHHELD = _of_ints("next", "at_ns", "topic", "messages", "bytes", "seq")
"""An arrival withheld in offered traffic, linked per producer."""
QUEUE = _of_ints("head", "tail")
MARKED = _of_ints(
    *("at_ns", "limiter", "producer", "topic", "seq", "action", "count"),
    *("messages_balance", "messages_rate", "bytes_balance", "bytes_rate"),
)
"""A mark, or `count` unmarks; on unmarks seq is NONE. Of a mark alone there are the limiter's balances and rates."""
DUE = _of_ints("due_ns", "owner")
"""Due work: a drain, whose owner is the limiter, or above those a time-out of a producer."""
WAIT = _of_ints("limiter", "from_ns", "until_ns", "causes")
"""A time in which the queue of a group was not empty, for the same causes all along."""
ADMISSION = _of_ints("at_ns", "topic", "messages", "bytes")
"""An arrival of offered traffic of a topic with a group, let in."""
CLOSED_TOPIC, CLOSED_SECOND, CLOSED_COUNTS = range(3)
"""Columns of the usage of closed seconds: topic limiter, number of the second, and from there on the counts."""
CLOSED_COLUMNS = CLOSED_COUNTS + USAGE_COLUMNS

ENTRIES, WITHHELD_ROWS, MARK_ROWS, CLOSED_ROWS, DUES, WAIT_ROWS, ADMISSION_ROWS = range(7)
POOLS = 7
"""Positions in `DomainArrays.used`: how many rows of each pool are in use."""


class Operations(NamedTuple):
    """What happens, in order.

    kind PUBLISH: the topic's limiter in `topic`. SET_LIMIT: the limiter in `topic`, rates in the amounts. LEAVE: the
    group limiter in `topic`, whose queue lets the entries of topics go that are no longer its own.
    producer: who waits if a limiter holds the publish. In offered traffic that is a producer; in admitted traffic each
    publish stands for itself, as producers have no state there (throttle.registration.producers).
    """

    at_ns: Ints
    kind: Ints
    topic: Ints
    producer: Ints
    messages: Ints
    bytes: Ints
    seq: Ints


class DomainArrays(NamedTuple):
    """Everything that one run works on.

    buckets: BUCKET (token_bucket) by limiter and dimension, rate 0: none, below: blocked. counts: of the open second,
    by topic limiter. waits: queue entries by producer, of any count. exempt: producers that no group concerns.
    withheld_by: queue of withheld arrivals by producer. agenda: heap by (due, owner). tells: whether groups' waits and
    admissions are told. broker: its limiter or -1.
    """

    buckets: Records
    limiters: Records
    counts: Ints
    entries: Records
    withheld: Records
    withheld_by: Records
    waits: Ints
    exempt: Flags
    marks: Records
    closed: Ints
    group_waits: Records
    admissions: Records
    agenda: Records
    used: Ints
    broker: int
    quantum: int
    offered: bool
    timeout_ns: int
    tells: bool
