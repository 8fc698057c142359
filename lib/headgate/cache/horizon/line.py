"""The rows of one broker in one line, before they part to its shards: what is refused, and where rounds end.

That a row is late, which second it is in, and which round, is a matter of all rows of the broker.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.cache.apply_events import rows_of
from headgate.cache.events.dead_letters import letter_of, place_of
from headgate.cache.events.validation import sifted
from headgate.cache.horizon.schemas import ITEMS, Mark
from headgate.cache.schemas import ROWS
from headgate.cache.seconds import SECOND_US, end_of, next_before
from headgate.cache.stored.state import NEVER, Change
from headgate.cache.watermark import Time, due
from headgate.core.cache.checks import refusal
from headgate.core.cache.horizon.rounds import Round
from headgate.core.cache.horizon.shard import shard_of
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Kind, Row
from headgate.core.cache.settings import CacheSettings
from headgate.throttle.schemas import DEAD_LETTERS


@dataclass
class LineState:
    """A broker's line between batches.

    high_us, done_us, kept, changes, untold_us: as of `state.BrokerState`. now_us, seq: of the last row that passed.
    round, number: the one that is open. place: of the next item. second: the open one, None before the first row.
    refused: rows by reason.
    """

    name: str
    settings: CacheSettings
    high_us: int = NEVER
    done_us: int = NEVER
    kept: pa.Table = field(default_factory=ROWS.empty_table)
    changes: int = 1
    untold_us: int = NEVER
    now_us: int = NEVER
    seq: int = -1
    round: Round = field(default_factory=Round)
    number: int = 0
    place: int = 0
    second: int | None = None
    refused: Counter[str] = field(default_factory=Counter)


class InLine(NamedTuple):
    """ITEMS for the shards, and rows that were refused."""

    items: pa.Table
    dead_letters: pa.Table


def line_up(state: LineState, arrived: pa.Table, time: Time, changes: Sequence[Change], hold_back_us: int) -> InLine:
    """Put what the watermark has reached into the line, whatever came in which batch.

    The open second is told of as `step.advance` does it. `state` is changed in place. Source: entry-cache 2, 14
    """
    may_act, letters = sifted(arrived)
    rows, finish = due(state, may_act, time, hold_back_us)
    run = _LineRun(state, changes)
    run.take(rows)
    if finish or (state.second is not None and time.passed_us >= end_of(state.second)):
        run.tell()
    return InLine(run.items(rows), pa.Table.from_pylist(letters + run.letters, DEAD_LETTERS))


class _LineRun:
    """A round ends before the row that it has no room for, and before a change of settings; then a second may end."""

    def __init__(self, state: LineState, changes: Sequence[Change]) -> None:
        self._state = state
        self._changes = changes
        self._marks: list[dict[str, Any]] = []
        self._taken: list[tuple[int, int, int, int | None]] = []
        self.letters: list[dict[str, Any]] = []

    def take(self, table: pa.Table) -> None:
        for at, row in enumerate(rows_of(table)):
            refused = self._refusal(row)
            if refused is None:
                self._make_way(row)
                refused = self._refusal(row) if row.kind == Kind.CONF else None
            if refused is None:
                self._accept(at, row)
            else:
                self._refuse(row, refused, place_of(table, at))

    def tell(self) -> None:
        """Let shards tell of the open second as it is now, where that was not done."""
        state = self._state
        if state.second is not None and state.untold_us != NEVER:
            self._mark(Mark.TELL, state.now_us, self._of_second())
            state.untold_us = NEVER

    def items(self, rows: pa.Table) -> pa.Table:
        """What the line got longer by; rows: those that were taken."""
        marks = pa.Table.from_pylist(self._marks, ITEMS)
        if not self._taken:
            return marks
        at, places, rounds, shards = zip(*self._taken, strict=True)
        taken = rows.take(pa.array(np.array(at)))
        columns = {"place": pa.array(places), "round": pa.array(rounds), "shard": pa.array(shards, pa.int32())}
        for name, column in columns.items():
            taken = taken.append_column(name, column)
        return pa.concat_tables([marks, taken], promote_options="default").select(ITEMS.names).cast(ITEMS)

    def _refusal(self, row: Row) -> DeadReason | None:
        return refusal(row, self._state.now_us, self._state.seq, self._state.settings)

    def _make_way(self, row: Row) -> None:
        """End the round, the second, and make the changes that an accepted row comes after."""
        state = self._state
        if state.round.ends_before(row, state.settings):
            self._end_round()
        while (step := next_before(row.t_us, state.second, self._next_change())) is not None:
            if isinstance(step, Change):
                self._change(step)
            else:
                self._mark(Mark.SECOND, step, self._of_second())
                state.second, state.untold_us = None, NEVER
        if state.second is None:
            state.second = row.t_us // SECOND_US
            self._mark(Mark.OPEN, state.second * SECOND_US)

    def _next_change(self) -> Change | None:
        made = self._state.changes
        return self._changes[made] if made < len(self._changes) else None

    def _change(self, change: Change) -> None:
        state = self._state
        if state.round.rows:
            self._end_round()
        self._mark(Mark.CHANGE, change.at_us, change.values)
        state.settings = state.settings.changed(change.values)
        if change.at_us > state.now_us:
            state.now_us, state.seq = change.at_us, -1
        state.changes += 1

    def _accept(self, at: int, row: Row) -> None:
        state = self._state
        state.now_us, state.seq = row.t_us, row.seq
        if row.kind == Kind.CONF:
            state.settings = state.settings.changed(row.conf)
        shard = None if row.kind == Kind.CONF else shard_of(row.topic, state.settings.shards)
        self._taken.append((at, self._next_place(), state.number, shard))
        state.untold_us = state.now_us
        state.round.take(row)
        if state.round.ends_now(state.settings):
            self._end_round()

    def _refuse(self, row: Row, reason: DeadReason, where: dict[str, Any]) -> None:
        state = self._state
        self.letters.append(letter_of(row, where, reason, state.settings))
        state.refused[reason.value] += 1
        if state.second is not None:
            state.untold_us = state.now_us

    def _end_round(self) -> None:
        state = self._state
        self._mark(Mark.END, state.round.last_us, {"rows": state.round.rows})
        state.round = Round()
        state.number += 1

    def _of_second(self) -> dict[str, Any]:
        return {"dead_letters": dict(self._state.refused)}

    def _mark(self, mark: Mark, at_us: int, values: dict[str, Any] | None = None) -> None:
        place, state = self._next_place(), self._state
        named = {"broker": state.name, "place": place, "round": state.number, "mark": mark.value, "at_us": at_us}
        self._marks.append(named | ({} if values is None else {"values": json.dumps(values)}))

    def _next_place(self) -> int:
        self._state.place += 1
        return self._state.place - 1
