"""Columns of any type as the values that headgate works with: whole numbers, instants, truth values, names.

Each function gives the values, null where there is none or it cannot be read. Nothing else is judged.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.numbers import MAX, MIN
from headgate.rows.raw import Flags, Raw
from headgate.rows.shown import is_bytes, is_text, shown

SPACE = " \t\n\x0b\f\r"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_PLAIN_INTEGER = r"^[0-9]{1,18}$"
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*(?:(Z)|([+-])(\d{2})(?::?(\d{2}))?)",
    re.ASCII,
)
_MOST_DIGITS = len(str(MAX))
_WHOLE_SECOND = len("2026-01-05T09:00:00Z")
_MOST_OFFSET_H = 18
MICROSECONDS_OF_S = 1_000_000


class Names(NamedTuple):
    """Texts, and which of the rows have none that may be a name: nested values. is_odd: rows that are not UTF-8."""

    texts: pa.Array
    is_nested: Flags | None
    is_odd: Flags | None


def whole_numbers(column: pa.Array) -> pa.Array:
    """Numbers of 64 bits. Of floats and decimals those without a fraction; of texts those that say nothing else."""
    kind = column.type
    if pa.types.is_int64(kind):
        return column
    if pa.types.is_integer(kind):
        fits = pc.less_equal(column, pa.scalar(MAX, pa.uint64())) if pa.types.is_uint64(kind) else None
        return (column if fits is None else pc.if_else(fits, column, None)).cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.array([_whole(value) for value in column.to_pylist()], pa.int64())
    if not is_text(kind):
        return pa.nulls(len(column), pa.int64())
    if pc.all(pc.match_substring_regex(column, _PLAIN_INTEGER)).as_py() is True:
        return column.cast(pa.int64())
    return pa.array([None if text is None else _integer(text) for text in _texts(column)], pa.int64())


def instants_us(column: pa.Array) -> pa.Array:
    """Microseconds since 1970. Times without a zone are UTC in typed columns, and none in texts; whole numbers are
    microseconds; more decimals than six are cut.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if not is_text(kind):
        return whole_numbers(column)
    if _may_be_plain_times(column):
        try:
            return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    return pa.array([None if text is None else _instant_us(text) for text in _texts(column)], pa.int64())


def flags(column: pa.Array) -> pa.Array:
    """True and false, also as the texts `true` and `false`."""
    if pa.types.is_boolean(column.type):
        return column
    if not is_text(column.type):
        return pa.nulls(len(column), pa.bool_())
    text = pc.ascii_trim(column, " ")
    return pc.if_else(pc.is_in(text, pa.array(["true", "false"])), pc.equal(text, "true"), None)


def names(raw: Raw, name: str) -> Names:
    """Texts; a number or a truth value is taken for its text, an object or a list for none."""
    column = raw.column(name)
    kind = column.type
    if pa.types.is_nested(kind):
        every = np.ones(len(column), np.bool_)
        return Names(pa.nulls(len(column), pa.string()), every, None)
    if raw.is_text:
        return Names(column.cast(pa.string()), raw.nested.get(name), None)
    if pa.types.is_string(kind) and _is_valid(column):
        return Names(column, None, None)
    if is_text(kind) or is_bytes(kind):
        odd = [value.is_valid and not is_utf8(bytes(value.as_buffer())) for value in column]
        return Names(pa.array([shown(value) for value in column], pa.string()), None, np.array(odd, np.bool_))
    return Names(pa.array([shown(value) for value in column], pa.string()), None, None)


def _texts(column: pa.Array) -> list[str | None]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [shown(value) for value in column]


def _is_valid(column: pa.Array) -> bool:
    """Whether all texts are UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def is_utf8(value: bytes) -> bool:
    """Whether the bytes are text."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole(value: object) -> int | None:
    """The number without a fraction, None where there is one, or it is no finite number of 64 bits."""
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == value and MIN <= number <= MAX else None


def _integer(text: str) -> int | None:
    text = text.strip(SPACE)
    digits = text.lstrip("+-").lstrip("0") or "0"
    if not _INTEGER.fullmatch(text) or len(digits) > _MOST_DIGITS:
        return None
    number = int(digits) * (-1 if text.startswith("-") else 1)
    return number if MIN <= number <= MAX else None


def _may_be_plain_times(column: pa.Array) -> bool:
    """Whether every text has a zone `Z` and at least a whole second: of those Arrow takes none that we do not."""
    is_long = pc.greater_equal(pc.binary_length(column), _WHOLE_SECOND)
    return pc.all(pc.and_(is_long, pc.ends_with(column, "Z"))).as_py() is True


@lru_cache(maxsize=2**16)
def _instant_us(text: str) -> int | None:
    text = text.strip(SPACE)
    if _INTEGER.fullmatch(text):
        return _integer(text)
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day, hour, minute, second, fraction, _, sign, offset_h, offset_min = found.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    behind_min = int(offset_h or 0) * 60 + int(offset_min or 0)
    if int(offset_min or 0) > 59 or behind_min > _MOST_OFFSET_H * 60:
        return None
    try:
        days = np.datetime64(day, "D").astype(np.int64)
    except ValueError:
        return None
    of_day_s = int(hour) * 3600 + int(minute) * 60 + int(second or 0) - behind_min * 60 * (-1 if sign == "-" else 1)
    return (int(days) * 86_400 + of_day_s) * MICROSECONDS_OF_S + int((fraction or "").ljust(6, "0")[:6])
