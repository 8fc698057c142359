"""Where rows of the job meet the rules, in readable form; `apply_event_arrays` is the other one."""

import json
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headgate.cache.schemas import EVICTIONS, ROWS
from headgate.core.cache.broker import Cache
from headgate.core.cache.checks import refusal
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import EventKind, Removed, Row

_FIELDS = ROWS.names[: len(Row._fields)]
_MOST_BRACKETS = 100
"""In a conf, whose values are none of objects and lists: what is thousands deep can be neither read nor quoted."""


class Fed(NamedTuple):
    """What rows did. dead: the place of each refused row, and why. topics: those that accepted rows were about, or
    whose entries left. evictions: entries that left, where that is told.
    """

    dead: list[tuple[int, DeadReason]]
    topics: set[str]
    evictions: pa.Table


class Feeding(Protocol):
    """A broker's rows of a batch, in order, on their way into its cache."""

    def accepts(self, place: int) -> bool:
        """Whether the row at a place passes the checks 1 of entry-cache 2 now."""

    def feed(self, start: int, end: int) -> Fed:
        """Feed the rows of these places."""

    def row(self, place: int) -> Row:
        """The row at a place, for who wants to tell of it."""


class RowsOneByOne:
    """Rows through the readable form. is_told: whether evictions are."""

    def __init__(self, cache: Cache, broker: str, table: pa.Table, *, is_told: bool) -> None:
        self._cache = cache
        self._broker = broker
        self._rows = rows_of(table)
        self._is_told = is_told

    def accepts(self, place: int) -> bool:
        """Whether the row at a place passes the checks 1 of entry-cache 2 now."""
        cache = self._cache
        return refusal(self._rows[place], cache.now_us, cache.seq, cache.settings) is None

    def feed(self, start: int, end: int) -> Fed:
        """Feed the rows of these places."""
        dead: list[tuple[int, DeadReason]] = []
        topics: set[str] = set()
        evictions: list[dict[str, Any]] = []
        for place in range(start, end):
            row = self._rows[place]
            told = self._cache.feed(row)
            if told.dead is not None:
                dead.append((place, told.dead))
            elif row.kind != EventKind.CONF:
                topics.add(row.topic)
            if told.removed:
                topics.update(gone.topic for gone in told.removed)
                if self._is_told:
                    evictions += [eviction_row(self._broker, gone, row.t_us, row.seq) for gone in told.removed]
        return Fed(dead, topics, pa.Table.from_pylist(evictions, EVICTIONS))

    def row(self, place: int) -> Row:
        """The row at a place."""
        return self._rows[place]


def eviction_row(broker: str, gone: Removed, t_us: int, seq: int | None) -> dict[str, Any]:
    """A row of EVICTIONS. seq: of the row that the entry left with, None where only time went on."""
    place = {"broker": broker, "event_time": t_us, "seq": seq}
    return {**place, "topic": gone.topic, "ledger": gone.ledger, "entry": gone.entry, "cause": gone.cause.value}


def rows_of(table: pa.Table) -> list[Row]:
    """ROWS as the rules take them."""
    *columns, conf = (table[name].to_pylist() for name in _FIELDS)
    return list(map(Row, *columns, map(_object, conf)))


def _object(text: str | None) -> Any:
    """What a JSON text says, None for one that is none, or too deep: the rules refuse that where they need it."""
    if text is None or text.count("[") + text.count("{") > _MOST_BRACKETS:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
