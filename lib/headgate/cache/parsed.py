"""Parsed rows of cache events (spark.cache_parse), made whole on the workers. No engine: Arrow in, Arrow out."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache.schemas import ROWS
from headgate.core.numbers import MAX, MIN
from headgate.throttle.columns import encoded
from headgate.throttle.routing import BLANK_LINE, line_numbers

SIZES = ROWS.field("sizes").type
COLUMNS = [*ROWS.names, "defect"]


def whole_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """ROWS and `defect`, why a row has no place in the order of its broker's rows, null for others.

    Rows with a `file` are its lines, in order, and are counted here; those that are blank are left out. sizes: JSON
    texts or lists come, lists go.
    """
    lines: dict[str, int] = {}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if "file" in rows.column_names:
            rows = _with(rows, "offset", pa.array(line_numbers(rows["file"], lines)))
        sizes = rows["sizes"]
        rows = _with(rows, "sizes", (lists_of if pa.types.is_list(sizes.type) else sizes_of)(sizes))
        is_row = pc.not_equal(rows["defect"], BLANK_LINE).fill_null(True)
        yield rows.select(COLUMNS).filter(is_row)


def sizes_of(texts: pa.ChunkedArray) -> pa.Array:
    """Lists of sizes out of JSON texts; no sizes at all where a text is no list of whole numbers of 64 bits."""
    distinct, codes = encoded(texts)
    lists = pa.array([_sizes(text) for text in distinct.to_pylist()], SIZES)
    return lists.take(pa.array(codes, mask=codes < 0))


def lists_of(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of sizes as they came; no sizes at all where one of them is null."""
    if not any(chunk.values.null_count for chunk in lists.chunks):
        return lists
    sizes = [None if one is None else [] if None in one else one for one in lists.to_pylist()]
    return pa.chunked_array([pa.array(sizes, SIZES)])


def _with(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, column)


def _sizes(text: str) -> list[int]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, brackets thousands deep
        return []
    if not isinstance(value, list) or not all(type(size) is int and MIN <= size <= MAX for size in value):
        return []
    return value
