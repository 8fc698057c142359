"""Producers that closed, so that a copy of their `open` brings none of them back (throttle-protocol 7.1, 9)."""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Flags, Ints

CLOSED = pa.schema([("connection", pa.string()), ("first", pa.int64()), ("last", pa.int64())])
"""Ids of producers that closed, from `first` to `last`, of connections that are open. Ids are not used again."""

Span = tuple[int, int]


def without_copies(closed: pa.Table, rows: pa.Table, fed: Ints, late: Flags) -> Ints:
    """The places to feed, but for late rows that open a producer which has closed."""
    if not len(closed):
        return fed
    opens = _of_kind(rows, fed[late[fed]], "open")
    if not len(opens):
        return fed
    pairs = _pairs(rows, opens)
    known = _spans(closed, {connection for connection, _ in pairs})
    is_copy = [any(first <= id_ <= last for first, last in known[connection]) for connection, id_ in pairs]
    copies: Ints = opens[np.array(is_copy, np.bool_)]
    return np.setdiff1d(fed, copies)


def remembered(closed: pa.Table, rows: pa.Table, fed: Ints, are_open: Callable[[], pa.Array]) -> pa.Table:
    """CLOSED with the producers that the rows at these places close; of connections that are open alone."""
    closing = _of_kind(rows, fed, "close_producer")
    if len(closing):
        by_connection: dict[str, set[int]] = defaultdict(set)
        for connection, id_ in _pairs(rows, closing):
            by_connection[connection].add(id_)
        closed = _joined(closed, by_connection)
    return closed.filter(pc.is_in(closed["connection"], value_set=are_open())) if len(closed) else closed


def _joined(closed: pa.Table, by_connection: dict[str, set[int]]) -> pa.Table:
    known = _spans(closed, by_connection)
    others = closed.filter(pc.invert(_are_of(closed, by_connection)))
    made = [
        {"connection": connection, "first": first, "last": last}
        for connection, ids in by_connection.items()
        for first, last in _merged([*known[connection], *((id_, id_) for id_ in ids)])
    ]
    return pa.concat_tables([others, pa.Table.from_pylist(made, CLOSED)]).combine_chunks()


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _spans(closed: pa.Table, connections: Iterable[str]) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = defaultdict(list)
    for row in closed.filter(_are_of(closed, connections)).to_pylist():
        spans[row["connection"]].append((row["first"], row["last"]))
    return spans


def _are_of(closed: pa.Table, connections: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(closed["connection"], value_set=pa.array(connections, pa.string()))


def _of_kind(rows: pa.Table, at: Ints, kind: str) -> Ints:
    """Of these places those of inputs of the kind that name a connection and a producer."""
    at = at[_flags(pc.equal(rows["kind"].take(pa.array(at)), kind).fill_null(False))]
    for name in ("connection", "producer_id"):
        at = at[_flags(pc.is_valid(rows[name].take(pa.array(at))))]
    return at


def _flags(column: pa.ChunkedArray) -> Flags:
    flags: Flags = column.to_numpy()
    return flags


def _pairs(rows: pa.Table, at: Ints) -> list[tuple[str, int]]:
    columns = [rows[name].take(pa.array(at)).to_pylist() for name in ("connection", "producer_id")]
    return list(zip(*columns, strict=True))
