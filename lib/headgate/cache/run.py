"""Rows of one broker in order through its cache, and what is told of them. Where batches end does not show."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headgate.cache.apply_events import Feeding, RowsOneByOne, eviction_row
from headgate.cache.events.dead_letters import letters_of
from headgate.cache.schemas import EVICTIONS
from headgate.cache.seconds import SECOND_US, end_of, next_before, opened, told
from headgate.cache.stored.state import NOT_YET, BrokerState, Change
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Removed
from headgate.core.numbers import HOUR_US


class BrokerRun:
    """A second ends, and a change of conf files is made, before the first accepted row that is past it.

    As an hour of event time begins, topics that hold nothing and have been silent for `silent_us` are forgotten.

    Arguments: `state`, changed in place; `changes` of the slot, by time; `evictions`, whether those are told;
    `silent_us`, 0: no topic is forgotten.
    Attributes: `metrics` and `letters`, rows for the tables; `evictions`, tables of them.
    Raises InvalidArgument for what a cache in array form cannot go on with: run the batch again with the cache as it
    was before, in readable form.
    """

    def __init__(self, state: BrokerState, changes: Sequence[Change], *, evictions: bool, silent_us: int) -> None:
        self._state = state
        self._cache = state.cache
        self._changes = changes
        self._are_told = evictions
        self._silent_us = silent_us
        self.metrics: list[dict[str, Any]] = []
        self.evictions: list[pa.Table] = []
        self.letters: list[dict[str, Any]] = []

    def take(self, table: pa.Table) -> None:
        """Feed ROWS, which are in the order of their time and number."""
        if not len(table):
            return
        rows, times_us = self._feeding(table), table["event_time_us"].to_numpy()
        start = 0
        while start < len(table):
            end = bisect_left(times_us, self._limit_us(), start)
            if end == start:
                if rows.accepts(start):
                    self._pass_to(int(times_us[start]))
                    continue
                end = start + 1
            self._take(rows, start, end, table)
            start = end

    def tell(self) -> None:
        """Tell of the open second as it is now, where that was not done."""
        second = self._state.second
        if second is not None and self._state.untold_us != NOT_YET:
            self.metrics += told(self._state.name, self._cache, second, self._cache.now_us)
            self._state.untold_us = NOT_YET

    def _feeding(self, table: pa.Table) -> Feeding:
        cache, broker = self._cache, self._state.name
        if isinstance(cache, Cache):
            return RowsOneByOne(cache, broker, table, is_told=self._are_told)
        from headgate.cache.apply_event_arrays import RowsInColumns  # noqa: PLC0415  loads the compiler

        return RowsInColumns(cache, broker, table, is_told=self._are_told)

    def _limit_us(self) -> int:
        """A row of this time, or a later one, comes after the open second, or after a change that is to be made."""
        if self._state.second is None:
            return NOT_YET
        end_us = end_of(self._state.second.number)
        change = self._next_change()
        return end_us if change is None else min(end_us, change.at_us)

    def _open_second(self) -> int | None:
        return None if self._state.second is None else self._state.second.number

    def _next_change(self) -> Change | None:
        made = self._state.changes
        return self._changes[made] if made < len(self._changes) else None

    def _pass_to(self, t_us: int) -> None:
        """End the second and make the changes that an accepted row of this time comes after."""
        ended = self._open_second()
        while (step := next_before(t_us, self._open_second(), self._next_change())) is not None:
            if isinstance(step, Change):
                self._note(self._cache.change(step.values, step.at_us).removed)
                self._state.changes += 1
            else:
                self._end_second(step)
        if self._state.second is None:
            self._forget(ended, t_us)
            self._state.second = opened(self._cache, t_us // SECOND_US)

    def _forget(self, ended: int | None, t_us: int) -> None:
        """Forget topics if the second that ended was of an earlier hour."""
        hour_us = t_us - t_us % HOUR_US
        if self._silent_us and ended is not None and end_of(ended) <= hour_us:
            self._cache.forget(hour_us - self._silent_us)

    def _end_second(self, end_us: int) -> None:
        second = self._state.second
        assert second is not None  # noqa: S101  the caller has looked
        self._note(self._cache.advance(end_us - 1).removed)
        self.metrics += told(self._state.name, self._cache, second, end_us)
        self._state.second, self._state.untold_us = None, NOT_YET

    def _take(self, rows: Feeding, start: int, end: int, table: pa.Table) -> None:
        """Feed rows of the open second, or of no second: refused ones, and those that come late."""
        fed = rows.feed(start, end)
        self.letters += letters_of(table, rows.row, fed.dead, self._cache.settings)
        self.evictions.append(fed.evictions)
        second = self._state.second
        if second is not None:
            second.topics.update(fed.topics)
            self._state.untold_us = self._cache.now_us

    def _note(self, removed: Iterable[Removed]) -> None:
        """Entries left with no row, but as time went on."""
        gone = list(removed)
        if self._are_told and gone:
            rows = [eviction_row(self._state.name, one, self._cache.now_us, None) for one in gone]
            self.evictions.append(pa.Table.from_pylist(rows, EVICTIONS))
        if self._state.second is not None:
            self._state.second.topics.update(one.topic for one in gone)
