"""A replay on Spark: the trace read once, each row sent to its key under every conf, one pass in the order of time."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.blocks import decode
from headgate.conf import InputSettings
from headgate.replay.asked import ReplayJob
from headgate.replay.job import BrokerRows, Heard, Replayed, write_replay
from headgate.replay.plan import Plan
from headgate.replay.run import Trace
from headgate.replay.stream import REPLAYED, ROUTED, replay, route_input
from headgate.spark.input.batch_files import readable_rows
from headgate.spark.input.sources import read_raw
from headgate.spark.session import PARTITIONS
from headgate.throttle.key_operator import form_of
from headgate.throttle.schemas import EVENTS

TASKS = 4
"""Parts of the pass over keys by shuffle partition: keys are few and unlike, so that a core takes the next when it can.
"""


def run_replay(
    spark: SparkSession, job: ReplayJob, plans: Sequence[Plan], settings: InputSettings, heard: Heard
) -> Replayed:
    """As `replay.job.write_replay`. settings: how the input is read, for all plans.

    Raises InputError for an input that cannot be read, too.
    """
    read = partial(_routed, spark, job, plans, settings)
    rows, lost, counts = readable_rows(spark, job.input, read, _counted)
    try:
        return write_replay(job, plans, _SparkRouted(rows, lost, counts), heard)
    finally:
        rows.unpersist()


def _routed(
    spark: SparkSession, job: ReplayJob, plans: Sequence[Plan], settings: InputSettings, files: Sequence[str]
) -> DataFrame:
    """Every row with its keys."""
    return read_raw(spark, settings, job.input, job.format, once=True, files=files).mapInArrow(
        partial(route_input, job.format, settings, plans), from_arrow_schema(ROUTED)
    )


def _counted(rows: DataFrame) -> list[BrokerRows]:
    """The only pass over the input."""
    time, is_other = F.col("event_time_us"), F.size("keys") == 0
    sums = F.min(time), F.max(time), F.count("*")
    return [BrokerRows(*found) for found in rows.groupBy("broker", is_other).agg(*sums).collect()]


class _SparkRouted:
    """Routed rows in a frame (replay.job.Routed)."""

    def __init__(self, rows: DataFrame, lost: pa.Table, counts: list[BrokerRows]) -> None:
        self._rows, self.lost, self._counts = rows, lost, counts

    def counted(self) -> list[BrokerRows]:
        return self._counts

    def letters(self) -> Iterator[str]:
        for row in self._rows.where(F.col("letter").isNotNull()).select("letter").toLocalIterator():
            yield row["letter"]

    def results(self, plans: Sequence[Plan], trace: Trace) -> Iterator[tuple[int, str, pa.Table]]:
        """Partition by partition, so that no more than one is in memory here."""
        replayed = self._rows.transform(replayed_by_key, plans, trace).persist(StorageLevel.DISK_ONLY)
        try:
            replayed.count()
            for row in replayed.toLocalIterator():
                yield row["conf"], row["kind"], decode(bytes(row["block"]))
        finally:
            replayed.unpersist()


def replayed_by_key(routed: DataFrame, plans: Sequence[Plan], trace: Trace) -> DataFrame:
    """Every row under every plan, those of a key together and in the order of time, through the rules."""
    by_plan = routed.where(F.col("letter").isNull()).select(F.posexplode("keys").alias("conf", "key"), *EVENTS.names)
    partitions = TASKS * int(routed.sparkSession.conf.get(PARTITIONS) or 1)
    return (
        by_plan.repartition(partitions, "conf", "key")
        .sortWithinPartitions("conf", "key", "event_time_us")
        .mapInArrow(partial(replay, plans, trace, form_of), from_arrow_schema(REPLAYED))
    )
