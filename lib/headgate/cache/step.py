"""One step of a broker: rows and time in; metrics, evictions and dead letters out. No clock, no engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.events.validation import sifted
from headgate.cache.run import BrokerRun
from headgate.cache.schemas import EVICTIONS, METRICS
from headgate.cache.seconds import end_of
from headgate.cache.stored.state import BrokerState, Change
from headgate.cache.watermark import Time, due


@dataclass(frozen=True)
class CacheRules:
    """What every key goes by. hold_back_us: how far a row may be behind the highest time of its broker's rows.

    evictions: whether each entry that left is told. kernel: the form of the rules, numba or python. silent_us: how long
    nothing has come of a topic that is forgotten, 0: none is.
    """

    hold_back_us: int = 0
    evictions: bool = False
    kernel: str = "numba"
    silent_us: int = 0


class StepOutput(NamedTuple):
    """Rows for the tables."""

    metrics: pa.Table
    evictions: pa.Table
    dead_letters: pa.Table


def advance(
    state: BrokerState, arrived: pa.Table, time: Time, changes: Sequence[Change], rules: CacheRules
) -> StepOutput:
    """Feed what the watermark has reached in the order (event_time, seq), whatever came in which batch.

    A row that comes behind the watermark is late only where the rules say so: if a row after it was accepted. The open
    second is told of with a finish, and where time has come past its end without rows; later rows of it tell of it
    again.
    `state` is changed in place. Raises InvalidArgument as `BrokerRun`. Source: entry-cache 2, 4, 13
    """
    may_act, letters = sifted(arrived)
    rows, finish = due(state, may_act, time, rules.hold_back_us)
    run = BrokerRun(state, changes, evictions=rules.evictions, silent_us=rules.silent_us)
    run.take(rows)
    second = state.second
    if finish or (second is not None and time.passed_us >= end_of(second.number)):
        run.tell()
    return StepOutput(
        pa.Table.from_pylist(run.metrics, METRICS),
        pa.concat_tables([EVICTIONS.empty_table(), *run.evictions]),
        pa.Table.from_pylist(letters + run.letters, DEAD_LETTERS),
    )
