"""A sweep in this process and a few beside it, without Spark: for traces that fit into memory."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache import schemas
from headgate.cache.events.parse import parse_cache_events
from headgate.core.cache.traces.sampling import SampledRows
from headgate.core.kernels.cache.limits import refusal_of
from headgate.engines.processes import outcomes, prepare
from headgate.engines.sizes import here
from headgate.rows.files import File, input_files, whole_files
from headgate.rows.kinds import INPUT
from headgate.rows.traffic import parse_traffic
from headgate.sizing.asked import SweepJob
from headgate.sizing.assumed import events_of
from headgate.sizing.runs import Outcome, Run, outcomes_of
from headgate.sizing.sweep import ANY_TIME, Ended, EventCount, StagedTrace, append, trace_of
from headgate.sizing.trace import EVENTS, READ, ROWS_AT_ONCE, cut, generated, read

_ORDER = [(name, "ascending") for name in ("t_us", "seq", "source", "offset")]


class LocalSweep:
    """Reads the trace in memory, and runs as many runs at once as there are cores (sizing.sweep.SweepEngine)."""

    @contextmanager
    def staged(self, job: SweepJob) -> Iterator[StagedTrace]:
        """Raises InputError for an input that cannot be read, or that is too large for one machine's memory."""
        prepare()
        try:
            yield _stage(job)
        finally:
            shutil.rmtree(job.trace, ignore_errors=True)

    def outcomes(self, runs: Sequence[Run], ended: Ended) -> Iterator[Outcome]:
        """Those in plain Python, which take longest, are begun first."""
        longest_first = sorted(runs, key=lambda run: refusal_of(run.combination.settings) is None)
        for done, (_, found) in enumerate(outcomes(_all_of, longest_first), 1):
            yield from found
            ended(done, len(runs))


def _all_of(run: Run) -> list[Outcome]:
    return list(outcomes_of(run))


def _stage(job: SweepJob) -> StagedTrace:
    """Each broker's rows in order to a folder of its own, or one entry in so many of them."""
    rows, lost = _read(job)
    is_bad = pc.is_valid(rows["defect"])
    is_event = pc.and_(pc.invert(is_bad), pc.fill_null(pc.not_equal(rows["kind"], "conf"), True))
    events = rows.filter(is_event)
    trace = trace_of(job, _counts(rows, is_bad, is_event), lost)
    bad = rows.filter(is_bad)
    letters = pa.table([bad["defect" if name == "reason" else name] for name in DEAD_LETTERS.names], DEAD_LETTERS.names)
    append(job.output, "dead_letters", letters.cast(DEAD_LETTERS))
    for broker, folder in trace.folders.items():
        _write(
            events.filter(pc.equal(events["broker"], broker)).select(EVENTS.names).sort_by(_ORDER), folder, job.every
        )
    return trace


def _read(job: SweepJob) -> tuple[pa.Table, pa.Table]:
    """Rows of READ, and dead letters of files that are left out."""
    if isinstance(job.input, str):
        with here(job.input, job.format, "jobs/cache_sweep.py") as path:
            return _read_files(job, input_files(path, job.format, job.input))
    made = job.input
    batches = (batch for seed in made.seeds for batch in generated(made.family, seed, made.sizes, made.scale))
    return pa.Table.from_batches(list(batches), READ), DEAD_LETTERS.empty_table()


def _read_files(job: SweepJob, files: list[File]) -> tuple[pa.Table, pa.Table]:
    if job.lags:
        parsed, lost = whole_files(files, job.format, INPUT, partial(parse_traffic, settings=ANY_TIME))
        return pa.Table.from_batches(list(events_of(parsed, job.lags)), READ), lost
    parse = partial(parse_cache_events, settings=ANY_TIME)
    parsed, lost = whole_files(files, job.format, schemas.INPUT, parse)
    return pa.Table.from_batches(list(read(parsed)), READ), lost


def _counts(rows: pa.Table, is_bad: pa.ChunkedArray, is_event: pa.ChunkedArray) -> Iterator[EventCount]:
    what = pc.if_else(is_event, "event", pc.if_else(is_bad, "bad", "conf"))
    broker = pc.if_else(is_bad, None, rows["broker"])
    wanted = [("t_us", "min"), ("t_us", "max"), ([], "count_all")]
    places = pa.table({"what": what, "broker": broker, "t_us": rows["t_us"]})
    found = places.group_by(["what", "broker"]).aggregate(wanted)
    names = ("what", "broker", "t_us_min", "t_us_max", "count_all")
    return map(EventCount._make, zip(*(found[name].to_pylist() for name in names), strict=True))


def _write(rows: pa.Table, folder: str, every: int) -> None:
    Path(folder).mkdir(parents=True)
    sample = SampledRows(every)
    with pq.ParquetWriter(f"{folder}/part-0.parquet", EVENTS) as file:
        for batch in rows.combine_chunks().to_batches(ROWS_AT_ONCE):
            file.write_batch(cut(sample, batch) if every > 1 else batch)
