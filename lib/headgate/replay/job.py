"""A replay from its routed rows to its tables: the same steps under every engine."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple, Protocol

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.errors import InputError
from headgate.replay.asked import ReplayJob
from headgate.replay.plan import Plan
from headgate.replay.run import Trace
from headgate.replay.summary import Summary
from headgate.replay.tables import ReplayTables

MOST_ROUNDS = 31 * 86_400
_LETTERS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Replayed:
    """What came of a replay."""

    tables: ReplayTables
    trace: Trace
    rows: int
    dead_letters: int


Heard = Callable[[Trace, int, int, int, Sequence[str]], None]
"""Takes the trace, its publishes, bad rows, rows of other kinds and files that are left out, once they are counted."""


class BrokerRows(NamedTuple):
    """How many routed rows there are of a broker (None: dead letters), with the first and last event time, us."""

    broker: str | None
    is_other: bool
    first_us: int
    last_us: int
    rows: int


class Routed(Protocol):
    """All rows of an input with their keys (stream.ROUTED), wherever an engine keeps them."""

    @property
    def lost(self) -> pa.Table:
        """Dead letters of files that are left out."""

    def counted(self) -> Iterable[BrokerRows]:
        """A row each broker and kind."""

    def letters(self) -> Iterator[str]:
        """Dead letters of rows, as JSON."""

    def results(self, plans: Sequence[Plan], trace: Trace) -> Iterator[tuple[int, str, pa.Table]]:
        """What comes out of the rules (stream.REPLAYED): number of the plan, kind and rows."""


def write_replay(job: ReplayJob, plans: Sequence[Plan], routed: Routed, heard: Heard) -> Replayed:
    """Replay routed rows under every plan and write the tables.

    The same input gives the same rows, whatever the engine, the partitions, batches and files and the order of rows in
    them. Dispatches are counted and not replayed; files that are left out have a dead letter. Raises InputError for an
    input without any publish or over too long a time, TableError for the tables.
    """
    trace, rows, bad, others = _trace_of(job, routed.counted())
    bad += len(routed.lost)
    heard(trace, rows, bad, others, routed.lost["source"].to_pylist())
    check_span(trace, plans)
    tables = ReplayTables(job.output)
    tables.append("dead_letters", routed.lost)
    letters = routed.letters()
    while some := [json.loads(letter) for letter in islice(letters, _LETTERS_AT_ONCE)]:
        tables.append("dead_letters", pa.Table.from_pylist(some, DEAD_LETTERS))
    _write_results(routed.results(plans, trace), plans, tables)
    tables.flush()
    return Replayed(tables, trace, rows, bad)


def _trace_of(job: ReplayJob, counted: Iterable[BrokerRows]) -> tuple[Trace, int, int, int]:
    """The trace, its publishes, bad rows, and rows of other kinds."""
    found = list(counted)
    others = sum(one.rows for one in found if one.is_other)
    bad = sum(one.rows for one in found if one.broker is None)
    publishes = [one for one in found if not one.is_other and one.broker is not None]
    if not publishes:
        raise InputError(
            f"--input: {job.input} has no publish that can be replayed ({bad:,} bad rows, {others:,} of other kinds); "
            f"give recorded traffic, in the right --format (now {job.format})"
        )
    brokers = tuple(sorted(str(one.broker) for one in publishes))
    trace = Trace(brokers, min(one.first_us for one in publishes), max(one.last_us for one in publishes))
    return trace, sum(one.rows for one in publishes), bad, others


def check_span(trace: Trace, plans: Sequence[Plan]) -> None:
    """Refuse a trace with more rounds than a replay could go through: mostly one row with a wrong year."""
    rounds = (trace.last_us - trace.first_us) // 1000 // min(plan.round_ms for plan in plans)
    if rounds > MOST_ROUNDS:
        first, last = (datetime.fromtimestamp(at / 1e6, UTC).isoformat() for at in (trace.first_us, trace.last_us))
        raise InputError(
            f"--input: event times go from {first} to {last}, {rounds:,} rounds of trigger.interval_ms; allowed: up to "
            f"{MOST_ROUNDS:,}, a month of seconds. Set [input] event_time_from and event_time_until in headgate.toml "
            "to the time to replay: other rows become dead letters"
        )


def _write_results(results: Iterable[tuple[int, str, pa.Table]], plans: Sequence[Plan], tables: ReplayTables) -> None:
    summaries = [Summary(plan.name, plan.quotas()) for plan in plans]
    for conf, kind, rows in results:
        if kind in {"replay_seconds", "replay_limits"}:
            tables.append(kind, rows.append_column("conf", pa.repeat(plans[conf].name, len(rows))))
        else:
            summaries[conf].add(kind, rows)
    for summary in summaries:
        tables.append("replay_groups", summary.groups())
        tables.append("replay_tenants", summary.tenants())
