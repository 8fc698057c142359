"""Whether a topic was ever seen, and of which time is asked: what cannot be answered is said here."""

import time
from datetime import UTC, datetime
from typing import Final

from headgate.core.topic_names import Topic, topic_of
from headgate.errors import NotFoundError, TableError
from headgate.why.answer import Window
from headgate.why.tables import OutputTables, nearest, of_topic

LIVE_S: Final = 300
"""Traffic whose newest row is of the last so many seconds is live; then the last so many are asked about."""
AROUND_S: Final = 60
"""So many seconds up to an instant are looked at."""


def check_known(tables: OutputTables, name: str) -> Topic:
    """The topic of that name. Raises TableError where it is no name of a topic, or no row of the tables has it."""
    topic = topic_of(name)
    if topic is None:
        raise NotFoundError(
            f"got {name!r}; allowed: a topic's name, such as persistent://tenant/namespace/topic; correct it"
        )
    _ = tables.times
    if is_known(tables, topic.name):
        return topic
    names = sorted({row["topic"] for row in tables.dicts("topic_usage", "SELECT DISTINCT topic FROM topic_usage")})
    raise NotFoundError(
        f"{tables.output} has no publish of {topic.name}, in {len(names):,} topics{nearest(topic.name, names)}; "
        "correct the name"
    )


def is_known(tables: OutputTables, topic: str) -> bool:
    """Whether a topic without its partition, or one of these, was ever seen publishing, held or read."""
    return any(
        tables.dicts(table, f"SELECT topic FROM {table} WHERE {of_topic(topic)} LIMIT 1")  # noqa: S608  quoted text
        for table in ("topic_usage", "marks", "dispatch_decisions")
    )


def window_of(
    tables: OutputTables, at_s: int | None, first_s: int | None, last_s: int | None
) -> tuple[Window, list[str]]:
    """The time asked about, within that of the rows, and what to know of it. Raises TableError without rows of it."""
    return window_in(tables.times, f"{tables.output}/topic_usage", at_s, first_s, last_s)


def window_in(
    times: tuple[int, int], place: str, at_s: int | None, first_s: int | None, last_s: int | None
) -> tuple[Window, list[str]]:
    """The same of a table at `place`. times: the first and the last second of its rows."""
    oldest_s, newest_s = times
    notes: list[str] = []
    at = None
    if at_s is not None:
        first_s, last_s, at = at_s - AROUND_S + 1, at_s, _instant(at_s)
    is_default = first_s is None and last_s is None
    if is_default:
        is_live = time.time() - newest_s < LIVE_S
        first_s, last_s = (newest_s - LIVE_S + 1 if is_live else oldest_s), newest_s
    if first_s is not None and last_s is not None and last_s < first_s:
        raise TableError(
            f"got a time from {_text(first_s)} to {_text(last_s)}; allowed: an end that is not before the start; "
            "exchange them"
        )
    is_given = first_s is not None and at_s is None and not is_default
    first_s = oldest_s if first_s is None else first_s
    last_s = max(newest_s, first_s) if last_s is None else last_s
    has = f"{place} has rows of {_text(oldest_s)} to {_text(newest_s)}"
    if last_s < oldest_s:
        raise NotFoundError(
            f"nothing is known of {_text(last_s)}: {has}; what was before was not recorded, or is gone by retention; "
            "ask about a time between these"
        )
    if first_s > newest_s:
        raise NotFoundError(f"nothing is known yet of {_text(first_s)}: {has}; ask about a time between these")
    if is_given and first_s < oldest_s:
        notes.append(f"{has}: what was before was not recorded, or is gone by retention")
    return Window(
        _instant(max(first_s, oldest_s)), _instant(min(last_s, newest_s) if at is None else last_s), at
    ), notes


def _instant(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _text(at_s: int) -> str:
    return f"{_instant(at_s):%Y-%m-%dT%H:%M:%SZ}"
