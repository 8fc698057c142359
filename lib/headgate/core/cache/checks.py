"""What a row must have for its kind: a row that fails here changes nothing (entry-cache 2).

Nothing that a field can hold makes a check raise.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Kind, Row
from headgate.core.cache.settings import CacheSettings, CacheSettingsError
from headgate.core.numbers import MAX, MIN

COUNT_MAX = 10_000

Check = Callable[[Row], bool]


def refusal(row: Row, now_us: int, seq: int, settings: CacheSettings) -> DeadReason | None:
    """Why a row must not change anything, None where it may: the checks 1 of entry-cache 2.

    now_us, seq: of the last row that passed. settings: those that a row of kind conf would change.
    """
    if not _is_kind(row.kind):
        return DeadReason.UNKNOWN_KIND
    if not is_well_formed(row) or (row.kind == Kind.CONF and not _changes(settings, row.conf)):
        return DeadReason.BAD_ROW
    if row.t_us < now_us or (row.t_us == now_us and row.seq <= seq):
        return DeadReason.LATE
    return None


def _changes(settings: CacheSettings, conf: Mapping[str, object]) -> bool:
    try:
        settings.changed(conf)
    except CacheSettingsError:
        return False
    return True


def _is_kind(kind: object) -> bool:
    """Whether there is such a kind of row."""
    return isinstance(kind, str) and kind in _CHECKS


def is_well_formed(row: Row) -> bool:
    """Whether a row of a known kind has all that the kind needs; the map of a conf row is checked elsewhere."""
    if type(row.t_us) is not int or not MIN <= row.t_us <= MAX:
        return False
    if type(row.seq) is not int or not 0 <= row.seq <= MAX:
        return False
    return _CHECKS[row.kind](row)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_position(row: Row, last: int) -> bool:
    """Ledger and entry, and `last` entries more, are long and not negative."""
    ledger, entry = row.ledger, row.entry
    if type(ledger) is not int or type(entry) is not int:
        return False
    return 0 <= ledger <= MAX and 0 <= entry <= MAX - last


def _is_one(count: object) -> bool:
    return count is None or (type(count) is int and count == 1)


def _is_range(row: Row) -> bool:
    count = row.count
    if count is None:
        return _is_position(row, 0)
    return type(count) is int and 1 <= count <= COUNT_MAX and _is_position(row, count - 1)


def _are_sizes(sizes: Any, count: int) -> bool:
    if not isinstance(sizes, list | tuple) or len(sizes) not in {1, count}:
        return False
    if len(sizes) == 1:
        return type(sizes[0]) is int and 1 <= sizes[0] <= MAX
    return set(map(type, sizes)) == {int} and min(sizes) >= 1 and max(sizes) <= MAX


def _add(row: Row) -> bool:
    return _is_name(row.topic) and _is_range(row) and _are_sizes(row.sizes, row.count or 1)


def _read(row: Row) -> bool:
    return _is_name(row.cursor) and _add(row)


def _replay_read(row: Row) -> bool:
    return _of_cursor_at(row) and _are_sizes(row.sizes, 1)


def _of_cursor_range(row: Row) -> bool:
    return _of_cursor(row) and _is_range(row)


def _of_cursor_at(row: Row) -> bool:
    return _of_cursor(row) and _is_one(row.count) and _is_position(row, 0)


def _of_cursor_maybe_at(row: Row) -> bool:
    if row.ledger is None and row.entry is None:
        return _of_cursor(row) and _is_one(row.count)
    return _of_cursor_at(row)


def _of_cursor(row: Row) -> bool:
    return _is_name(row.topic) and _is_name(row.cursor)


def _ledger_delete(row: Row) -> bool:
    return _is_name(row.topic) and type(row.ledger) is int and 0 <= row.ledger <= MAX


def _topic_clear(row: Row) -> bool:
    return _is_name(row.topic)


def _conf(row: Row) -> bool:
    return isinstance(row.conf, dict)


_CHECKS: dict[str, Check] = {
    Kind.ADD: _add,
    Kind.OPEN: _of_cursor_maybe_at,
    Kind.MOVE: _of_cursor_maybe_at,
    Kind.MARK: _of_cursor_at,
    Kind.CLOSE: _of_cursor,
    Kind.READ: _read,
    Kind.REPLAY_ADD: _of_cursor_range,
    Kind.REPLAY_READ: _replay_read,
    Kind.RELEASE: _of_cursor_range,
    Kind.LEDGER_DELETE: _ledger_delete,
    Kind.TOPIC_CLEAR: _topic_clear,
    Kind.CONF: _conf,
}
