"""What a cache is fed and what it answers (entry-cache 2)."""

from enum import StrEnum
from typing import Any, NamedTuple

from headgate.core.cache.reasons import Cause, DeadReason

Position = tuple[int, int]
"""Ledger and entry, compared in this order."""


class Kind(StrEnum):
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


WITH_SIZES = frozenset({Kind.ADD, Kind.READ, Kind.REPLAY_READ})
"""Kinds whose rows say how large entries are."""
WITHOUT_CURSOR = frozenset({Kind.ADD, Kind.LEDGER_DELETE, Kind.TOPIC_CLEAR, Kind.CONF})
"""Kinds that are of no reader."""
WITH_RANGE = frozenset({Kind.ADD, Kind.READ, Kind.REPLAY_ADD, Kind.RELEASE})
"""Kinds whose rows are of `count` positions; others are of one, or of none."""
WITHOUT_LEDGER = frozenset({Kind.CLOSE, Kind.TOPIC_CLEAR, Kind.CONF})
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


class Outcome(NamedTuple):
    """What one row did, with the ticks before it and the pass after it; `dead`: why it was refused, or None."""

    hits: int = 0
    misses: int = 0
    removed: tuple[Removed, ...] = ()
    dead: DeadReason | None = None


NOTHING = Outcome()
