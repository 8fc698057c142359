"""The connections query: from the marks of a throttle job to the tables of when connections were read."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headgate.connections.key_operator import ConnectionsOperator, pack_marks
from headgate.errors import InputError
from headgate.metrics import Metrics
from headgate.spark.input.sources import appended_rows, path_exists
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.sink import collected, query_id_of
from headgate.spark.streaming_job import Schedule, StreamingJob, refuse_another_checkpoint
from headgate.tables.delta import Tables
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import OF_CONNECTIONS


@dataclass(frozen=True)
class ConnectionsJob:
    """What the command line says. output: that of the throttle job, whose marks are followed. once: end when they are
    used up. interval_ms: from the start of one batch to that of the next. *_hours: as in headgate.toml.
    """

    output: str
    checkpoint: str
    once: bool = False
    interval_ms: int = 1000
    silent_hours: int = 0
    kept_hours: int = 0


@dataclass(frozen=True)
class ConnectionsResult:
    """What one batch brought: how often reads were switched off, and on. Some that were off end with a close."""

    batch_id: int
    paused: int
    resumed: int


class ConnectionsRun(StreamingJob):
    """One start of the connections job. on_batch hears of each batch once it is in its tables. metrics: counts each
    batch, None: nobody asks.
    """

    name = "connections"

    def __init__(
        self,
        spark: SparkSession,
        job: ConnectionsJob,
        on_batch: Callable[[ConnectionsResult], None],
        stop: threading.Event,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(spark, job.checkpoint, stop, Schedule(job.once, job.interval_ms))
        self._metrics = metrics
        self._job = job
        self._on_batch = on_batch
        if not path_exists(spark, f"{job.output}/marks/_delta_log"):
            raise InputError(f"--output: no table marks is under {job.output}; give the --output of a throttle job")
        self.tables = Tables(job.output, OF_CONNECTIONS, job.kept_hours)
        refuse_another_checkpoint(spark, job.checkpoint, job.output, self.tables, *OF_CONNECTIONS)

    def dataframe(self) -> DataFrame:
        """A row's way: marks -> packed by slot -> operator."""
        marks = appended_rows(self._spark, f"{self._job.output}/marks").select(*MARKS.names)
        return marks.mapInArrow(pack_marks, PACKED).transform(
            apply_operator, ConnectionsOperator(self._job.silent_hours)
        )

    def _take(self, output: DataFrame, batch_id: int) -> int:
        """Exactly once: each table takes a batch in one transaction (query id, batch id)."""
        query_id = query_id_of(output)
        rows = collected(output, OF_CONNECTIONS)
        for name in OF_CONNECTIONS:
            self.tables.append(name, rows[name], query_id, batch_id)
        if self._metrics is not None:
            self._metrics.take(batch_id, rows)
        auto_read = rows["connections"]["auto_read"]
        paused, resumed = (pc.sum(switch).as_py() or 0 for switch in (pc.invert(auto_read), auto_read))
        if self._is_new(batch_id):
            self._on_batch(ConnectionsResult(batch_id, paused, resumed))
        return int(paused + resumed)
