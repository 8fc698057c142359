"""The entry cache's query: cache events to the tables of what brokers' caches do (PIP-430)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headgate.cache.clock import now
from headgate.cache.control import check_streaming, conf_row, tick_row
from headgate.cache.routing import pack_control, pack_input
from headgate.cache.schemas import CONTROL, OF_CACHE, WRITTEN
from headgate.conf import Conf
from headgate.engines.cache_batches import KINDS, CacheResult, CacheWriter, kernel_of, operator_of
from headgate.errors import StateError
from headgate.spark.feed import Feed, fed_rows
from headgate.spark.input.input_files import InputFiles
from headgate.spark.input.sources import fed_lines, path_exists, read_raw
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.sink import query_id_of
from headgate.spark.streaming_job import Schedule, StreamingJob, Ticks, refuse_another_checkpoint
from headgate.tables.delta import Tables


@dataclass(frozen=True)
class CacheJob:
    """What the command line says. evictions: whether each entry that left is told in `cache_evictions`."""

    input: str
    output: str
    checkpoint: str
    format: str = "parquet"
    evictions: bool = False
    once: bool = False


class CacheRun(StreamingJob):
    """One start of the entry cache's job. on_batch hears of each batch once it is in its tables.

    Raises InputError and ConfError for what cannot be run.
    """

    name = "entry_cache"

    def __init__(
        self,
        spark: SparkSession,
        job: CacheJob,
        conf: Conf,
        on_batch: Callable[[CacheResult], None],
        stop: threading.Event,
    ) -> None:
        super().__init__(spark, job.checkpoint, stop, Schedule(job.once, conf.settings.trigger.interval_ms))
        self._job = job
        self._conf = conf
        self._on_batch = on_batch
        self._files: InputFiles = InputFiles(spark)
        check_streaming(conf.cache)
        self._events()  # what is refused leaves no trace
        has_begun = path_exists(spark, f"{job.checkpoint}/offsets")
        if has_begun and not path_exists(spark, f"{job.output}/cache_control/_delta_log"):
            raise StateError(
                f"the checkpoint {job.checkpoint} has begun, but not with the tables under {job.output}: give the "
                "--output that it was begun with, or a new --checkpoint and --output"
            )
        self._feed: Feed = Feed(f"{job.output}/cache_control", CONTROL, job.checkpoint)
        self._ticks = Ticks(conf.settings.live.live_lag_ms, self._due_ticks, lambda rows: self._control(rows[0]))
        self.tables = Tables(job.output, OF_CACHE, conf.settings.tables.kept_hours)
        refuse_another_checkpoint(spark, job.checkpoint, job.output, self.tables, *WRITTEN)
        self._writer = CacheWriter(self.tables)

    @property
    def kernel(self) -> str:
        """The form of the rules that this run uses."""
        return kernel_of(self._conf)

    def _begin(self) -> None:
        self._say_conf()
        self._control(tick_row(None))  # every key tells how far it is

    def dataframe(self) -> DataFrame:
        """A row's way: events and control -> packed by slot -> operator."""
        packed = fed_lines(self._spark, self._feed).mapInArrow(partial(fed_rows, pack_control), PACKED)
        packed = packed.unionByName(self._events())
        return packed.transform(apply_operator, operator_of(self._conf, evictions=self._job.evictions))

    def _events(self) -> DataFrame:
        settings = self._conf.settings.input
        job = self._job
        raw = read_raw(self._spark, settings, job.input, job.format)
        return raw.mapInArrow(partial(pack_input, job.format, settings), PACKED)

    def _say_conf(self) -> None:
        """Append what conf files say, or what has changed in them; a run of a batch that broke off has not heard it."""
        high = pc.max(self.tables.read("cache_batches", ["event_time"])["event_time"]).as_py()
        confs = self.tables.read("cache_control").to_pylist()
        if row := conf_row(confs, self._conf.cache, high):
            self._control(row)

    def _finish(self) -> bool:
        """Feed what waits and tell of open seconds."""
        high = self._writer.clock.high
        if high is not None:
            self._control(tick_row(high, finish=True))
        return high is not None

    def _take(self, output: DataFrame, batch_id: int) -> int:
        rows = self._collected(output, KINDS)
        result = self._writer.write(rows, query_id_of(output), batch_id)
        if self._is_new(batch_id):
            self._on_batch(result)
        return result.rows

    def _due_ticks(self, is_idle: bool) -> list[dict[str, Any]]:
        settings = self._conf.settings
        at = self._writer.clock.due_tick(settings.live, now(), settings.input.hold_back_ms, is_idle=is_idle)
        return [] if at is None else [tick_row(at)]

    def _control(self, row: dict[str, Any]) -> None:
        self.tables.extend("cache_control", pa.Table.from_pylist([row], CONTROL))
