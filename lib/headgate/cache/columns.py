"""Columns of cache events as the rows of the array form: a batch without Python in between (entry-cache 2)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.cache.checks import COUNT_MAX, SIZE_MAX_BYTES
from headgate.core.cache.rows import WITH_RANGE, WITH_SIZES, WITHOUT_CURSOR, Kind, Row
from headgate.core.kernels.cache.broker import ArrayCache, PackedRows
from headgate.core.kernels.cache.limits import NUMBER_LIMIT, TIME_LIMIT_US
from headgate.core.kernels.cache.types import NONE, ROW

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PLAIN = [kind for kind in Kind if kind is not Kind.CONF]
_KINDS = pa.array([str(kind) for kind in Kind])
_NUMBER_OF = {kind: number for number, kind in enumerate(Kind)}
_OF_CURSOR = [kind for kind in Kind if kind not in WITHOUT_CURSOR]
_AT = (Kind.ADD, Kind.MARK, Kind.READ, Kind.REPLAY_ADD, Kind.REPLAY_READ, Kind.RELEASE)
_MAYBE_AT = (Kind.OPEN, Kind.MOVE)
_ONE = (Kind.OPEN, Kind.MOVE, Kind.MARK, Kind.REPLAY_READ)


def packed(cache: ArrayCache, events: pa.RecordBatch) -> PackedRows | None:
    """The rows as `cache.pack` makes them of rows; None where one of them is not well formed, or is of kind conf.

    events: t_us, seq, kind, topic, cursor, ledger, entry, count and sizes, as `core.cache.rows.Row` has them.
    """
    columns = _Columns(events)
    return _packed(cache, events, columns) if columns.well_formed().all() else None


def packed_with(cache: ArrayCache, events: pa.RecordBatch, rows_at: Callable[[Ints], Sequence[Row]]) -> PackedRows:
    """As `packed`, of all rows: those that are not well formed, or of kind conf, go through `cache.pack` one by one.

    rows_at: the rows at these places. Raises InvalidArgument for numbers that the array form cannot calculate with.
    """
    columns = _Columns(events)
    is_good = columns.well_formed()
    if is_good.all():
        return _packed(cache, events, columns)
    good, odd = np.flatnonzero(is_good), np.flatnonzero(~is_good)
    some = events.take(pa.array(good))
    plain, others = _packed(cache, some, _Columns(some)), cache.pack(rows_at(odd))
    others.rows["first_size"] += len(plain.sizes)
    rows = np.empty(len(events), ROW)
    rows[good], rows[odd] = plain.rows, others.rows
    changes = {int(odd[place]): conf for place, conf in others.changes.items()}
    return PackedRows(rows, np.concatenate([plain.sizes, others.sizes]), changes)


def _packed(cache: ArrayCache, events: pa.RecordBatch, columns: "_Columns") -> PackedRows:
    rows = np.zeros(len(events), ROW)
    names, codes = _texts(events["topic"])
    topic = np.array([cache.topic_number(name) for name in names], np.int64)[codes]
    rows["t_us"], rows["seq"], rows["kind"], rows["topic"] = columns.t_us, columns.seq, columns.kind, topic
    of_cursor, has_position = columns.are(*_OF_CURSOR), columns.has_position
    rows["cursor"][of_cursor] = _of_topics(topic, *_texts(events["cursor"]), of_cursor, cache.cursor_number)
    rows["space"] = NONE
    at = has_position | columns.are(Kind.LEDGER_DELETE)
    ledgers, ledger = np.unique(columns.ledger, return_inverse=True)
    rows["space"][at] = _of_topics(topic, ledgers.tolist(), ledger, at, cache.space_number)
    rows["entry"] = np.where(has_position, columns.entry, 0)
    rows["count"] = np.where(columns.are(*WITH_RANGE), columns.count, 1)
    rows["first_size"], rows["has_sizes"] = columns.first_size, columns.has_sizes
    return PackedRows(rows, columns.sizes, {})


class _Columns:
    """Columns as numbers, with 0 or -1 for null as their kind needs it."""

    def __init__(self, events: pa.RecordBatch) -> None:
        self._events = events
        kinds = pc.index_in(events["kind"], value_set=_KINDS)
        self.kind = _ints(kinds, -1)
        self.t_us, self.seq = _ints(events["t_us"], TIME_LIMIT_US), _ints(events["seq"], -1)
        self.ledger, self.entry = _ints(events["ledger"], -1), _ints(events["entry"], -1)
        self.count = _ints(events["count"], 1)
        lists = events["sizes"]
        self._lengths = _ints(pc.list_value_length(lists), 0)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        self.sizes = _ints(lists.values.slice(offsets[0], offsets[-1] - offsets[0]), 0)
        self.first_size = offsets[:-1] - offsets[0]
        self._row_of_size = np.repeat(np.arange(len(events)), np.diff(offsets))
        self.has_sizes = self.are(*WITH_SIZES) & (self._lengths == self.count)
        is_nowhere = pc.and_(events["ledger"].is_null(), events["entry"].is_null())
        self._is_nowhere: Flags = is_nowhere.to_numpy(zero_copy_only=False)
        self.has_position = self.are(*_AT) | (self.are(*_MAYBE_AT) & ~self._is_nowhere)

    def are(self, *kinds: Kind) -> Flags:
        """Rows of these kinds."""
        return np.isin(self.kind, [_NUMBER_OF[kind] for kind in kinds])

    def well_formed(self) -> Flags:
        """Rows that pass the checks 1 of entry-cache 2 but for being late, and fit; those of kind conf do not."""
        flags: Flags = np.logical_and.reduce(self._checks())
        are_sizes = (self.sizes >= 1) & (self.sizes <= SIZE_MAX_BYTES)
        of_rows = self._row_of_size[~are_sizes]
        flags[of_rows[self.are(*WITH_SIZES)[of_rows]]] = False
        return flags

    def _checks(self) -> Sequence[Flags]:
        ranges, sized = self.are(*WITH_RANGE), self.are(*WITH_SIZES)
        is_short = (self._lengths == 1) | (self._lengths == self.count)
        at_ledger = self.has_position | self.are(Kind.LEDGER_DELETE)
        return (
            self.are(*_PLAIN),
            (self.t_us > -TIME_LIMIT_US) & (self.t_us < TIME_LIMIT_US) & (self.seq >= 0),
            _are_names(self._events["topic"]),
            _are_names(self._events["cursor"]) | ~self.are(*_OF_CURSOR),
            ~at_ledger | ((self.ledger >= 0) & (self.ledger < NUMBER_LIMIT)),
            ~self.has_position | ((self.entry >= 0) & (self.entry <= NUMBER_LIMIT - COUNT_MAX)),
            ~ranges | ((self.count >= 1) & (self.count <= COUNT_MAX)),
            ~self.are(*_ONE) | (self.count == 1),
            ~sized | (is_short & (self._lengths > 0)),
            ~self.are(Kind.REPLAY_READ) | (self._lengths == 1),
        )


def _ints(column: pa.Array, null: int) -> Ints:
    numbers: Ints = column.fill_null(null).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _are_names(column: pa.Array) -> Flags:
    flags: Flags = pc.greater(pc.binary_length(column), 0).fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _texts(column: pa.Array) -> tuple[list[Any], Ints]:
    """Distinct texts in the order of their first rows, and each row's place among them, -1 for null."""
    codes = column.dictionary_encode()
    return codes.dictionary.to_pylist(), _ints(codes.indices, -1)


def _of_topics(topic: Ints, names: Sequence[Any], codes: Ints, at: Flags, number_of: Callable[[int, Any], int]) -> Ints:
    """Numbers of what belongs to a topic, a cursor or a ledger, of the rows `at`; new ones in the order of rows."""
    keys = topic[at] * (len(names) + 1) + codes[at]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    topics, own = topic[at][first].tolist(), codes[at][first].tolist()
    for place in np.argsort(first).tolist():
        numbers[place] = number_of(topics[place], names[own[place]])
    return numbers[inverse]
