"""What a cache is fed and what it answers (entry-cache 2)."""

from enum import StrEnum
from typing import Any, NamedTuple

from headgate.core.cache.reasons import Cause, DeadReason

Position = tuple[int, int]
"""Ledger and entry, compared in this order."""


class EventKind(StrEnum):
    """What a row says happened."""

    ADD = "add"
    OPEN = "open"
    MOVE = "move"
    MARK = "mark"
    CLOSE = "close"
    READ = "read"
    REPLAY_ADD = "replay_add"
    REPLAY_READ = "replay_read"
    RELEASE = "release"
    LEDGER_DELETE = "ledger_delete"
    TOPIC_CLEAR = "topic_clear"
    CONF = "conf"


WITH_SIZES = frozenset({EventKind.ADD, EventKind.READ, EventKind.REPLAY_READ})
"""Kinds whose rows say how large entries are."""
WITHOUT_CURSOR = frozenset({EventKind.ADD, EventKind.LEDGER_DELETE, EventKind.TOPIC_CLEAR, EventKind.CONF})
"""Kinds that are of no reader."""
WITH_RANGE = frozenset({EventKind.ADD, EventKind.READ, EventKind.REPLAY_ADD, EventKind.RELEASE})
"""Kinds whose rows are of `count` positions; others are of one, or of none."""
WITHOUT_LEDGER = frozenset({EventKind.CLOSE, EventKind.TOPIC_CLEAR, EventKind.CONF})
"""Kinds that are nowhere."""


class Row(NamedTuple):
    """One row of a broker; fields hold what arrived, checked or not. Columns that a kind does not need are ignored.

    t_us: event time in microseconds. sizes: bytes, one for all entries or one each.
    """

    t_us: Any
    seq: Any
    kind: Any
    topic: Any = None
    cursor: Any = None
    ledger: Any = None
    entry: Any = None
    count: Any = None
    sizes: Any = None
    conf: Any = None


class Removed(NamedTuple):
    """An entry that left the cache, and why."""

    topic: str
    ledger: int
    entry: int
    cause: Cause


class RowOutcome(NamedTuple):
    """What one row did, with the ticks before it and the pass after it; `dead`: why it was refused, or None."""

    hits: int = 0
    misses: int = 0
    removed: tuple[Removed, ...] = ()
    dead: DeadReason | None = None


NOTHING = RowOutcome()
