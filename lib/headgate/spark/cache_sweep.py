"""A sweep on Spark: the trace staged once, then one task for each combination and broker."""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError
from pyspark import InheritableThread, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from headgate.cache.forms import warm_up
from headgate.core.cache.reasons import DeadReason
from headgate.core.kernels.cache.limits import refusal_of
from headgate.errors import TableError
from headgate.sizing.combinations import Combination
from headgate.sizing.instants import Span
from headgate.sizing.measure import measure, summed
from headgate.sizing.schemas import CACHE_SWEEP, TABLES
from headgate.sizing.trace import batches_in, letter_of_event
from headgate.spark.cache_trace import TRACE, Generated, StagedTrace, generated_events, read_events, stage
from headgate.spark.failures import SPARK_ERRORS
from headgate.throttle.places import local_path
from headgate.throttle.schemas import DEAD_LETTERS

LOOK_S = 0.5
"""From one look at how many runs have ended to the next."""
_LETTERS_AT_ONCE = 10_000
_RESULT, _LETTER = "result", "letter"


@dataclass(frozen=True)
class SweepJob:
    """What the command line says. input: a path, or traffic that is made up. every: one entry in so many is kept."""

    input: str | Generated
    format: str
    output: str
    every: int


@dataclass(frozen=True)
class Run:
    """One task: a combination over one broker's rows."""

    combination: Combination
    broker: str
    folder: str


@dataclass(frozen=True)
class Swept:
    """What came of a sweep. rows: of cache_sweep, by combination and broker; broker None is all of them together."""

    trace: StagedTrace
    rows: list[dict[str, Any]]


def run_sweep(
    spark: SparkSession,
    job: SweepJob,
    combinations: Sequence[Combination],
    staged: Callable[[StagedTrace], None],
    ended: Callable[[int, int], None],
) -> Swept:
    """Run every combination over every broker and write the tables.

    The same input gives the same rows but for `cpu_s`, whatever the partitions, files and order of rows in them.

    staged: is told of the trace once it is in order. ended: of how many runs out of how many have ended. Raises
    InputError for an input that cannot be read, TableError for the tables.
    """
    if isinstance(job.input, Generated):
        place, read = "made-up traffic", partial(generated_events, spark, job.input)
    else:
        place, read = job.input, partial(read_events, spark, job.input, job.format)
    try:
        trace = stage(spark, place, read, job.output, job.every)
        staged(trace)
        _append(job.output, "dead_letters", trace.lost)
        if any(refusal_of(one.settings) is None for one in combinations):
            warm_up()
        runs = [Run(one, broker, place) for one in combinations for broker, place in trace.folders.items()]
        rows = _run_all(spark, job, runs, trace.span, ended)
    finally:
        _remove(spark, f"{job.output}/{TRACE}")
    rows = [*rows, *_of_all_brokers(rows)]
    rows.sort(key=lambda row: (row["combination"], row["broker"] is not None, row["broker"] or ""))
    _append(job.output, "cache_sweep", pa.Table.from_pylist(rows, CACHE_SWEEP))
    return Swept(trace, rows)


def _run_all(
    spark: SparkSession, job: SweepJob, runs: Sequence[Run], span: Span, ended: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    tasks = partial(_run_tasks, runs, span, job.every)
    frame = spark.range(0, len(runs), 1, len(runs)).mapInArrow(tasks, "kind string, content string")
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        _watched(frame, len(runs), ended)
        rows: list[dict[str, Any]] = []
        letters: list[dict[str, Any]] = []
        for kind, content in frame.toLocalIterator():
            (rows if kind == _RESULT else letters).append(json.loads(content))
            if len(letters) >= _LETTERS_AT_ONCE:
                _append(job.output, "dead_letters", pa.Table.from_pylist(letters, DEAD_LETTERS))
                letters = []
        _append(job.output, "dead_letters", pa.Table.from_pylist(letters, DEAD_LETTERS))
        return rows
    finally:
        frame.unpersist()


def _run_tasks(
    runs: Sequence[Run], span: Span, every: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """On a worker: the run whose number came, and what it refused where it is that of the present conf."""
    for batch in batches:
        for number in batch["id"].to_pylist():
            yield from _result(runs[number], span, every)


def _result(run: Run, span: Span, every: int) -> Iterator[pa.RecordBatch]:
    one, letters = run.combination, list[str]()

    def refused(reason: DeadReason, event: Mapping[str, Any]) -> None:
        letters.append(json.dumps(letter_of_event(run.broker, event, reason, one.settings)))

    began_s = time.process_time()
    measured = measure(
        one.settings,
        partial(batches_in, run.folder),
        span,
        every=every,
        letter=refused if one.is_present else None,
    )
    columns = {
        "combination": one.number,
        "broker": run.broker,
        "is_present": one.is_present,
        "policy": one.settings.policy,
        "max_bytes": one.settings.max_bytes,
        "changed": json.dumps(one.changed),
        "conf": json.dumps(one.settings.values()),
        "sample": every,
        **measured,
        "cpu_s": time.process_time() - began_s,
    }
    yield pa.RecordBatch.from_pydict({"kind": [_RESULT], "content": [json.dumps(columns)]})
    for first in range(0, len(letters), _LETTERS_AT_ONCE):
        part = letters[first : first + _LETTERS_AT_ONCE]
        yield pa.RecordBatch.from_pydict({"kind": [_LETTER] * len(part), "content": part})


def _watched(frame: DataFrame, count: int, ended: Callable[[int, int], None]) -> None:
    """Compute the frame, and tell how many of its tasks have ended. Whatever breaks it off takes its tasks along."""
    context, group = frame.sparkSession.sparkContext, f"cache-sweep-{uuid4()}"
    failures: list[BaseException] = []

    def compute() -> None:
        context.setJobGroup(group, "runs of the sweep", interruptOnCancel=True)
        try:
            frame.count()
        except BaseException as error:  # noqa: BLE001  raised below, where the caller is
            failures.append(error)

    worker = InheritableThread(target=compute, daemon=True)
    worker.start()
    told = 0
    try:
        while worker.is_alive():
            worker.join(LOOK_S)
            done = min(_tasks_ended(context, group), count)
            if done > told:
                told = done
                ended(done, count)
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failures:
        raise failures[0]
    if told < count:
        ended(count, count)


def _tasks_ended(context: Any, group: str) -> int:
    """Of the stage with the runs, which is the first one of the job."""
    tracker = context.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    found = tracker.getStageInfo(min(stages)) if stages else None
    return found.numCompletedTasks if found else 0


def _of_all_brokers(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row a combination: what its brokers come to together, under the conf and size that each of them has."""
    names = ("combination", "is_present", "policy", "max_bytes", "changed", "conf", "sample")
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_number.setdefault(row["combination"], []).append(row)
    for of_one in by_number.values():
        counts = [{name: value for name, value in row.items() if name not in {*names, "broker"}} for row in of_one]
        yield {**{name: of_one[0][name] for name in names}, "broker": None, **summed(counts)}


def _remove(spark: SparkSession, folder: str) -> None:
    """Also without a JVM, which may have been stopped with the job, where the folder is on this machine."""
    try:
        path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]
        path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)
    except SPARK_ERRORS:
        if (local := local_path(folder)) is not None:
            shutil.rmtree(local, ignore_errors=True)
        raise


def _append(output: str, name: str, rows: pa.Table) -> None:
    """Rows to a table, which is there afterwards even if there are none."""
    try:
        write_deltalake(f"{output}/{name}", pa.table(rows, schema=TABLES[name]), mode="append")
    except (DeltaError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        message = f"the table {output}/{name} cannot be written: {first}; give an --output that can be written"
        raise TableError(message) from error
