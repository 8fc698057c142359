"""Values as dead letters show them: in the words of Spark's casts to text, and of its JSON."""

import base64
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIXED_FROM, _FIXED_UNTIL = 1e-3, 1e7
"""Numbers that Java writes without an exponent."""


def shown(value: pa.Scalar) -> str | None:
    """The value as text, None for null; what is not UTF-8 is replaced."""
    return _shown(value) if value.is_valid else None


def row_as_json(row: pa.StructScalar) -> str:
    """The row as a JSON object with all of its columns."""
    return _object(row, with_nulls=True)


def value_as_json(value: pa.Scalar) -> str | None:
    """A list, a struct or a map as JSON, None for null; fields of structs that are null are left out."""
    return _json(value, with_nulls=False) if value.is_valid else None


def double_text(number: float) -> str:
    """A double as Java writes it: 5.0, 1.0E300, NaN, Infinity."""
    return _float_text(number, repr(abs(number)))


def _float_text(number: float, digits: str) -> str:
    """digits: the shortest that read back as the number, without a sign."""
    sign = "-" if math.copysign(1, number) < 0 and not math.isnan(number) else ""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return f"{sign}Infinity"
    if number == 0:
        return f"{sign}0.0"
    exact = Decimal(digits)
    if _FIXED_FROM <= abs(number) < _FIXED_UNTIL:
        text = f"{exact:f}"
        return f"{sign}{text}" if "." in text else f"{sign}{text}.0"
    figures = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{exact.adjusted()}"


def _number(value: pa.Scalar) -> str:
    kind = value.type
    if pa.types.is_floating(kind):
        number = value.as_py()
        digits = str(np.float32(abs(number))) if pa.types.is_float32(kind) else repr(abs(number))
        return _float_text(number, digits)
    if pa.types.is_decimal(kind):
        return f"{value.as_py():f}"
    return str(value.as_py())


def _time(value: pa.Scalar, *, separator: str, zone: str, decimals: bool) -> str:
    """A timestamp in UTC. decimals: always six; else those that are not zeros at the end."""
    text: str = pc.cast(value.cast(pa.timestamp("us"), safe=False), pa.string()).as_py()
    day, _, clock = text.partition(" ")
    seconds, _, fraction = clock.partition(".")
    fraction = fraction.ljust(6, "0") if decimals else fraction.rstrip("0")
    return f"{day}{separator}{seconds}{'.' if fraction else ''}{fraction}{zone}"


def _bytes(value: pa.Scalar) -> bytes:
    return bytes(value.as_buffer())


def _text(value: pa.Scalar) -> str:
    return _bytes(value).decode(errors="replace")


def _shown(value: pa.Scalar) -> str:
    kind = value.type
    if pa.types.is_dictionary(kind):
        return _or_null(value.value)
    if is_text(kind) or is_bytes(kind):
        return _text(value)
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_timestamp(kind):
        return _time(value, separator=" ", zone="", decimals=False)
    if pa.types.is_map(kind):
        pairs = (f"{_or_null(pair['key'])} -> {_or_null(pair['value'])}" for pair in _items(value))
        return f"{{{', '.join(pairs)}}}"
    if _is_list(kind):
        return f"[{', '.join(map(_or_null, _items(value)))}]"
    if pa.types.is_struct(kind):
        return f"{{{', '.join(_or_null(value[number]) for number in range(kind.num_fields))}}}"
    return _number(value) if _is_number(kind) else _other(value)


def _other(value: pa.Scalar) -> str:
    """Any other value; days and times that Python has none for, as Arrow writes them."""
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):
        return str(pc.cast(value, pa.string()).as_py())


def _or_null(value: pa.Scalar) -> str:
    return _shown(value) if value.is_valid else "null"


def _json(value: pa.Scalar, *, with_nulls: bool) -> str:
    kind = value.type
    if not value.is_valid:
        return "null"
    if pa.types.is_dictionary(kind):
        return _json(value.value, with_nulls=with_nulls)
    if is_text(kind):
        return _quoted(_text(value))
    if is_bytes(kind):
        return _quoted(base64.b64encode(_bytes(value)).decode())
    if pa.types.is_timestamp(kind):
        return _quoted(_time(value, separator="T", zone="Z" if kind.tz else "", decimals=True))
    if pa.types.is_map(kind):
        pairs = (f"{_quoted(_or_null(pair['key']))}:{_json(pair['value'], with_nulls=True)}" for pair in _items(value))
        return f"{{{','.join(pairs)}}}"
    if _is_list(kind):
        return f"[{','.join(_json(item, with_nulls=with_nulls) for item in _items(value))}]"
    if pa.types.is_struct(kind):
        return _object(value, with_nulls=with_nulls)
    if pa.types.is_boolean(kind):
        return _shown(value)
    if not _is_number(kind):
        return _quoted(_other(value))
    text = _number(value)
    return text if text.strip("-")[0].isdigit() else _quoted(text)


def _object(row: pa.StructScalar, *, with_nulls: bool) -> str:
    values = ((field.name, row[number]) for number, field in enumerate(row.type))
    pairs = (
        f"{_quoted(name)}:{_json(value, with_nulls=with_nulls)}"
        for name, value in values
        if with_nulls or value.is_valid
    )
    return f"{{{','.join(pairs)}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _items(value: Any) -> list[pa.Scalar]:
    return list(value.values)


def _is_list(kind: pa.DataType) -> bool:
    views = pa.types.is_list_view, pa.types.is_large_list_view
    return any(is_(kind) for is_ in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, *views))


def is_text(kind: pa.DataType) -> bool:
    """Whether the type is one of those that hold text."""
    return any(is_(kind) for is_ in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether the type is one of those that hold bytes."""
    of_any_size = pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view
    return pa.types.is_fixed_size_binary(kind) or any(is_(kind) for is_ in of_any_size)


def _is_number(kind: pa.DataType) -> bool:
    return any(is_(kind) for is_ in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
