"""A cache in array form between batches: its pools as bytes, field by field, and its names.

A field a cell, so that state says what it holds; like numbers beside each other compress well, and it takes no walk.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.core.kernels.cache.broker import ArrayCache

_FIELDS = pa.schema(
    [("pool", pa.string()), ("field", pa.string()), ("type", pa.string()), ("bytes", pa.large_binary())]
)
_CURSORS = pa.schema([("topic", pa.int64()), ("cursor", pa.string())])
_PLAIN = ""
"""The field of a pool without fields."""


def tables_of_arrays(cache: ArrayCache) -> list[pa.Table]:
    """The cache as tables, of which `arrays_of_tables` makes one that behaves as it."""
    stored = cache.dump()
    arrays: dict[str, Any] = stored["arrays"]
    shapes = {name: held.shape for name, held in arrays.items()}
    text = json.dumps({"settings": stored["settings"], "shapes": shapes})
    topics, cursors = zip(*stored["cursors"], strict=True) if stored["cursors"] else ((), ())
    cells = [
        (name, field, of_field.dtype.str, np.ascontiguousarray(of_field).tobytes())
        for name, held in arrays.items()
        for field, of_field in _fields(held)
    ]
    columns = list(zip(*cells, strict=True))
    return [
        pa.table({"text": [text]}),
        pa.table({"topic": pa.array(stored["topics"], pa.string())}),
        pa.table([pa.array(topics, pa.int64()), pa.array(cursors, pa.string())], _CURSORS),
        pa.table([pa.array(column, kind) for column, kind in zip(columns, _FIELDS.types, strict=True)], _FIELDS),
    ]


def arrays_of_tables(tables: Iterator[pa.Table]) -> ArrayCache:
    """The cache that `tables_of_arrays` made the next tables of; what leaves it is listed."""
    plain = json.loads(next(tables)["text"][0].as_py())
    topics, cursors = next(tables)["topic"].to_pylist(), next(tables)
    found: dict[str, list[tuple[str, str, Any]]] = {name: [] for name in plain["shapes"]}
    for pool, field, kind, held in zip(*next(tables).columns, strict=True):
        found[pool.as_py()].append((field.as_py(), kind.as_py(), held.as_buffer()))
    arrays = {name: _pool(found[name], shape) for name, shape in plain["shapes"].items()}
    names = list(zip(cursors["topic"].to_pylist(), cursors["cursor"].to_pylist(), strict=True))
    stored = {"settings": plain["settings"], "topics": topics, "cursors": names, "arrays": arrays}
    return ArrayCache.load(stored, is_logged=True)


def _fields(held: Any) -> Iterator[tuple[str, Any]]:
    if held.dtype.names is None:
        yield _PLAIN, held
    else:
        yield from ((name, held[name]) for name in held.dtype.names)


def _pool(fields: list[tuple[str, str, Any]], shape: list[int]) -> Any:
    columns = {name: np.frombuffer(held, kind).reshape(shape) for name, kind, held in fields}
    if _PLAIN in columns:
        return columns[_PLAIN]
    pool = np.zeros(shape, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        pool[name] = column
    return pool
