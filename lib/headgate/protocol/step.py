"""One step of a key: inputs, marks and time in; decisions, counts and dead letters out. No clock, no engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Ints, Records
from headgate.core.protocol.settings import BrokerSettings, PauseMode
from headgate.errors import StateError
from headgate.protocol.closed_producers import remembered, without_copies
from headgate.protocol.fan_out import fanned_out
from headgate.protocol.marks import MARK, rows_of_marks
from headgate.protocol.schemas import ROWS
from headgate.protocol.silence import Silence
from headgate.protocol.state import NOT_YET, SlotState


@dataclass(frozen=True)
class ProtocolRules:
    """What every key goes by.

    settings: of connections that open from now on. delay_ms: how far rows of a source may be behind its highest time,
    from 1. sources: inputs, marks or both; each holds the others back until it has come as far.
    obedient: nobody says what clients there are or do: each connection of `marks` opens with its first row, and its
    client sends a receipt for every command at once. fan_out: a mark goes to all producers of its topic (`fan_out`).
    silent_ms: see `silence.Silence`; of obedient clients, who say no close, also of what is open, but with `fan_out`.
    """

    settings: BrokerSettings = field(default_factory=BrokerSettings)
    delay_ms: int = 1
    sources: frozenset[str] = frozenset({"inputs", "marks"})
    obedient: bool = False
    fan_out: bool = False
    silent_ms: int = 0


class Arrived(NamedTuple):
    """What came for a key in a batch, with the highest times of each source (state.NOT_YET: none).

    finish: nothing more comes up to the highest time.
    """

    inputs: pa.Table
    marks: pa.Table
    inputs_ms: int
    marks_ms: int
    finish: bool = False


class StepOutput(NamedTuple):
    """Rows for the tables."""

    decisions: pa.Table
    counts: pa.Table
    dead_letters: pa.Table


class Result(NamedTuple):
    """What kernels told, as records of `core.kernels.protocol.types`."""

    decisions: Records
    letters: Records
    counts: Records
    breaches: Records


Form = Callable[[SlotState, pa.Table, Ints, ProtocolRules, Silence], StepOutput]
"""Feeds every connection the ROWS at these places, in order, and lets its time come to the state's `done_ms`."""


def advance(state: SlotState, arrived: Arrived, rules: ProtocolRules, form: Form) -> tuple[StepOutput, int]:
    """Feed every connection what the watermark has reached, in order, and let its time come there.

    The watermark is `delay_ms` below the highest time of the source that is least far, or with a finish at it, and
    never goes back. What is above it waits in the state; what comes behind it is late, and acts at its machine's
    clock, but for publishes, which do not act: read at that clock they might break a promise that they kept; and for
    the `open` of a producer that has closed.
    `state` is changed in place. Returns also how many rows were late.
    Source: throttle-protocol 7.1
    """
    _refuse_another_fan_out(state, rules)
    rows = pa.concat_tables([state.kept, _inputs(arrived.inputs), rows_of_marks(arrived.marks)]).combine_chunks()
    before_ms = state.done_ms
    silence = Silence.before(before_ms, rules.silent_ms, ends_open=rules.obedient and not rules.fan_out)
    state.inputs_ms, state.marks_ms = max(state.inputs_ms, arrived.inputs_ms), max(state.marks_ms, arrived.marks_ms)
    reached_ms = min({"inputs": state.inputs_ms, "marks": state.marks_ms}[source] for source in rules.sources)
    if reached_ms != NOT_YET:
        state.done_ms = max(before_ms, reached_ms - (0 if arrived.finish else rules.delay_ms))
    waits = pc.fill_null(pc.greater(rows["at_ms"], state.done_ms), False)
    state.kept = rows.filter(waits).combine_chunks()
    is_late = pc.fill_null(pc.less_equal(rows["at_ms"], before_ms), False)
    late = pc.sum(is_late).as_py() or 0
    acts = pc.invert(pc.or_(waits, pc.and_(is_late, _are_publishes(rows))))
    fed = _ties_by_content(rows, np.flatnonzero(acts.to_numpy(zero_copy_only=False)))
    fed = without_copies(state.closed, rows, fed, is_late.to_numpy(zero_copy_only=False))
    all_rows, all_fed = rows, fed
    if rules.fan_out:
        needs_buckets = rules.settings.pause_mode is not PauseMode.SECOND_BOUNDARY
        rows, fed = fanned_out(
            state, rows, fed, silence.horizon_ms, needs_buckets=needs_buckets, obedient=rules.obedient
        )
    told = form(state, rows, fed, rules, silence)
    state.closed = remembered(state.closed, all_rows, all_fed, state.open_connections)
    silence.forget(state)
    return told, late


def _ties_by_content(rows: pa.Table, fed: Ints) -> Ints:
    """Marks with one event id in the order of what they say, whatever the order in which they came.

    A job writes no such marks, as a limiter marks a publish once. Both forms keep the order of rows that tie.
    """
    is_mark = pc.fill_null(pc.and_(rows["by_marks"], pc.equal(rows["kind"], MARK)), False)
    of_fed = rows.select(["event_id", "trips"]).take(pa.array(fed))
    marks = np.flatnonzero(is_mark.to_numpy(zero_copy_only=False)[fed])
    event_ids = of_fed["event_id"].take(pa.array(marks))
    if pc.count_distinct(event_ids).as_py() == len(marks):
        return fed
    said = list(zip(event_ids.to_pylist(), map(repr, of_fed["trips"].take(pa.array(marks)).to_pylist()), strict=True))
    by_content = marks[sorted(range(len(marks)), key=said.__getitem__)]
    fed[marks] = fed[by_content]
    return fed


def _are_publishes(rows: pa.Table) -> pa.ChunkedArray:
    """Publishes at a time that can be one."""
    return pc.fill_null(pc.and_(pc.equal(rows["kind"], "publish"), pc.greater_equal(rows["at_ms"], 0)), False)


def _refuse_another_fan_out(state: SlotState, rules: ProtocolRules) -> None:
    """Ordinals of the one mean nothing to the other, and connections lie under other keys."""
    if state.high_ms != NOT_YET and bool(state.fan_out) != rules.fan_out:
        began, now = ("topic", "tripping") if state.fan_out else ("tripping", "topic")
        raise StateError(
            f"[protocol] fan_out: got {now}, the checkpoint was begun with {began}: set it back, or start with a new "
            "--checkpoint and --output"
        )


def _inputs(rows: pa.Table) -> pa.Table:
    rows = rows.append_column(ROWS.field("at_ns"), pa.nulls(len(rows), pa.int64()))
    return rows.append_column(ROWS.field("by_marks"), pa.repeat(pa.scalar(False), len(rows)))
