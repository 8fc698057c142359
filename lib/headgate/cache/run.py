"""Rows of one broker in order through its cache, and what is told of them. Where batches end does not show."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.cache.feeding import Feed
from headgate.cache.letters import letter_of
from headgate.cache.schemas import ROWS
from headgate.cache.seconds import SECOND_US, opened, told
from headgate.cache.state import NEVER, BrokerState, Change
from headgate.core.cache.checks import refusal
from headgate.core.cache.rows import Removed, Row

_FIELDS = ROWS.names[: len(Row._fields)]
_PLACE = ("broker", "raw", "source", "offset")


class BrokerRun:
    """A second ends, and a change of conf files is made, before the first accepted row that is past it.

    Arguments: `state`, changed in place; `changes` of the slot, by time; `feed`, the form of the rules.
    Attributes: `metrics`, `evictions`, `letters`, rows for the tables; `late`, rows that were refused for it.
    """

    def __init__(self, state: BrokerState, changes: Sequence[Change], feed: Feed) -> None:
        self._state = state
        self._cache = state.cache
        self._changes = changes
        self._feed = feed
        self.metrics: list[dict[str, Any]] = []
        self.evictions: list[dict[str, Any]] = []
        self.letters: list[dict[str, Any]] = []

    def take(self, table: pa.Table) -> None:
        """Feed ROWS, which are in the order of their time and number."""
        rows = rows_of(table)
        times_us = [row.t_us for row in rows]
        place = {name: table[name] for name in _PLACE}
        start = 0
        while start < len(rows):
            end = bisect_left(times_us, self._limit_us(), start)
            if end == start:
                row = rows[start]
                if refusal(row, self._cache.now_us, self._cache.seq, self._cache.settings) is None:
                    self._pass_to(row.t_us)
                    continue
                end = start + 1
            self._take(rows, start, end, place)
            start = end

    def tell(self) -> None:
        """Tell of the open second as it is now, where that was not done."""
        second = self._state.second
        if second is not None and self._state.untold_us != NEVER:
            self.metrics += told(self._state.name, self._cache, second, self._cache.now_us)
            self._state.untold_us = NEVER

    def _limit_us(self) -> int:
        """A row of this time, or a later one, comes after the open second, or after a change that is to be made."""
        if self._state.second is None:
            return NEVER
        end_us = (self._state.second.number + 1) * SECOND_US
        change = self._next_change()
        return end_us if change is None else min(end_us, change.at_us)

    def _next_change(self) -> Change | None:
        made = self._state.changes
        return self._changes[made] if made < len(self._changes) else None

    def _pass_to(self, t_us: int) -> None:
        """End the second and make the changes that an accepted row of this time comes after."""
        while True:
            second, change = self._state.second, self._next_change()
            end_us = None if second is None else (second.number + 1) * SECOND_US
            if end_us is not None and end_us <= t_us and (change is None or end_us <= change.at_us):
                self._end_second(end_us)
            elif change is not None and change.at_us <= t_us:
                self._note(self._cache.change(change.values, change.at_us).removed)
                self._state.changes += 1
            else:
                break
        if second is None:
            self._state.second = opened(self._cache, t_us // SECOND_US)

    def _end_second(self, end_us: int) -> None:
        second = self._state.second
        assert second is not None  # noqa: S101  the caller has looked
        self._note(self._cache.advance(end_us - 1).removed)
        self.metrics += told(self._state.name, self._cache, second, end_us)
        self._state.second, self._state.untold_us = None, NEVER

    def _take(self, rows: Sequence[Row], start: int, end: int, place: Mapping[str, pa.ChunkedArray]) -> None:
        """Feed rows of the open second, or of no second: refused ones, and those that come late."""
        some = rows[start:end]
        fed = self._feed(self._cache, some)
        for at, reason in fed.dead:
            where = {name: column[start + at].as_py() for name, column in place.items()}
            self.letters.append(letter_of(some[at], where, reason, self._cache.settings))
        for at, gone in fed.removed:
            self.evictions.append(self._eviction(gone, some[at].t_us, some[at].seq))
        second, dead = self._state.second, {at for at, _ in fed.dead}
        if second is not None:
            second.topics.update(row.topic for at, row in enumerate(some) if row.topic is not None and at not in dead)
            second.topics.update(gone.topic for _, gone in fed.removed)
            self._state.untold_us = self._cache.now_us

    def _note(self, removed: Iterable[Removed]) -> None:
        """Entries left with no row, but as time went on."""
        for gone in removed:
            self.evictions.append(self._eviction(gone, self._cache.now_us, None))
            if self._state.second is not None:
                self._state.second.topics.add(gone.topic)

    def _eviction(self, gone: Removed, t_us: int, seq: int | None) -> dict[str, Any]:
        named = {"topic": gone.topic, "ledger": gone.ledger, "entry": gone.entry, "cause": gone.cause.value}
        return {"broker": self._state.name, "event_time": t_us, "seq": seq, **named}


def rows_of(table: pa.Table) -> list[Row]:
    """ROWS as the rules take them."""
    *columns, conf = (table[name].to_pylist() for name in _FIELDS)
    return list(map(Row, *columns, map(_object, conf)))


def _object(text: str | None) -> Any:
    """What a JSON text says, None for one that is none: the rules refuse that where they need it."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
