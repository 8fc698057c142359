"""What is said of a row that the rules refused (entry-cache 2)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.cache.schemas import ROWS
from headgate.core.cache.checks import SIZE_MAX_BYTES, is_well_formed
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import WITH_SIZES, EventKind, Row
from headgate.core.cache.settings import CacheSettings, CacheSettingsError

_PLACE = ("broker", "raw", "source", "offset")
_POSITION = "ledger and entry from 0"
_RANGE = f"{_POSITION}, count null or 1 to 10000"
_MAYBE = f"topic, cursor, {_POSITION} or neither, count null or 1"
_SIZES = f"sizes from 1 to {SIZE_MAX_BYTES}: one for all entries, or one each"
_NEEDS: dict[str, str] = {
    EventKind.ADD: f"topic, {_RANGE}, {_SIZES}",
    EventKind.OPEN: _MAYBE,
    EventKind.MOVE: _MAYBE,
    EventKind.MARK: f"topic, cursor, {_POSITION}, count null or 1",
    EventKind.CLOSE: "topic, cursor",
    EventKind.READ: f"topic, cursor, {_RANGE}, {_SIZES}",
    EventKind.REPLAY_ADD: f"topic, cursor, {_RANGE}",
    EventKind.REPLAY_READ: f"topic, cursor, {_POSITION}, count null or 1, one size from 1 to {SIZE_MAX_BYTES}",
    EventKind.RELEASE: f"topic, cursor, {_RANGE}",
    EventKind.LEDGER_DELETE: "topic, ledger from 0",
    EventKind.TOPIC_CLEAR: "topic",
    EventKind.CONF: "conf, an object with one or more keys that may change",
}
_ALONE = ("topic", "cursor", "ledger", "entry", "count", "conf")
_WORDS = {
    DeadReason.LATE: "(event_time, seq) is not above that of the last row of the broker that was taken",
    DeadReason.UNKNOWN_CURSOR: "the cursor is not open",
    DeadReason.CURSOR_EXISTS: "the cursor is open already",
    DeadReason.LEDGER_DELETED: "the ledger was deleted",
    DeadReason.ADD_NOT_INCREASING: "the position is not above the last one that was added to the topic",
    DeadReason.UNKNOWN_COPY: "the cursor holds no copy of an entry, or copies are released at once",
}


def letters_of(
    table: pa.Table, row_at: Callable[[int], Row], dead: Iterable[tuple[int, DeadReason]], settings: CacheSettings
) -> Iterator[dict[str, Any]]:
    """Letters of the rows that were refused, by their places. table: ROWS."""
    return (letter_of(row_at(at), place_of(table, at), reason, settings) for at, reason in dead)


def place_of(table: pa.Table, at: int) -> dict[str, Any]:
    """What ROWS has of a row beside what the rules take."""
    return {name: table[name][at].as_py() for name in _PLACE}


def letter_of(row: Row, place: Mapping[str, Any], reason: DeadReason, settings: CacheSettings) -> dict[str, Any]:
    """A row of the table `dead_letters`, whose reason begins with the word for it.

    place: what ROWS has beside the fields of `row`; settings: those of the cache that refused it.
    """
    raw = place["raw"] if place["raw"] is not None else json.dumps(_written(row, place["broker"]))
    said = f"{reason}: {_words(row, reason, settings)}"
    return {"reason": said, "raw": raw, "source": place["source"], "offset": place["offset"]}


def _words(row: Row, reason: DeadReason, settings: CacheSettings) -> str:
    if reason is DeadReason.UNKNOWN_KIND:
        return f"got {row.kind!r}, allowed is {', '.join(EventKind)}"
    if reason is not DeadReason.BAD_ROW:
        return _WORDS[reason]
    if row.kind == EventKind.CONF and isinstance(row.conf, dict):
        return _mistakes(row.conf, settings)
    return f"{row.kind} needs {_NEEDS[row.kind]}; at fault: {', '.join(_at_fault(row))}"


def _at_fault(row: Row) -> list[str]:
    """The columns without which the row would be well formed; entry and count where only both together are wrong."""
    wrong = [] if row.seq >= 0 else ["seq"]
    right = row._replace(topic="t", cursor="c", ledger=0, entry=0, count=1, sizes=[1], conf={})
    if row.kind in {EventKind.OPEN, EventKind.MOVE} and row.ledger is None and row.entry is None:
        right = right._replace(ledger=None, entry=None)
    wrong += (name for name in _ALONE if not is_well_formed(right._replace(**{name: getattr(row, name)})))
    if row.kind in WITH_SIZES:
        sizes = row.sizes if isinstance(row.sizes, list | tuple) else []
        count = max(1, len(sizes)) if "count" in wrong else row.count
        wrong += [] if is_well_formed(right._replace(count=count, sizes=row.sizes)) else ["sizes"]
    return wrong or ["entry and count"]


def _mistakes(conf: dict[str, Any], settings: CacheSettings) -> str:
    try:
        settings.changed(conf)
    except CacheSettingsError as error:
        return "; ".join(error.mistakes)
    return f"{EventKind.CONF} needs {_NEEDS[EventKind.CONF]}"


def _written(row: Row, broker: str) -> dict[str, Any]:
    """What the row has, in the words of its columns; times are microseconds."""
    named = {"event_time": row.t_us, "broker": broker, **dict(zip(ROWS.names[1:10], row[1:], strict=True))}
    return {name: value for name, value in named.items() if value is not None}
