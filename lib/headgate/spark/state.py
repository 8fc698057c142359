"""A checkpoint's state, read while no job writes to it or as it was after the last batch that is complete."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.cache.stored.state_report import are_of_caches, cache_report
from headgate.errors import StateError
from headgate.spark.failures import SPARK_ERRORS, SPLIT_BROKEN_OFF, first_line
from headgate.spark.session import prepare_checkpoint
from headgate.throttle.state_report import state_report

_IS_SPLIT = "SHUFFLE_PARTITIONS_ALREADY_MATCH"
"""Spark's name of what is wrong with a split into as many parts as there are."""


def read_state(spark: SparkSession, checkpoint: str) -> pa.Table:
    """REPORT of a checkpoint, the throttle job's or the entry cache's. Raises StateError where there is none."""
    try:
        values = stored(spark, checkpoint).select("value.groupState.version", "value.groupState.blocks").toArrow()
    except SPARK_ERRORS as error:
        raise StateError(
            f"no state of a throttle or an entry cache job can be read from {checkpoint}: {first_line(error)}. "
            "Give the --checkpoint of a job that has finished a batch"
        ) from error
    states = list(zip(values["version"].to_pylist(), values["blocks"].to_pylist(), strict=True))
    return cache_report(states) if are_of_caches(states) else state_report(states)


def stored(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Keys and values as Spark has them after the last batch that is complete, in a session of any age."""
    _prepare(spark, checkpoint)
    return spark.read.format("statestore").load(checkpoint)


def repartition(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Split a checkpoint's state into so many parts, for good. No job may use it meanwhile.

    Spark notes it as a batch of its own that has no input. One that was broken off is completed by another call with
    the same number; where it has as many parts already, nothing is done. Raises StateError where the last batch of the
    job is not complete.
    """
    _prepare(spark, checkpoint)
    try:
        spark._streamingCheckpointManager.repartition(checkpoint, partitions)
    except SPARK_ERRORS as error:
        if _IS_SPLIT in str(error):
            return
        is_half_done = SPLIT_BROKEN_OFF.search(str(error))
        remedy = (
            "Repeat that split first"
            if is_half_done
            else "Start the job once more, stop it with SIGTERM, and try again"
        )
        raise StateError(
            f"the state in {checkpoint} cannot be split into {partitions} parts: {first_line(error)}. {remedy}"
        ) from error


def _prepare(spark: SparkSession, checkpoint: str) -> None:
    prepare_checkpoint(spark, checkpoint)
    _ = spark.streams.active  # registers the coordinator of state stores, which a session without streams lacks


def close_stores(spark: SparkSession) -> None:
    """Close the state stores of this process, which no query uses any more, before it ends.

    Otherwise Java may never end: RocksDB's exit waits for its threads, and one that compacts a large state waits for
    Java, which stands still by then.
    """
    spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # type: ignore[union-attr]
