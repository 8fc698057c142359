"""Raw rows to cache events that the entry cache's operator can take, or to dead letters (entry-cache 2).

What a row needs for its kind is judged by the core. Here a value that cannot be read becomes one that is out of range,
so that the core refuses the row where it needs that value; rows without a place in the order are refused here.
"""

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.schemas import EVENTS, ROWS
from headgate.conf import InputSettings
from headgate.core.cache.rows import EventKind
from headgate.core.numbers import MAX, MIN
from headgate.rows.faults import Faults, is_true, letters_of, nulls, read_place
from headgate.rows.raw import Flags, Raw
from headgate.rows.shown import shown, value_as_json
from headgate.rows.traffic import Parsed
from headgate.rows.values import names, whole_numbers

NAMES = ("kind", "topic", "cursor")
NUMBERS = ("ledger", "entry", "count")
SIZES = ROWS.field("sizes").type
_PLAIN_KINDS = pa.array([kind.value for kind in EventKind if kind is not EventKind.CONF])
_SIZES = re.compile(r"\s*\[\s*[0-9]+\s*(,\s*[0-9]+\s*)*\]\s*", re.ASCII)


def parse_cache_events(raw: Raw, settings: InputSettings) -> Parsed:
    """Rows of cache.schemas.ROWS, and dead letters of those that have no place in the order of their broker's rows."""
    faults = Faults(raw, EVENTS.names)
    time_us, seq, broker = read_place(raw, settings, faults)
    columns = {"event_time_us": time_us, "seq": seq, "broker": broker.texts, "conf": _json_texts(raw, "conf")}
    odd = np.zeros(len(raw), np.bool_)
    for name in NAMES:
        texts, wrong = _name(raw, name)
        columns[name] = texts
        odd |= wrong
    odd |= ~is_true(pc.is_in(columns["kind"], _PLAIN_KINDS)) & ~nulls(columns["kind"])
    for name in NUMBERS:
        numbers = whole_numbers(raw.column(name))
        wrong = nulls(numbers) & ~nulls(raw.column(name))
        columns[name] = pc.if_else(pa.array(wrong), -1, numbers)
        odd |= wrong
    columns["sizes"], wrong = _sizes(raw)
    odd |= wrong
    bad = faults.bad()
    columns["raw"] = pa.array([raw.text(at) if is_odd else None for at, is_odd in enumerate(odd.tolist())], pa.string())
    columns |= {"source": raw.source, "offset": raw.offset}
    rows = pa.table([columns[name] for name in ROWS.names], ROWS.names).cast(ROWS)
    if not bad.any():
        return Parsed(rows, DEAD_LETTERS.empty_table())
    reasons = ((place, f"bad_row: {faults.reason(place, _shown)}") for place in np.flatnonzero(bad).tolist())
    return Parsed(rows.filter(pa.array(~bad)), letters_of(raw, reasons))


def _name(raw: Raw, name: str) -> tuple[pa.Array, Flags]:
    """Texts, empty where they are wrong: an object, a list, or not UTF-8."""
    read = names(raw, name)
    wrong = np.zeros(len(raw), np.bool_)
    if read.is_nested is not None:
        wrong = read.is_nested & ~nulls(raw.column(name))
    if read.is_odd is not None:
        wrong = wrong | read.is_odd
    return pc.if_else(pa.array(wrong), "", read.texts) if wrong.any() else read.texts, wrong


def _sizes(raw: Raw) -> tuple[pa.Array, Flags]:
    """Lists of sizes, and rows that have something else there; of those, no sizes where not all are whole numbers."""
    column = raw.column("sizes")
    if not (pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type)):
        texts = _json_texts(raw, "sizes").to_pylist()
        wrong = [text is not None and not _SIZES.fullmatch(text) for text in texts]
        return pa.array([None if text is None else _list(text) for text in texts], SIZES), np.array(wrong, np.bool_)
    if column.null_count == 0 and _are_all_sizes(column.flatten()):
        return column.cast(SIZES), is_true(pc.equal(pc.list_value_length(column), 0))
    lists = column.to_pylist()
    wrong = [one is not None and (not one or not all(_is_number(size) and size >= 0 for size in one)) for one in lists]
    whole = [None if one is None else one if all(map(_is_number, one)) else [] for one in lists]
    return pa.array(whole, SIZES), np.array(wrong, np.bool_)


def _are_all_sizes(values: pa.Array) -> bool:
    least, most = pc.min_max(values).values()
    return values.null_count == 0 and (len(values) == 0 or (least.as_py() >= 0 and most.as_py() <= MAX))


def _is_number(size: int | None) -> bool:
    """Whether it is a number of 64 bits."""
    return size is not None and size <= MAX


def _list(text: str) -> list[int]:
    """The sizes of a JSON list; none where it is no list of whole numbers of 64 bits."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, brackets thousands deep
        return []
    if not isinstance(value, list) or not all(type(size) is int and MIN <= size <= MAX for size in value):
        return []
    return value


def _json_texts(raw: Raw, name: str) -> pa.Array:
    """A value of a list, a map or a struct as JSON; a text is taken for JSON, also that of a map's values."""
    column = raw.column(name)
    if raw.is_text and pa.types.is_string(column.type):
        return column
    if pa.types.is_map(column.type):
        return pa.array([_json_map(value) for value in column], pa.string())
    as_text = value_as_json if pa.types.is_nested(column.type) else shown
    return pa.array([as_text(value) for value in column], pa.string())


def _json_map(value: pa.MapScalar) -> str | None:
    if not value.is_valid:
        return None
    pairs = (f'"{shown(pair["key"])}":{shown(pair["value"]) or "null"}' for pair in value.values)
    return f"{{{','.join(pairs)}}}"


def _shown(text: str | None) -> str:
    return "null" if text is None else text
