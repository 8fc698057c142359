"""Raw rows to inputs of the throttle protocol's machines (throttle-protocol 6), or to dead letters."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.protocol.schemas import INPUTS
from headgate.rows.faults import is_true, letters_of
from headgate.rows.json_lines import json_text
from headgate.rows.json_object import Number, object_of
from headgate.rows.raw import Raw
from headgate.rows.traffic import Parsed

UNPARSED = "the value is no JSON object of the protocol's inputs"


def other_types(found: pa.Schema) -> list[tuple[pa.Field, pa.Field]]:
    """Columns with other types than those of INPUTS, each with the one that it should be; a missing one is null."""
    wanted = [field for field in INPUTS if field.name in found.names]
    pairs = [(found.field(field.name), field) for field in wanted]
    return [(got, field) for got, field in pairs if not _fits(got.type, field.type)]


def parse_inputs(raw: Raw, until_ms: int) -> Parsed:
    """INPUTS, and dead letters: what is no JSON object of them, and rows from `until_ms` on.

    One that is dated ahead would make all that follow late.
    """
    rows, bad = _read(raw)
    at_ms = rows["at_ms"].combine_chunks()
    for place in np.flatnonzero(is_true(pc.greater_equal(at_ms, until_ms))).tolist():
        bad.setdefault(place, f"bad_time: got {at_ms[place]}, allowed is up to {until_ms - 1}")
    if not bad:
        return Parsed(rows, DEAD_LETTERS.empty_table())
    is_good = np.ones(len(raw), np.bool_)
    is_good[list(bad)] = False
    return Parsed(rows.filter(pa.array(is_good)), letters_of(raw, bad.items()))


def written(row: Mapping[str, Any]) -> str:
    """A row as a dead letter shows it: what it has, as JSON."""
    return json.dumps({name: value for name, value in row.items() if value is not None and name in INPUTS.names})


def _read(raw: Raw) -> tuple[pa.Table, dict[int, str]]:
    """A row of each, without values where it cannot be read, and why by place."""
    if not raw.is_text or all(raw.columns[field.name].type == field.type for field in INPUTS):
        columns = [_cast(raw.column(field.name), field.type) for field in INPUTS]
        return pa.table(columns, schema=INPUTS), dict(raw.defects)
    rows: list[dict[str, Any]] = []
    bad: dict[int, str] = {}
    for place, line in enumerate(raw.whole.to_pylist()):
        try:
            row = _row(line)
            if place in raw.defects:
                bad[place] = raw.defects[place]
        except _OtherTypeError:
            bad[place] = UNPARSED
        rows.append({} if place in bad else row)
    return pa.Table.from_pylist(rows, INPUTS), bad


class _OtherTypeError(Exception):
    """A JSON value of another type than its column."""


def _row(line: str | None) -> dict[str, Any]:
    value = object_of(line)
    if isinstance(value, str):
        raise _OtherTypeError
    return {field.name: _value(value.get(field.name), field.type) for field in INPUTS}


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return json_text(value)
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_integer(kind) and isinstance(value, Number) and value.lstrip("-").isdigit():
        number, most = int(value), 2 ** (kind.bit_width - 1)
        if -most <= number < most:
            return number
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_value(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    raise _OtherTypeError


def _fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type are values of the other: integers of any width are, and null where they are too
    large; fields of structs have to have their names and their order.
    """
    if pa.types.is_list(got) and pa.types.is_list(wanted):
        return _fits(got.value_type, wanted.value_type)
    if pa.types.is_struct(got) and pa.types.is_struct(wanted):
        fields = list(zip(got, wanted, strict=False))
        return got.num_fields == wanted.num_fields and all(
            one.name == other.name and _fits(one.type, other.type) for one, other in fields
        )
    are_numbers = pa.types.is_integer(wanted) and pa.types.is_integer(got)
    return bool(are_numbers or got.equals(wanted) or pa.types.is_null(got))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in a type that it fits; numbers that are too large are null."""
    if column.type == kind:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_list(kind):
        values = _cast(column.values, kind.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, kind, mask=column.is_null())
    if pa.types.is_struct(kind):
        fields = [_cast(column.field(number), field.type) for number, field in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    most = np.iinfo(kind.to_pandas_dtype())
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        values = [None if value is None or not most.min <= value <= most.max else value for value in column.to_pylist()]
        return pa.array(values, kind)
