"""Where rows of the job meet the rules, in readable form; `array_feeding` is the other one."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headgate.cache.schemas import EVICTIONS, ROWS
from headgate.core.cache.broker import Cache
from headgate.core.cache.checks import refusal
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Removed, Row

_FIELDS = ROWS.names[: len(Row._fields)]


class Fed(NamedTuple):
    """What rows did. dead: the place of each refused row, and why. topics: those that accepted rows were about, or
    whose entries left. evictions: entries that left, where that is told.
    """

    dead: list[tuple[int, DeadReason]]
    topics: set[str]
    evictions: pa.Table


class FedRows(NamedTuple):
    """What rows did in readable form. dead: the place of each refused row, and why. removed: entries that left, with
    the place of the row that they left with.
    """

    dead: list[tuple[int, DeadReason]]
    removed: list[tuple[int, Removed]]


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
        rows = self._rows[start:end]
        fed = feed_rows(self._cache, rows)
        dead = {at for at, _ in fed.dead}
        topics = {row.topic for at, row in enumerate(rows) if row.topic is not None and at not in dead}
        topics.update(gone.topic for _, gone in fed.removed)
        removed = fed.removed if self._is_told else []
        told = [eviction_row(self._broker, gone, rows[at].t_us, rows[at].seq) for at, gone in removed]
        return Fed([(start + at, why) for at, why in fed.dead], topics, pa.Table.from_pylist(told, EVICTIONS))

    def row(self, place: int) -> Row:
        """The row at a place."""
        return self._rows[place]


def feed_rows(cache: Cache, rows: Sequence[Row]) -> FedRows:
    """Feed the rows one by one, in plain Python."""
    dead: list[tuple[int, DeadReason]] = []
    removed: list[tuple[int, Removed]] = []
    for place, row in enumerate(rows):
        told = cache.feed(row)
        if told.dead is not None:
            dead.append((place, told.dead))
        if told.removed:
            removed += [(place, gone) for gone in told.removed]
    return FedRows(dead, removed)


def eviction_row(broker: str, gone: Removed, t_us: int, seq: int | None) -> dict[str, Any]:
    """A row of EVICTIONS. seq: of the row that the entry left with, None where only time went on."""
    place = {"broker": broker, "event_time": t_us, "seq": seq}
    return {**place, "topic": gone.topic, "ledger": gone.ledger, "entry": gone.entry, "cause": gone.cause.value}


def rows_of(table: pa.Table) -> list[Row]:
    """ROWS as the rules take them."""
    *columns, conf = (table[name].to_pylist() for name in _FIELDS)
    return list(map(Row, *columns, map(_object, conf)))


def _object(text: str | None) -> Any:
    """What a JSON text says, None for one that is none: the rules refuse that where they need it."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
