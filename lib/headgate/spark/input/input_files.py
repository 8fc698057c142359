"""A query over input files: what it cannot read of them it leaves out, and says so."""

import threading
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import InputError
from headgate.spark.input.batch_files import (
    files_that_spark_multiplies,
    planned_files,
    unreadable_files,
)


class InputFiles:
    """Every file of which a batch lacks rows has a dead letter, and no file counts twice.

    Attributes: `planned`, how many files the batch under way has; `refused`, for which file the query failed.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.planned = 0
        self._spark = spark
        self._started = threading.Event()
        self.refused: InputError | None = None

    def lost(self) -> pa.Table:
        """Dead letters of files of which the batch under way lacks rows; asked for within that batch, once computed."""
        self._started.wait()
        planned = planned_files(self._query)
        self.planned = sum(len(files.paths) for files in planned)
        if odd := files_that_spark_multiplies(planned):
            self.refused = InputError(
                f"--input: the path of {odd[0]} holds one of {{}}[]*?\\, and Spark counts files of its batch several "
                "times, so nothing of it is counted: rename the file or folder and start with a new --output"
            )
            raise self.refused
        return unreadable_files(self._spark, self._query, planned)

    def of_query(self, start: Callable[[], StreamingQuery]) -> StreamingQuery:
        """Start the query of which batches are asked about."""
        self._started.clear()
        self._query = start()
        self._started.set()
        return self._query
