"""Columns of cache events as the rows of the array form: a batch without Python in between (entry-cache 2)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.cache.events.event_columns import OF_CURSOR, EventColumns, Flags, Ints, ints_of
from headgate.core.cache.rows import WITH_RANGE, EventKind, Row
from headgate.core.kernels.cache.broker import ArrayCache, PackedRows
from headgate.core.kernels.cache.types import NONE, ROW


def packed(cache: ArrayCache, events: pa.RecordBatch) -> PackedRows | None:
    """The rows as `cache.pack` makes them of rows; None where one of them is not well formed, or is of kind conf.

    events: t_us, seq, kind, topic, cursor, ledger, entry, count and sizes, as `core.cache.rows.Row` has them.
    """
    columns = EventColumns(events)
    return _packed(cache, events, columns) if columns.well_formed().all() else None


def packed_with(cache: ArrayCache, events: pa.RecordBatch, rows_at: Callable[[Ints], Sequence[Row]]) -> PackedRows:
    """As `packed`, of all rows: those that are not well formed, or of kind conf, go through `cache.pack` one by one.

    rows_at: the rows at these places. Raises InvalidArgument for numbers that the array form cannot calculate with.
    """
    columns = EventColumns(events)
    is_good = columns.well_formed()
    if is_good.all():
        return _packed(cache, events, columns)
    good, odd = np.flatnonzero(is_good), np.flatnonzero(~is_good)
    some = events.take(pa.array(good))
    plain, others = _packed(cache, some, EventColumns(some)), cache.pack(rows_at(odd))
    others.rows["first_size"] += len(plain.sizes)
    rows = np.empty(len(events), ROW)
    rows[good], rows[odd] = plain.rows, others.rows
    changes = {int(odd[place]): conf for place, conf in others.changes.items()}
    return PackedRows(rows, np.concatenate([plain.sizes, others.sizes]), changes)


def _packed(cache: ArrayCache, events: pa.RecordBatch, columns: EventColumns) -> PackedRows:
    rows = np.zeros(len(events), ROW)
    names, codes = _texts(events["topic"])
    topic = np.array([cache.topic_number(name) for name in names], np.int64)[codes]
    rows["t_us"], rows["seq"], rows["kind"], rows["topic"] = columns.t_us, columns.seq, columns.kind, topic
    of_cursor, has_position = columns.are(*OF_CURSOR), columns.has_position
    rows["cursor"][of_cursor] = _of_topics(topic, *_texts(events["cursor"]), of_cursor, cache.cursor_number)
    rows["space"] = NONE
    at = has_position | columns.are(EventKind.LEDGER_DELETE)
    ledgers, ledger = np.unique(columns.ledger, return_inverse=True)
    rows["space"][at] = _of_topics(topic, ledgers.tolist(), ledger, at, cache.space_number)
    rows["entry"] = np.where(has_position, columns.entry, 0)
    rows["count"] = np.where(columns.are(*WITH_RANGE), columns.count, 1)
    rows["first_size"], rows["has_sizes"] = columns.first_size, columns.has_sizes
    return PackedRows(rows, columns.sizes, {})


def _texts(column: pa.Array) -> tuple[list[Any], Ints]:
    """Distinct texts in the order of their first rows, and each row's place among them, -1 for null."""
    codes = column.dictionary_encode()
    return codes.dictionary.to_pylist(), ints_of(codes.indices, -1)


def _of_topics(topic: Ints, names: Sequence[Any], codes: Ints, at: Flags, number_of: Callable[[int, Any], int]) -> Ints:
    """Numbers of what belongs to a topic, a cursor or a ledger, of the rows `at`; new ones in the order of rows."""
    keys = topic[at] * (len(names) + 1) + codes[at]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    topics, own = topic[at][first].tolist(), codes[at][first].tolist()
    for place in np.argsort(first).tolist():
        numbers[place] = number_of(topics[place], names[own[place]])
    return numbers[inverse]
