"""The throttle protocol's query: inputs and marks to the tables of what brokers tell clients (PIP-385)."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from headgate.conf import Conf, InputSettings
from headgate.engines.protocol_batches import (
    KINDS,
    ProtocolResult,
    ProtocolWriter,
    fans_out,
    operator_of,
    ticks,
    until_ms,
)
from headgate.errors import InputError
from headgate.protocol.key_operator import form_of
from headgate.protocol.marks import COLUMNS
from headgate.protocol.parse import other_types
from headgate.protocol.routing import pack_input, pack_marks, pack_ticks
from headgate.protocol.schemas import DECISIONS, OF_PROTOCOL, TICKS, WRITTEN
from headgate.protocol.state import NOT_YET
from headgate.spark.feed import Feed, fed_rows
from headgate.spark.input.sources import appended_rows, fed_lines, path_exists, read_raw
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.sink import collected, query_id_of
from headgate.spark.streaming_job import Schedule, StreamingJob, Ticks, refuse_another_checkpoint
from headgate.tables.delta import Tables

FORMATS = ("delta", "kafka")


def read_inputs(spark: SparkSession, settings: InputSettings, place: str, format_: str) -> DataFrame:
    """As `read_raw`. Raises InputError also for a Delta table whose columns have other types."""
    if format_ == "delta" and not path_exists(spark, f"{place}/_delta_log"):
        raise InputError(f"--input: no Delta table is at {place}; give the folder of one, or --format kafka")
    rows = read_raw(spark, settings, place, format_)
    if format_ == "delta":
        _check_columns(rows, place)
    return rows


def _check_columns(rows: DataFrame, place: str) -> None:
    mistakes = [
        f"{got.name}: got {from_arrow_type(got.type).simpleString()}, "
        f"allowed {from_arrow_type(wanted.type).simpleString()}"
        for got, wanted in other_types(to_arrow_schema(rows.select("row.*").schema))
    ]
    if mistakes:
        raise InputError(f"--input: columns of {place} have other types; write them anew: {'; '.join(mistakes)}")


@dataclass(frozen=True)
class ProtocolJob:
    """What the command line says. marks: whether those of a throttle job with the same output are followed.

    input: what clients and their connections do, None: nobody says, and clients are taken for obedient.
    commands_topic: the Kafka topic that decisions are sent to as well, None: nowhere.
    """

    output: str
    checkpoint: str
    input: str | None = None
    format: str = "delta"
    commands_topic: str | None = None
    once: bool = False


class ProtocolRun(StreamingJob):
    """One start of the protocol's job. on_batch hears of each batch once it is in its tables."""

    name = "protocol"

    def __init__(
        self,
        spark: SparkSession,
        job: ProtocolJob,
        conf: Conf,
        on_batch: Callable[[ProtocolResult], None],
        stop: threading.Event,
    ) -> None:
        super().__init__(spark, job.checkpoint, stop, Schedule(job.once, conf.settings.trigger.interval_ms))
        self._job = job
        self._conf = conf
        self._on_batch = on_batch
        self._feed: Feed = Feed(f"{job.output}/protocol_ticks", TICKS, job.checkpoint)
        self._ticks = Ticks(conf.settings.live.live_lag_ms, self._due_ticks, lambda rows: self._tick(**rows[0]))
        self._follows_marks = path_exists(spark, f"{job.output}/marks/_delta_log")
        if job.input is None and not self._follows_marks:
            raise InputError(
                f"--output: no table marks is under {job.output}; give the --output of a throttle job, or --input"
            )
        if job.input is not None:
            read_inputs(spark, conf.settings.input, job.input, job.format)  # what is refused leaves no trace
        self.tables = Tables(job.output, OF_PROTOCOL, conf.settings.tables.kept_hours)
        refuse_another_checkpoint(spark, job.checkpoint, job.output, self.tables, *WRITTEN)
        self._writer = ProtocolWriter(self.tables)

    def _begin(self) -> None:
        form_of(self._conf.settings.operator.kernel)  # compiled here, workers load it from disk
        self._tick(NOT_YET)  # every key tells how far it is

    def dataframe(self) -> DataFrame:
        """A row's way: inputs, marks and ticks -> packed by slot -> operator."""
        by_broker = fans_out(self._conf)
        packed = fed_lines(self._spark, self._feed).mapInArrow(partial(fed_rows, pack_ticks), PACKED)
        if self._follows_marks:
            marks = self._appended("marks", *COLUMNS)
            packed = packed.unionByName(marks.mapInArrow(partial(pack_marks, by_broker=by_broker), PACKED))
        if self._job.input is not None:
            inputs = read_inputs(self._spark, self._conf.settings.input, self._job.input, self._job.format)
            pack = partial(pack_input, self._job.format, until_ms(self._conf), by_broker=by_broker)
            of_inputs = inputs.mapInArrow(pack, PACKED)
            packed = packed.unionByName(of_inputs)
        has_inputs = self._job.input is not None
        operator = operator_of(self._conf, has_inputs=has_inputs, follows_marks=self._follows_marks)
        return packed.transform(apply_operator, operator)

    def _appended(self, name: str, *columns: str) -> DataFrame:
        return appended_rows(self._spark, f"{self._job.output}/{name}").select(*columns)

    def _finish(self) -> bool:
        """Let the last millisecond end."""
        high_ms = self._writer.clock.high_ms
        if high_ms != NOT_YET:
            self._tick(high_ms, finish=True)
        return high_ms != NOT_YET

    def _take(self, output: DataFrame, batch_id: int) -> int:
        """See ProtocolWriter. At least once in Kafka, where a batch that is run again sends the same rows, told apart
        by (connection, seq).
        """
        rows = collected(output, KINDS)
        result = self._writer.write(rows, query_id_of(output), batch_id)
        if self._job.commands_topic is not None and len(rows["decisions"]):
            self._send(output.sparkSession, rows["decisions"], self._job.commands_topic)
        if self._is_new(batch_id):
            self._on_batch(result)
        return result.rows

    def _send(self, spark: SparkSession, decisions: pa.Table, topic: str) -> None:
        """One JSON object a decision, nulls left out, in the order of a connection's `seq`. throttle-protocol 6"""
        kafka = self._conf.settings.input.kafka
        frame = spark.createDataFrame(decisions).coalesce(1).sort("connection", "seq")
        values = frame.select(F.col("connection").alias("key"), F.to_json(F.struct(*DECISIONS.names)).alias("value"))
        servers = {"kafka.bootstrap.servers": kafka.bootstrap_servers}
        values.write.format("kafka").options(**kafka.spark_options(), **servers, topic=topic).save()

    def _due_ticks(self, is_idle: bool) -> list[dict[str, Any]]:
        at_ms = self._writer.clock.due_tick(self._conf.settings.live, time.time_ns() // 1_000_000, is_idle=is_idle)
        return [] if at_ms is None else [{"at_ms": at_ms}]

    def _tick(self, at_ms: int, *, finish: bool = False) -> None:
        self.tables.extend("protocol_ticks", ticks(at_ms, finish=finish))
