"""A sweep on Spark: the trace staged once, then one task for each combination and broker."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import InheritableThread, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from headgate.sizing.asked import SweepJob
from headgate.sizing.runs import Outcome, Run, outcomes_of
from headgate.sizing.sweep import Ended, StagedTrace
from headgate.spark.cache_trace import stage
from headgate.spark.failures import SPARK_ERRORS
from headgate.stores import local_path

LOOK_S = 0.5
"""From one look at how many runs have ended to the next."""
_AT_ONCE = 10_000


class SparkSweep:
    """A task for each run (sizing.sweep.SweepEngine)."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @contextmanager
    def staged(self, job: SweepJob) -> Iterator[StagedTrace]:
        try:
            yield stage(self._spark, job)
        finally:
            _remove(self._spark, job.trace)

    def outcomes(self, runs: Sequence[Run], ended: Ended) -> Iterator[Outcome]:
        tasks = self._spark.range(0, len(runs), 1, len(runs))
        frame = tasks.mapInArrow(partial(_run_tasks, runs), "kind string, content string")
        frame = frame.persist(StorageLevel.DISK_ONLY)
        try:
            _watched(frame, len(runs), ended)
            for row in frame.toLocalIterator():
                yield row["kind"], row["content"]
        finally:
            frame.unpersist()


def _run_tasks(runs: Sequence[Run], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the run whose number came, and what it refused where it is that of the present conf."""
    for batch in batches:
        for number in batch["id"].to_pylist():
            found = list(outcomes_of(runs[number]))
            for first in range(0, len(found), _AT_ONCE):
                kinds, contents = zip(*found[first : first + _AT_ONCE], strict=True)
                yield pa.RecordBatch.from_pydict({"kind": kinds, "content": contents})


def _watched(frame: DataFrame, count: int, ended: Ended) -> None:
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


def _remove(spark: SparkSession, folder: str) -> None:
    """Also without a JVM, which may have been stopped with the job, where the folder is on this machine."""
    try:
        path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # type: ignore[union-attr]
        path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)
    except SPARK_ERRORS:
        if (local := local_path(folder)) is not None:
            shutil.rmtree(local, ignore_errors=True)
        raise
