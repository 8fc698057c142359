"""What a row must have for its kind: a row that fails here changes nothing (entry-cache 2).

Nothing that a field can hold makes a check raise.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import EventKind, Row
from headgate.core.cache.settings import CacheSettings, CacheSettingsError
from headgate.core.numbers import MAX, MIN
from headgate.core.settings_keys import INT32_MAX

COUNT_MAX = 10_000
SIZE_MAX_BYTES = INT32_MAX

Check = Callable[[Row], bool]


def refusal(row: Row, now_us: int, seq: int, settings: CacheSettings) -> DeadReason | None:
    """Why a row must not change anything, None where it may: the checks 1 of entry-cache 2.

    now_us, seq: of the last row that passed. settings: those that a row of kind conf would change.
    """
    t_us, row_seq, kind, *_ = row
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return DeadReason.UNKNOWN_KIND
    if not (type(t_us) is int and MIN <= t_us <= MAX and type(row_seq) is int and 0 <= row_seq <= MAX and check(row)):
        return DeadReason.BAD_ROW
    if check is _conf and not _changes(settings, row.conf):
        return DeadReason.BAD_ROW
    if t_us < now_us or (t_us == now_us and row_seq <= seq):
        return DeadReason.LATE
    return None


def is_well_formed(row: Row) -> bool:
    """Whether a row is of a known kind and has what the kind needs, whatever its time, order and conf."""
    check = _CHECKS.get(row.kind) if isinstance(row.kind, str) else None
    return check is not None and check(row)


def _changes(settings: CacheSettings, conf: Mapping[str, object]) -> bool:
    try:
        settings.changed(conf)
    except CacheSettingsError:
        return False
    return True


def _is_long(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_one(count: object) -> bool:
    return count is None or (type(count) is int and count == 1)


def _are_at(ledger: object, entry: object, count: Any) -> bool:
    """Whether so many positions from (ledger, entry) on exist."""
    if count is None:
        count = 1
    elif type(count) is not int or not 1 <= count <= COUNT_MAX:
        return False
    return type(ledger) is int and type(entry) is int and 0 <= ledger <= MAX and 0 <= entry <= MAX + 1 - count


def _are_sizes(sizes: Any, count: int | None) -> bool:
    """Whether there is one size, or one for each of the entries, and their sums stay far below 64 bits."""
    if not isinstance(sizes, list | tuple):
        return False
    if len(sizes) == 1:
        return type(sizes[0]) is int and 1 <= sizes[0] <= SIZE_MAX_BYTES
    return len(sizes) == count and set(map(type, sizes)) == {int} and min(sizes) >= 1 and max(sizes) <= SIZE_MAX_BYTES


def _add(row: Row) -> bool:
    _, _, _, topic, _, ledger, entry, count, sizes, _ = row
    return _is_name(topic) and _are_at(ledger, entry, count) and _are_sizes(sizes, count)


def _read(row: Row) -> bool:
    _, _, _, topic, cursor, ledger, entry, count, sizes, _ = row
    return _is_name(topic) and _is_name(cursor) and _are_at(ledger, entry, count) and _are_sizes(sizes, count)


def _replay_read(row: Row) -> bool:
    return _of_cursor_at(row) and _are_sizes(row.sizes, 1)


def _of_cursor_range(row: Row) -> bool:
    return _of_cursor(row) and _are_at(row.ledger, row.entry, row.count)


def _of_cursor_at(row: Row) -> bool:
    _, _, _, topic, cursor, ledger, entry, count, _, _ = row
    return _is_name(topic) and _is_name(cursor) and _is_one(count) and _are_at(ledger, entry, 1)


def _of_cursor_maybe_at(row: Row) -> bool:
    is_nowhere = row.ledger is None and row.entry is None
    return (_of_cursor(row) and _is_one(row.count)) if is_nowhere else _of_cursor_at(row)


def _of_cursor(row: Row) -> bool:
    return _is_name(row.topic) and _is_name(row.cursor)


def _ledger_delete(row: Row) -> bool:
    return _is_name(row.topic) and _is_long(row.ledger, 0)


def _topic_clear(row: Row) -> bool:
    return _is_name(row.topic)


def _conf(row: Row) -> bool:
    return isinstance(row.conf, dict)


_CHECKS: dict[str, Check] = {
    EventKind.ADD: _add,
    EventKind.OPEN: _of_cursor_maybe_at,
    EventKind.MOVE: _of_cursor_maybe_at,
    EventKind.MARK: _of_cursor_at,
    EventKind.CLOSE: _of_cursor,
    EventKind.READ: _read,
    EventKind.REPLAY_ADD: _of_cursor_range,
    EventKind.REPLAY_READ: _replay_read,
    EventKind.RELEASE: _of_cursor_range,
    EventKind.LEDGER_DELETE: _ledger_delete,
    EventKind.TOPIC_CLEAR: _topic_clear,
    EventKind.CONF: _conf,
}
