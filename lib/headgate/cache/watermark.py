"""Which rows of a broker the watermark has reached; the others wait (entry-cache 2)."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache.stored.state import NOT_YET

_ORDER = ("event_time_us", "seq", "kind", "topic", "cursor", "ledger", "entry", "count")
"""(t, seq) orders the rows of a broker; the rest, rows that have both in common, of which the first one is taken."""


class Time(NamedTuple):
    """A time that all brokers have come to, NOT_YET: none. finish: nothing more comes up to it."""

    at_us: int = NOT_YET
    finish: bool = False

    @property
    def passed_us(self) -> int:
        """Up to which it lets go on what has not come so far: a finish is for those alone who have."""
        return NOT_YET if self.finish else self.at_us


class Waiting(Protocol):
    """high_us: the highest time of a broker's rows; done_us: the watermark; kept: ROWS above it."""

    high_us: int
    done_us: int
    kept: pa.Table


def due(state: Waiting, arrived: pa.Table, time: Time, hold_back_us: int) -> tuple[pa.Table, bool]:
    """The rows that the watermark has reached now, in their order, and whether the broker's input is at its end.

    The watermark is `hold_back_us` below the highest time of the broker's rows, or at a time that all have come to;
    with a finish it is at the highest time. What is above it waits in `state`. What comes behind it is due at once.
    """
    if len(arrived):
        state.high_us = max(state.high_us, pc.max(arrived["event_time_us"]).as_py())
    finish = time.finish and time.at_us >= state.high_us
    if state.high_us != NOT_YET:
        state.done_us = max(state.done_us, time.passed_us, state.high_us - (0 if finish else hold_back_us))
    rows = pa.concat_tables([state.kept, arrived])
    waits = pc.greater(rows["event_time_us"], state.done_us)
    state.kept = rows.filter(waits).combine_chunks()
    reached = rows.filter(pc.invert(waits)) if len(state.kept) else rows
    return in_order(reached).combine_chunks(), finish


def in_order(rows: pa.Table) -> pa.Table:
    """Rows of a broker in their order. Most come in it, and few share a place: columns of names are rarely compared."""
    times_us, seqs = (rows[name].to_numpy() for name in _ORDER[:2])
    if _increase(times_us, seqs):
        return rows
    order = np.lexsort((seqs, times_us))
    if _increase(times_us[order], seqs[order]):
        return rows.take(pa.array(order))
    return rows.sort_by([(name, "ascending") for name in _ORDER])


def _increase(times_us: npt.NDArray[np.int64], seqs: npt.NDArray[np.int64]) -> bool:
    is_later, is_same = times_us[1:] > times_us[:-1], times_us[1:] == times_us[:-1]
    return bool((is_later | (is_same & (seqs[1:] > seqs[:-1]))).all())
