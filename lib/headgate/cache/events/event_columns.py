"""Columns of cache events as numbers, and which rows have what their kind needs (entry-cache 2)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.cache.checks import COUNT_MAX, SIZE_MAX_BYTES
from headgate.core.cache.rows import WITH_RANGE, WITH_SIZES, WITHOUT_CURSOR, EventKind
from headgate.core.kernels.cache.limits import NUMBER_LIMIT, TIME_LIMIT_US

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PLAIN = [kind for kind in EventKind if kind is not EventKind.CONF]
_KINDS = pa.array([str(kind) for kind in EventKind])
_NUMBER_OF = {kind: number for number, kind in enumerate(EventKind)}
OF_CURSOR = [kind for kind in EventKind if kind not in WITHOUT_CURSOR]
_AT = (EventKind.ADD, EventKind.MARK, EventKind.READ, EventKind.REPLAY_ADD, EventKind.REPLAY_READ, EventKind.RELEASE)
_MAYBE_AT = (EventKind.OPEN, EventKind.MOVE)
_ONE = (EventKind.OPEN, EventKind.MOVE, EventKind.MARK, EventKind.REPLAY_READ)


class EventColumns:
    """Columns as numbers, with 0 or -1 for null as their kind needs it."""

    def __init__(self, events: pa.RecordBatch) -> None:
        self._events = events
        kinds = pc.index_in(events["kind"], value_set=_KINDS)
        self.kind = ints_of(kinds, -1)
        self.t_us, self.seq = ints_of(events["t_us"], TIME_LIMIT_US), ints_of(events["seq"], -1)
        self.ledger, self.entry = ints_of(events["ledger"], -1), ints_of(events["entry"], -1)
        self.count = ints_of(events["count"], 1)
        lists = events["sizes"]
        self._lengths = ints_of(pc.list_value_length(lists), 0)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        self.sizes = ints_of(lists.values.slice(offsets[0], offsets[-1] - offsets[0]), 0)
        self.first_size = offsets[:-1] - offsets[0]
        self._row_of_size = np.repeat(np.arange(len(events)), np.diff(offsets))
        self.has_sizes = self.are(*WITH_SIZES) & (self._lengths == self.count)
        is_nowhere = pc.and_(events["ledger"].is_null(), events["entry"].is_null())
        self._is_nowhere: Flags = is_nowhere.to_numpy(zero_copy_only=False)
        self.has_position = self.are(*_AT) | (self.are(*_MAYBE_AT) & ~self._is_nowhere)

    def are(self, *kinds: EventKind) -> Flags:
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
        at_ledger = self.has_position | self.are(EventKind.LEDGER_DELETE)
        return (
            self.are(*_PLAIN),
            (self.t_us > -TIME_LIMIT_US) & (self.t_us < TIME_LIMIT_US) & (self.seq >= 0),
            _are_names(self._events["topic"]),
            _are_names(self._events["cursor"]) | ~self.are(*OF_CURSOR),
            ~at_ledger | ((self.ledger >= 0) & (self.ledger < NUMBER_LIMIT)),
            ~self.has_position | ((self.entry >= 0) & (self.entry <= NUMBER_LIMIT - COUNT_MAX)),
            ~ranges | ((self.count >= 1) & (self.count <= COUNT_MAX)),
            ~self.are(*_ONE) | (self.count == 1),
            ~sized | (is_short & (self._lengths > 0)),
            ~self.are(EventKind.REPLAY_READ) | (self._lengths == 1),
        )


def ints_of(column: pa.Array, null: int) -> Ints:
    numbers: Ints = column.fill_null(null).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _are_names(column: pa.Array) -> Flags:
    flags: Flags = pc.greater(pc.binary_length(column), 0).fill_null(False).to_numpy(zero_copy_only=False)
    return flags
