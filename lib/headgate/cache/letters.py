"""What is said of a row that the rules refused (entry-cache 2)."""

import json
from collections.abc import Mapping
from typing import Any

from headgate.cache.schemas import ROWS
from headgate.core.cache.checks import SIZE_MAX_BYTES
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Kind, Row
from headgate.core.cache.settings import CacheSettings, CacheSettingsError

_POSITION = "ledger and entry from 0"
_RANGE = f"{_POSITION}, count null or 1 to 10000"
_MAYBE = f"topic, cursor, {_POSITION} or neither, count null or 1"
_SIZES = f"sizes from 1 to {SIZE_MAX_BYTES}: one for all entries, or one each"
_NEEDS: dict[str, str] = {
    Kind.ADD: f"topic, {_RANGE}, {_SIZES}",
    Kind.OPEN: _MAYBE,
    Kind.MOVE: _MAYBE,
    Kind.MARK: f"topic, cursor, {_POSITION}, count null or 1",
    Kind.CLOSE: "topic, cursor",
    Kind.READ: f"topic, cursor, {_RANGE}, {_SIZES}",
    Kind.REPLAY_ADD: f"topic, cursor, {_RANGE}",
    Kind.REPLAY_READ: f"topic, cursor, {_POSITION}, count null or 1, one size from 1 to {SIZE_MAX_BYTES}",
    Kind.RELEASE: f"topic, cursor, {_RANGE}",
    Kind.LEDGER_DELETE: "topic, ledger from 0",
    Kind.TOPIC_CLEAR: "topic",
    Kind.CONF: "conf, an object with one or more keys that may change",
}
_WORDS = {
    DeadReason.LATE: "(event_time, seq) is not above that of the last row of the broker that was taken",
    DeadReason.UNKNOWN_CURSOR: "the cursor is not open",
    DeadReason.CURSOR_EXISTS: "the cursor is open already",
    DeadReason.LEDGER_DELETED: "the ledger was deleted",
    DeadReason.ADD_NOT_INCREASING: "the position is not above the last one that was added to the topic",
    DeadReason.UNKNOWN_COPY: "the cursor holds no copy of an entry, or copies are released at once",
}


def letter_of(row: Row, place: Mapping[str, Any], reason: DeadReason, settings: CacheSettings) -> dict[str, Any]:
    """A row of the table `dead_letters`, whose reason begins with the word for it.

    place: what ROWS has beside the fields of `row`; settings: those of the cache that refused it.
    """
    raw = place["raw"] if place["raw"] is not None else json.dumps(_written(row, place["broker"]))
    said = f"{reason}: {_words(row, reason, settings)}"
    return {"reason": said, "raw": raw, "source": place["source"], "offset": place["offset"]}


def _words(row: Row, reason: DeadReason, settings: CacheSettings) -> str:
    if reason is DeadReason.UNKNOWN_KIND:
        return f"got {row.kind!r}, allowed is {', '.join(Kind)}"
    if reason is not DeadReason.BAD_ROW:
        return _WORDS[reason]
    if row.kind == Kind.CONF and isinstance(row.conf, dict):
        return _mistakes(row.conf, settings)
    return f"{row.kind} needs {_NEEDS[row.kind]}"


def _mistakes(conf: dict[str, Any], settings: CacheSettings) -> str:
    try:
        settings.changed(conf)
    except CacheSettingsError as error:
        return "; ".join(error.mistakes)
    return f"{Kind.CONF} needs {_NEEDS[Kind.CONF]}"


def _written(row: Row, broker: str) -> dict[str, Any]:
    """What the row has, in the words of its columns; times are microseconds."""
    named = {"event_time": row.t_us, "broker": broker, **dict(zip(ROWS.names[1:10], row[1:], strict=True))}
    return {name: value for name, value in named.items() if value is not None}
