"""A checkpoint's state, read while no job writes to it or as it was after the last batch that is complete."""

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import StateError
from headgate.spark.batch_files import first_line
from headgate.throttle.state_report import state_report


def read_state(spark: SparkSession, checkpoint: str) -> pa.Table:
    """state_report.REPORT of the throttle job's checkpoint. Raises StateError where there is none."""
    _ = spark.streams.active  # registers the coordinator of state stores, which a session without streams lacks
    try:
        state = (
            spark.read.format("statestore")
            .load(checkpoint)
            .select("value.groupState.version", "value.groupState.blocks")
        )
        values = state.toArrow()
    except (PySparkException, Py4JError) as error:
        raise StateError(
            f"no state of a throttle job can be read from {checkpoint}: {first_line(error)}. "
            "Give the --checkpoint of a job that has finished a batch"
        ) from error
    return state_report(zip(values["version"].to_pylist(), values["blocks"].to_pylist(), strict=True))
