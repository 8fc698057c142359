"""A sweep from its input to its tables: the same steps under every engine."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.forms import warm_up
from headgate.conf import InputSettings
from headgate.core.kernels.cache.limits import refusal_of
from headgate.errors import InputError, TableError
from headgate.sizing.asked import SweepJob
from headgate.sizing.combinations import Combination
from headgate.sizing.instants import Span
from headgate.sizing.measure import OF_ALL_ROWS, SCALED, WORK
from headgate.sizing.runs import RESULT, Outcome, Run, with_totals
from headgate.store_errors import said

MEASURED = (*SCALED, *OF_ALL_ROWS, *WORK)
CACHE_SWEEP = pa.schema(
    [
        ("combination", pa.int64()),
        ("broker", pa.string()),
        ("is_present", pa.bool_()),
        ("policy", pa.string()),
        ("max_bytes", pa.int64()),
        ("changed", pa.string()),
        ("conf", pa.string()),
        ("sample", pa.int64()),
        *((name, pa.int64()) for name in MEASURED),
        ("cpu_s", pa.float64()),
    ]
)
TABLES = {"cache_sweep": CACHE_SWEEP, "dead_letters": DEAD_LETTERS}


_LETTERS_AT_ONCE = 10_000

ANY_TIME = InputSettings(
    event_time_from=datetime(1970, 1, 1, tzinfo=UTC), event_time_until=datetime(2262, 1, 1, tzinfo=UTC)
)
"""Public traces count from 0; nothing here waits for a time, so none is too early or too late."""


@dataclass(frozen=True)
class StagedTrace:
    """What was read. folders: by broker. rows: all in order. left_out: of kind conf. bad: rows that are dead letters.

    lost: dead letters of files that cannot be read to their end, of which no row is there.
    """

    folders: dict[str, str]
    span: Span
    rows: int
    left_out: int
    bad: int
    lost: pa.Table


@dataclass(frozen=True)
class Swept:
    """What came of a sweep. rows: of cache_sweep, by combination and broker; broker None is all of them together."""

    trace: StagedTrace
    rows: list[dict[str, Any]]


class EventCount(NamedTuple):
    """How many rows there are of a kind (event, conf, bad) and broker, with the first and last time, us."""

    what: str
    broker: str | None
    first_us: int
    last_us: int
    rows: int


Ended = Callable[[int, int], None]
"""Is told of how many runs out of how many have ended."""


class SweepEngine(Protocol):
    """What reads the trace and runs the runs."""

    def staged(self, job: SweepJob) -> AbstractContextManager[StagedTrace]:
        """The trace in its folders, which are removed in the end."""

    def outcomes(self, runs: Sequence[Run], ended: Ended) -> Iterator[Outcome]:
        """What comes of all runs, in any order."""


def run_sweep(
    engine: SweepEngine,
    job: SweepJob,
    combinations: Sequence[Combination],
    staged: Callable[[StagedTrace], None],
    ended: Ended,
) -> Swept:
    """Run every combination over every broker and write the tables.

    The same input gives the same rows but for `cpu_s`, whatever the engine, partitions, files and order of rows.

    staged: is told of the trace once it is in order, before the first run begins; ended: of runs. Raises InputError for
    an input that cannot be read, TableError for the tables.
    """
    with engine.staged(job) as trace:
        staged(trace)
        append(job.output, "dead_letters", trace.lost)
        runs = [
            Run(one, broker, folder, trace.span, job.every)
            for one in combinations
            for broker, folder in trace.folders.items()
        ]
        rows = _taken(job, engine.outcomes(runs, ended))
    rows = with_totals(rows)
    append(job.output, "cache_sweep", pa.Table.from_pylist(rows, CACHE_SWEEP))
    return Swept(trace, rows)


def load_rules(combinations: Iterable[Combination]) -> None:
    """Compile what the runs load from disk, once in an installation; nothing where no combination has an array form."""
    if any(refusal_of(one.settings) is None for one in combinations):
        warm_up()


def _taken(job: SweepJob, outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """The rows of `cache_sweep`; dead letters are written."""
    rows: list[dict[str, Any]] = []
    letters: list[dict[str, Any]] = []
    for kind, content in outcomes:
        (rows if kind == RESULT else letters).append(json.loads(content))
        if len(letters) >= _LETTERS_AT_ONCE:
            append(job.output, "dead_letters", pa.Table.from_pylist(letters, DEAD_LETTERS))
            letters = []
    append(job.output, "dead_letters", pa.Table.from_pylist(letters, DEAD_LETTERS))
    return rows


def trace_of(job: SweepJob, counts: Iterable[EventCount], lost: pa.Table) -> StagedTrace:
    """What is known of a trace. Raises InputError for one without any event."""
    found = list(counts)
    events = {one.broker: one for one in found if one.what == "event" and one.broker is not None}
    left_out, bad = (sum(one.rows for one in found if one.what == what) for what in ("conf", "bad"))
    if not events:
        raise InputError(
            f"--input: no event of a cache could be read ({bad:,} bad rows, {left_out:,} rows of kind conf); give "
            "recorded cache events, in the right --format, or publishes with --assume-lag 0s,1m"
        )
    span = Span(min(one.first_us for one in events.values()), max(one.last_us for one in events.values()))
    folders = {broker: f"{job.trace}/number={number}" for number, broker in enumerate(sorted(events))}
    return StagedTrace(folders, span, sum(one.rows for one in events.values()), left_out, bad, lost)


def append(output: str, name: str, rows: pa.Table) -> None:
    """Rows to a table, which is there afterwards even if there are none. Raises TableError."""
    try:
        write_deltalake(f"{output}/{name}", pa.table(rows, schema=TABLES[name]), mode="append")
    except (DeltaError, OSError) as error:
        message = f"the table {output}/{name} cannot be written: {said(error)}; give an --output that can be written"
        raise TableError(message) from error
