"""Rows of the job through the array form of the rules, in columns: no Python object a row on the good way."""

import numpy as np
import pyarrow as pa

from headgate.cache.apply_events import Fed, rows_of
from headgate.cache.events.columns import packed_with
from headgate.cache.events.event_columns import Ints
from headgate.cache.events.validation import events_of
from headgate.cache.schemas import EVICTIONS
from headgate.core.cache.reasons import Cause, DeadReason
from headgate.core.cache.rows import Row
from headgate.core.kernels.cache.broker import ArrayCache, PackedRows
from headgate.core.kernels.cache.types import CONF, NONE, Records

_CAUSES, _DEAD = pa.array([cause.value for cause in Cause]), tuple(DeadReason)


class RowsInColumns:
    """A broker's rows of a batch; see `apply_events`. is_told: whether evictions are.

    Raises InvalidArgument, also in `feed`, for numbers and settings that have no array form: the cache is of no use
    then, and the readable form takes the batch from its beginning.
    """

    def __init__(self, cache: ArrayCache, broker: str, table: pa.Table, *, is_told: bool) -> None:
        self._cache = cache
        self._broker = broker
        self._table = table
        self._is_told = is_told
        self._packed = packed_with(cache, events_of(table), self._rows_at)

    def accepts(self, place: int) -> bool:
        """Whether the row at a place passes the checks 1 of entry-cache 2 now."""
        row = self._packed.rows[place]
        return bool(row["kind"] >= 0 and (row["t_us"], row["seq"]) > (self._cache.now_us, self._cache.seq))

    def feed(self, start: int, end: int) -> Fed:
        """Feed the rows of these places."""
        cache, part = self._cache, self._packed.rows[start:end]
        changes = {place - start: conf for place, conf in self._packed.changes.items() if start <= place < end}
        cache.feed_rows(PackedRows(part, self._packed.sizes, changes))
        removed = cache.take_log()
        is_dead = part["dead"] != NONE
        dead = [(start + place, _DEAD[part["dead"][place]]) for place in np.flatnonzero(is_dead).tolist()]
        concerned = np.zeros(len(cache.topic_names), np.bool_)
        concerned[part["topic"][~is_dead & (part["kind"] != CONF)]] = True
        concerned[cache.arrays.spaces["topic"][removed["space"]]] = True
        topics = {cache.topic_names[number] for number in np.flatnonzero(concerned).tolist()}
        return Fed(dead, topics, self._evictions(part, removed) if self._is_told else EVICTIONS.empty_table())

    def row(self, place: int) -> Row:
        """The row at a place."""
        return rows_of(self._table.slice(place, 1))[0]

    def _rows_at(self, places: Ints) -> list[Row]:
        return rows_of(self._table.take(pa.array(places)))

    def _evictions(self, part: Records, removed: Records) -> pa.Table:
        """Each with the row whose end in the log is the first one behind it."""
        rows = part[np.searchsorted(part["removed"], np.arange(len(removed)), side="right")]
        spaces = self._cache.arrays.spaces[removed["space"]]
        names = pa.array(self._cache.topic_names, pa.string())
        columns = {
            "broker": pa.repeat(self._broker, len(removed)),
            "event_time": np.ascontiguousarray(rows["t_us"]),
            "seq": np.ascontiguousarray(rows["seq"]),
            "topic": names.take(pa.array(np.ascontiguousarray(spaces["topic"]))),
            "ledger": np.ascontiguousarray(spaces["ledger"]),
            "entry": np.ascontiguousarray(removed["number"]),
            "cause": _CAUSES.take(pa.array(np.ascontiguousarray(removed["cause"]))),
        }
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in EVICTIONS]
        return pa.table(arrays, EVICTIONS)
