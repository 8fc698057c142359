"""Arrays that the kernels of the broker's machines work on (throttle-protocol 7).

Times are ms. A machine is a record of each pool: links are places in a pool, NONE for none. What belongs to a
connection knows its life: a number that a connection has from its connect to its close, so that a close is one write.
Ends and deadlines are unsigned: they may lie above 2^63-1, where they never come.
"""

from typing import NamedTuple

import numpy as np

from headgate.core.kernels.columns import Ints, Records

NONE = -1
NEVER = np.uint64(2**64 - 1)
READS_ON = -1

CONNECT, OPEN, PUBLISH, MARK, RECEIPT, QUOTE, CONDITION_SET, UNMARK, CONDITION_CLEAR, CLOSE_PRODUCER, CLOSE = range(11)
PROBE = 11
"""Kinds of operations, which are their ranks."""
FREE, TOLD, TRUSTED, HOLDING = range(4)
"""Phases of a producer: N, W, C, P."""
COMMAND, PAUSE, RESUME = range(3)
"""Kinds of decisions."""
START, EXTEND, NOTICE = range(3)
"""Kinds of commands."""
NO_SUPPORT, NO_RECEIPT, VIOLATION, HARD_FLOOR, CONDITION_CAUSE = range(5)
"""Why reads go off; the first four also count as fallbacks."""
(
    BAD_TIME,
    UNKNOWN_CONNECTION,
    UNKNOWN_PRODUCER,
    BAD_REASON,
    BAD_ORDINAL,
    BAD_BUCKET,
    BAD_PRODUCER,
    DUPLICATE_PRODUCER,
    BAD_REQUEST_ID,
    DUPLICATE_CONNECTION,
) = range(10)
"""Why an operation is refused, in the order of the checks."""

READS_PAUSED, READS_RESUMED, THROTTLED, UNTHROTTLED, IN_TIME, IGNORED, UNKNOWN, READS_OFF_MS = range(8)
FALLBACKS = 8
REJECTED = 12
COMMANDS = 22
COUNTERS = 37
"""Counters of a connection: from these places on one a cause, an error, a kind and reason (5 reasons a kind)."""
LIMITERS = 2
CONDITION_CODES = (2, 6)
"""The lowest and the highest reason of a condition."""


def _of_ints(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


SETTINGS = np.dtype(
    _of_ints(
        *("wait_ms", "looks_at_buckets", "phase_ms", "freezes", "stops_violations", "slack_ms", "idle_extension_ms"),
        *("extension_step_ms", "doubles_extensions", "hard_floor_ms"),
    )
)
CONNECTION = np.dtype(
    _of_ints(
        *("now_ms", "off_at_ms", "stood_ms", "issued", "seq", "due_ms", "closed_ms", "heard_ms"),
        *("settings", "is_open", "supports"),
        *("names", "life", "holds", "producers", "is_unordered", "first_producer", "last_producer"),
        *("first_id", "last_id", "first_queued", "last_queued", "condition"),
    )
)
"""off_at_ms: when reads went off, READS_ON. stood_ms: for how long deadlines stood still. due_ms: when it acts next by
itself, MAX: never. closed_ms: the time of its last close; heard_ms: of its last row while it is open; NONE: not known.
names: producers that have one. holds: producers in P and conditions that are active. is_unordered: its producers are
not linked by id.
"""
PRODUCER = np.dtype(
    [
        *_of_ints("life", "id", "topic", "is_open", "phase", "reason", "open_ids", "first_id"),
        *_of_ints("before", "next", "same", "place"),
        ("end_ms", np.uint64),
    ]
)
"""end_ms, reason: of its window, in TOLD and TRUSTED alone. One that is not open stays for its name. life: NONE once
it closed. place: in the heap of ends.
"""
LIMITER = np.dtype(
    _of_ints(
        *("marked", "released", "quoted_ms", "buckets", "balance_0", "rate_0", "balance_1", "rate_1"),
        *("marks", "unmarks"),
    )
)
"""A producer's limiter. marks, unmarks: rows of `marks` so far, by which they are numbered."""
OPEN_ID = np.dtype(
    [
        *_of_ints("life", "producer", "request_id", "is_queued", "before", "after", "previous", "next", "same"),
        ("due_ms", np.uint64),
    ]
)
"""A command whose receipt was not read. due_ms: in ms of reading. before, after: among those of the connection by due
time and producer; previous, next: of the same producer, the last one first.
"""
QUEUED = np.dtype(_of_ints("life", "request_id", "next"))
CONDITION = np.dtype(_of_ints("life", "reason", "marked", "released", "begun", "is_set", "next"))
"""begun, is_set: activations in rows of `marks` so far, by which they are numbered."""
NAMED = np.dtype(_of_ints("life", "topic", "name", "producer", "same"))
"""A producer by the name that `marks` knows it by."""

OPERATION = np.dtype(
    _of_ints(
        *("at_ms", "kind", "connection", "has_producer", "producer", "number", "reason", "topic", "name", "row"),
        *("flag", "by_marks", "trips", "first_trip", "second_trip", "first_bucket", "buckets"),
    )
)
"""What happens. at_ms, number (ordinal or request id), reason, topic, name: NONE where there is none that can be one.
flag: supports, or trigger. trips: how many there are, of which two are looked at.
"""
TRIP = np.dtype(_of_ints("reason", "ordinal", "first_bucket", "buckets"))
BUCKET = np.dtype(_of_ints("balance", "rate"))
"""rate 0: not a bucket."""
TURN = np.dtype(_of_ints("connection", "first", "end"))
"""A connection to which something happens, and its operations."""
DECISION = np.dtype(
    _of_ints(
        *("connection", "seq", "kind", "at_ms", "request_id", "producer", "topic", "reason", "pause_ms"),
        *("command", "cause", "off_ms"),
    )
)
LETTER = np.dtype(_of_ints("row", "error", "at_ms"))
COUNT = np.dtype(_of_ints("connection", "counter", "value"))
BREACH = np.dtype(_of_ints("connection", "reason", "topic"))

(
    TURN_NOW,
    OPERATION_NOW,
    HAS_BEGUN,
    PRODUCERS,
    IDS,
    IDS_IN_USE,
    FREE_ID,
    QUEUE,
    QUEUE_IN_USE,
    FREE_QUEUED,
    CONDITIONS,
    NAMES,
    LIVES,
    ENDS,
    DECISIONS,
    ANSWERED,
    LETTERS,
    COUNTS,
    BREACHES,
) = range(19)
USED = 19
"""Places in `Machines.used`: where the run stands, how much of each pool is in use, and the first free ones."""


class Machines(NamedTuple):
    """Everything that one run works on.

    limiters: by producer and reason. *_by: heads of hash chains. ends: heap of producers with a window, of the
    connection whose turn it is; counters: its counters. silent_ms, horizon_ms, ends_open: when a connection begins anew
    (headgate.protocol.silence). obedient: clients send a receipt for every command at once, and
    what nobody opened opens with its first row.
    """

    settings: Records
    connections: Records
    producers: Records
    producers_by: Ints
    limiters: Records
    ids: Records
    ids_by: Ints
    queued: Records
    conditions: Records
    named: Records
    named_by: Ints
    ends: Ints
    counters: Ints
    turns: Records
    operations: Records
    trips: Records
    buckets: Records
    decisions: Records
    letters: Records
    counts: Records
    breaches: Records
    used: Ints
    silent_ms: int
    horizon_ms: int
    ends_open: bool
    obedient: bool
