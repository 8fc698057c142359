"""One step of a broker: rows and time in; metrics, evictions and dead letters out. No clock, no engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache.feeding import Feed, feed_rows
from headgate.cache.run import BrokerRun
from headgate.cache.schemas import EVICTIONS, METRICS
from headgate.cache.seconds import SECOND_US
from headgate.cache.state import NEVER, BrokerState, Change
from headgate.throttle.schemas import DEAD_LETTERS

_ORDER = ("event_time_us", "seq", "kind", "topic", "cursor", "ledger", "entry", "count")
"""(t, seq) orders the rows of a broker; the rest, rows that have both in common, of which the first one is taken."""


@dataclass(frozen=True)
class CacheRules:
    """What every key goes by. hold_back_us: how far a row may be behind the highest time of its broker's rows.

    evictions: whether each entry that left is told.
    """

    hold_back_us: int = 0
    evictions: bool = False
    feed: Feed = feed_rows


class Time(NamedTuple):
    """A time that all brokers have come to, NEVER: none. finish: nothing more comes up to it."""

    at_us: int = NEVER
    finish: bool = False


class Told(NamedTuple):
    """Rows for the tables."""

    metrics: pa.Table
    evictions: pa.Table
    dead_letters: pa.Table


def advance(state: BrokerState, arrived: pa.Table, time: Time, changes: Sequence[Change], rules: CacheRules) -> Told:
    """Feed what the watermark has reached in the order (event_time, seq), whatever came in which batch.

    The watermark is `hold_back_us` below the highest time of the broker's rows, or at a time that all have come to;
    with a finish it is at the highest time. What is above it waits in the state. What comes behind it is fed when it
    comes, and is late only where the rules say so: if a row after it was accepted. The open second is told of with a
    finish, and where time has come past its end without rows; later rows of it tell of it again.
    `state` is changed in place. Source: entry-cache 2, 4, 13
    """
    if len(arrived):
        state.high_us = max(state.high_us, pc.max(arrived["event_time_us"]).as_py())
    finish = time.finish and time.at_us >= state.high_us
    if state.high_us != NEVER:
        passed_us = NEVER if time.finish else time.at_us
        state.done_us = max(state.done_us, passed_us, state.high_us - (0 if finish else rules.hold_back_us))
    rows = pa.concat_tables([state.kept, arrived])
    waits = pc.greater(rows["event_time_us"], state.done_us)
    state.kept = rows.filter(waits).combine_chunks()
    run = BrokerRun(state, changes, rules.feed)
    run.take(rows.filter(pc.invert(waits)).sort_by([(name, "ascending") for name in _ORDER]).combine_chunks())
    second = state.second
    if finish or (second is not None and state.done_us >= (second.number + 1) * SECOND_US):
        run.tell()
    return Told(
        pa.Table.from_pylist(run.metrics, METRICS),
        pa.Table.from_pylist(run.evictions if rules.evictions else [], EVICTIONS),
        pa.Table.from_pylist(run.letters, DEAD_LETTERS),
    )
