"""A cache between batches: the plain data of `core.cache.state` as Arrow tables, and back.

What there is much of is columns: entries, handlers, marks, copies, reasons, receive buffers, and orders of entries.
The rest is one JSON text.
"""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headgate.core.cache.broker import Cache
from headgate.core.cache.state import dump, load

_LONG = pa.int64()
OF_TOPIC = {
    "entries": pa.schema(
        [
            *(("topic", pa.int32()), ("ledger", _LONG), ("number", _LONG), ("size", _LONG), ("handler", _LONG)),
            *(("ts_us", _LONG), ("requeues", _LONG), ("accessed", pa.bool_()), ("chunk", _LONG)),
        ]
    ),
    "chunks": pa.schema(
        [("topic", pa.int32()), ("source", _LONG), ("opened_us", _LONG), ("cap_bytes", _LONG), ("used_bytes", _LONG)]
    ),
    "marks": pa.schema(
        [("topic", pa.int32()), ("cursor", pa.string()), ("ledger", _LONG), ("number", _LONG), ("marked_us", _LONG)]
    ),
    "copies": pa.schema(
        [
            *(("topic", pa.int32()), ("cursor", pa.string()), ("ledger", _LONG), ("number", _LONG)),
            ("handlers", pa.list_(_LONG)),
        ]
    ),
    "reasons": pa.schema([("topic", pa.int32()), ("ledger", _LONG), ("number", _LONG), ("reason", pa.string())]),
}
"""Lists of each topic, a table each; topic is its place among those of the broker."""
_NUMBERS = pa.schema([("number", _LONG)])


@contextmanager
def without_collection() -> Iterator[None]:
    """While rows of a hundred thousand entries are made, Python's collector would walk through them again and again.

    It takes a third of the time without.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@without_collection()
def tables_of(cache: Cache) -> list[pa.Table]:
    """The cache as tables, of which `cache_of` makes one that behaves as it."""
    plain = dump(cache)
    topics, policy = plain["topics"], plain["policy"]
    lists = [_of_topics(name, schema, topics) for name, schema in OF_TOPIC.items()]
    orders = {name: policy.pop(name) for name, value in list(policy.items()) if _are_numbers(value)}
    numbers = [_column(values) for values in (plain.pop("handlers"), *orders.values())]
    texts = [json.dumps(plain), json.dumps(list(orders))]
    return [pa.table({"text": texts}), *lists, *numbers]


@without_collection()
def cache_of(tables: Iterator[pa.Table]) -> Cache:
    """The cache that `tables_of` made the next tables of."""
    plain: dict[str, Any]
    plain, names = map(json.loads, next(tables)["text"].to_pylist())
    for name in OF_TOPIC:
        _to_topics(name, next(tables), plain["topics"])
    plain["handlers"] = next(tables)["number"].to_pylist()
    for name in names:
        plain["policy"][name] = next(tables)["number"].to_pylist()
    return load(plain)


def _are_numbers(value: object) -> bool:
    """Whether it is a list of numbers alone, as orders of entries are."""
    return isinstance(value, list) and set(map(type, value)) <= {int}


def _column(values: Sequence[int]) -> pa.Table:
    return pa.table([pa.array(values, _LONG)], _NUMBERS)


def _of_topics(name: str, schema: pa.Schema, topics: list[dict[str, Any]]) -> pa.Table:
    """The list of that name of every topic, taken out of it."""
    lists = [topic.pop(name) for topic in topics]
    places = [place for place, rows in enumerate(lists) for _ in rows]
    columns = list(zip(*(row for rows in lists for row in rows), strict=True)) or [()] * (len(schema) - 1)
    arrays = [pa.array(values, field.type) for values, field in zip([places, *columns], schema, strict=True)]
    return pa.table(arrays, schema)


def _to_topics(name: str, table: pa.Table, topics: list[dict[str, Any]]) -> None:
    for topic in topics:
        topic[name] = []
    places, *columns = (column.to_pylist() for column in table.columns)
    lists = [topic[name] for topic in topics]
    for place, row in zip(places, zip(*columns, strict=True), strict=True):
        lists[place].append(row)
