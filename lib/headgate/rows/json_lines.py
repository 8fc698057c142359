"""Lines of JSON to raw rows: a block at a time in columns; a block with an odd line, line by line. Both say the same.

An odd line is one that is no JSON object of values of the expected types, without a key twice, and nothing else: also
good lines are odd, if a number stands there as text.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from headgate.rows.json_object import JSON_SPACE, MOST_DEPTH, Number, object_of, opened
from headgate.rows.raw import Flags

LINES_AT_ONCE = 2048
HALF_CHARACTER = r"a name holds half of a character: \ud800 to \udbff and \udc00 to \udfff stand in pairs"
_MOST_BYTES = 2**31 - 2
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_NUMBER = r"[:\[,\s-](?:NaN|Inf)"


class JsonBlock(NamedTuple):
    """What stands in some lines, so many as `size`.

    columns: of the names that were asked for; texts where a line was odd. nested: rows that have an object or a list
    there, by column of text. defects: why a line has no columns, by its place.
    """

    size: int
    columns: dict[str, pa.Array]
    nested: dict[str, Flags]
    defects: dict[int, str]


def json_blocks(lines: pa.Array, schemas: Sequence[pa.Schema]) -> Iterator[JsonBlock]:
    """The lines in blocks, in their order.

    lines: texts, of which null is no JSON. schemas: types that the columns may have, the likeliest first, each with the
    same names.
    """
    waiting: list[pa.Table] = []
    for start in range(0, len(lines), LINES_AT_ONCE):
        block = lines.slice(start, LINES_AT_ONCE)
        table = _in_columns(block, schemas)
        if waiting and (table is None or table.schema != waiting[0].schema):
            yield _joined(waiting)
            waiting = []
        if table is None:
            yield _line_by_line(block, schemas[0].names)
        else:
            waiting.append(table)
    if waiting:
        yield _joined(waiting)


def _joined(tables: list[pa.Table]) -> JsonBlock:
    table = pa.concat_tables(tables).combine_chunks()
    return JsonBlock(len(table), {name: table[name].chunk(0) for name in table.column_names}, {}, {})


def _in_columns(lines: pa.Array, schemas: Sequence[pa.Schema]) -> pa.Table | None:
    """None where a line is odd, or the reader would take what the other way does not."""
    if not _are_objects(lines):
        return None
    data = b"\n".join(lines.cast(pa.binary()).to_pylist())
    if len(data) > _MOST_BYTES or _may_differ(lines, data):
        return None
    for schema in schemas:
        try:
            table: pa.Table = read_json(
                pa.BufferReader(data),
                read_options=ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError):
            continue
        if len(table) == len(lines):
            return table
    return None


def _are_objects(lines: pa.Array) -> bool:
    """Whether each line begins and ends as one object does: then none can hold a part of one.

    The reader does not look at line ends, and is not safe with other values than objects.
    """
    trimmed = pc.ascii_trim(lines, JSON_SPACE)
    are = pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))
    return not lines.null_count and pc.all(are).as_py() is True


def _may_differ(lines: pa.Array, data: bytes) -> bool:
    """Whether a line may have what the two ways read differently: depth, and numbers that are none."""
    if (b"NaN" in data or b"Inf" in data) and pc.any(pc.match_substring_regex(lines, _NO_NUMBER)).as_py():
        return True
    in_all = data.count(b"[") + data.count(b"{")
    return in_all >= len(lines) + MOST_DEPTH and max(map(opened, lines.to_pylist())) > MOST_DEPTH


def _line_by_line(lines: pa.Array, names: Sequence[str]) -> JsonBlock:
    texts: dict[str, list[str | None]] = {name: [None] * len(lines) for name in names}
    nested = {name: np.zeros(len(lines), np.bool_) for name in names}
    defects: dict[int, str] = {}
    for place, line in enumerate(lines.to_pylist()):
        value = object_of(line)
        if isinstance(value, str):
            defects[place] = value
            continue
        found = {name: value[name] for name in names if name in value}
        shown = {name: json_text(one) for name, one in found.items()}
        if any(text is not None and _SURROGATE.search(text) for text in shown.values()):
            defects[place] = HALF_CHARACTER
            continue
        for name, text in shown.items():
            texts[name][place] = text
            nested[name][place] = isinstance(found[name], dict | list)
    columns = {name: pa.array(column, pa.string()) for name, column in texts.items()}
    return JsonBlock(len(lines), columns, nested, defects)


def json_text(value: Any) -> str | None:
    """A value as the text of a column: a string as it is, anything else as JSON."""
    if type(value) is str or type(value) is Number or value is None:
        return value if value is None else str(value)
    return _json(value)


def _json(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(key)}:{_json(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


_quoted: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
