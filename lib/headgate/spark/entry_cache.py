"""The entry cache's query: cache events to the tables of what brokers' caches do (PIP-430)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.cache.clock import Clock, now
from headgate.cache.control import check_streaming, conf_row, tick_row
from headgate.cache.forms import kernel_for
from headgate.cache.horizon.key_operator import HorizonOperator
from headgate.cache.horizon.meeting import horizons_of, metrics_of
from headgate.cache.horizon.routing import pack_horizons, pack_items
from headgate.cache.horizon.schemas import ITEMS, PARTS, REPORTS
from headgate.cache.key_operator import CacheOperator
from headgate.cache.routing import pack_control, pack_rows
from headgate.cache.schemas import CACHE_BATCHES, CACHE_METRICS, COLUMNS, CONTROL, EVICTIONS, METRICS, PROGRESS
from headgate.cache.step import CacheRules
from headgate.cache.tables import OF_CACHE, OF_HORIZON, WRITTEN
from headgate.conf import Conf
from headgate.core.cache.settings import CacheSettings, Mode
from headgate.errors import StateError
from headgate.spark.cache_parse import parse_events
from headgate.spark.ending import POLL_S
from headgate.spark.input_files import InputFiles
from headgate.spark.life import QueryLife, refuse_another_checkpoint, started
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.sink import collected, query_id_of
from headgate.spark.sources import appended_rows, path_exists, read_raw
from headgate.throttle.schemas import DEAD_LETTERS
from headgate.throttle.tables import PatientAppend, Tables

OF_SHARDS = {"items": ITEMS, "reports": REPORTS, "parts": PARTS}
KINDS = {"metrics": METRICS, "evictions": EVICTIONS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}
CLOSING_BATCHES = 5
MICROSECONDS_OF_MS = 1000


@dataclass(frozen=True)
class CacheJob:
    """What the command line says. evictions: whether each entry that left is told in `cache_evictions`."""

    input: str
    output: str
    checkpoint: str
    format: str = "parquet"
    evictions: bool = False
    once: bool = False


@dataclass(frozen=True)
class CacheResult:
    """What one batch brought. rounds: of mode horizon, those that met. event_time: the highest of its rows' or None."""

    batch_id: int
    rows: int
    late: int
    dead_letters: int
    rounds: int
    event_time: datetime | None


class CacheRun:
    """One start of the entry cache's job. on_batch hears of each batch once it is in its tables.

    `stop` ends the run after the batch under way; one that takes too long is broken off, and run again by the next
    start. Raises InputError and ConfError for what cannot be run.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: CacheJob,
        conf: Conf,
        on_batch: Callable[[CacheResult], None],
        stop: threading.Event,
    ) -> None:
        self._spark = spark
        self._job = job
        self._conf = conf
        self._on_batch = on_batch
        self._life = QueryLife(stop)
        self._files = InputFiles(spark)
        self._clock = Clock()
        self._taken = 0
        check_streaming(conf.cache)
        self._settings = CacheSettings.of(conf.cache)
        self._goes_on = False
        self._events()  # what is refused leaves no trace
        has_begun = path_exists(spark, f"{job.checkpoint}/offsets")
        if has_begun and not path_exists(spark, f"{job.output}/cache_control/_delta_log"):
            raise StateError(
                f"the checkpoint {job.checkpoint} has begun, but not with the tables under {job.output}: give the "
                "--output that it was begun with, or a new --checkpoint and --output"
            )
        self.tables = Tables(job.output, OF_HORIZON if self._is_horizon else OF_CACHE)
        refuse_another_checkpoint(spark, job.checkpoint, job.output, self.tables, *WRITTEN)

    @property
    def broken_off(self) -> bool:
        """Whether a batch took too long to wait for its end."""
        return self._life.broken_off

    @property
    def kernel(self) -> str:
        """The form of the rules that this run uses."""
        return kernel_for(self._conf.cache, self._conf.settings.operator.kernel)

    def run(self) -> bool:
        """Return True when the input is used up (`once`), False once `stop` is set. Raises what fails of Spark's."""
        self._say_conf()
        self._control(tick_row(None))  # every key tells how far it is
        if not self._job.once:
            self._to_the_end(self._follow, processingTime=f"{self._conf.settings.trigger.interval_ms} milliseconds")
        else:
            self._to_the_end(None, availableNow=True)
            self._meet()
            self._close()
        return not self._life.stop.is_set()

    @property
    def _is_horizon(self) -> bool:
        return self._settings.mode is Mode.HORIZON

    def dataframe(self) -> DataFrame:
        """A row's way: events and control -> packed by slot -> operator.

        In mode horizon once more: rows in line, and horizons -> packed by shard -> operator.
        """
        packed = self._appended("cache_control").mapInArrow(pack_control, PACKED)
        packed = packed.unionByName(self._events().mapInArrow(pack_rows, PACKED))
        if self._is_horizon:
            shards = self._settings.shards
            items = self._appended("cache_rounds").mapInArrow(partial(pack_items, shards), PACKED)
            horizons = self._appended("cache_horizons").mapInArrow(partial(pack_horizons, shards), PACKED)
            packed = packed.unionByName(items).unionByName(horizons)
        hold_back_us = self._conf.settings.input.hold_back_ms * MICROSECONDS_OF_MS
        rules = CacheRules(hold_back_us, evictions=self._job.evictions, kernel=self.kernel)
        operator = HorizonOperator(rules) if self._is_horizon else CacheOperator(rules)
        return packed.transform(apply_operator, operator)

    def _appended(self, name: str) -> DataFrame:
        return appended_rows(self._spark, f"{self._job.output}/{name}").select(*self.tables.columns(name))

    def _events(self) -> DataFrame:
        settings = self._conf.settings.input
        job, past_damage = self._job, self._files.past_damage
        raw = read_raw(self._spark, settings, job.input, job.format, past_damage=past_damage, columns=COLUMNS)
        return raw.transform(parse_events, settings)

    def _say_conf(self) -> None:
        """Append what conf files say, or what has changed in them; a run of a batch that broke off has not heard it."""
        high = pc.max(self.tables.read("cache_batches", ["event_time"])["event_time"]).as_py()
        confs = self.tables.read("cache_control").to_pylist()
        if row := conf_row(confs, self._conf.cache, high):
            self._control(row)

    def _to_the_end(self, wait: Callable[[StreamingQuery], None] | None, **trigger: Any) -> None:
        start = partial(started, "entry_cache", self._job.checkpoint, self.dataframe, self._take, **trigger)
        self._files.to_the_end(self._life, start, wait)

    def _close(self) -> None:
        """Feed what waits and tell of open seconds, again as long as rows come in with the batch that does it."""
        for _ in range(CLOSING_BATCHES):
            taken = self._taken
            if self._life.stop.is_set() or self._clock.high is None:
                return
            self._control(tick_row(self._clock.high, finish=True))
            self._to_the_end(None, once=True)
            self._meet()
            if self._taken == taken:
                return

    def _meet(self) -> None:
        """Go on until all rounds that have ended are through: each takes a batch of its own."""
        if self._goes_on:
            self._to_the_end(self._until_met, processingTime="0 seconds")

    def _until_met(self, query: StreamingQuery) -> None:
        while self._goes_on and query.isActive and not self._life.stop.wait(POLL_S):
            pass

    def _take(self, output: DataFrame, batch_id: int) -> None:
        """Exactly once in the tables: each takes a batch in one transaction (query id, batch id).

        `cache_batches` comes first: a change of conf files holds behind all that any table tells of.
        """
        query_id = query_id_of(output)
        rows = collected(output, KINDS | (OF_SHARDS if self._is_horizon else {}))
        progress, lost = rows["progress"], self._files.lost()
        fed_back: dict[str, pa.Table] = {}
        if self._is_horizon:
            rows["metrics"] = metrics_of(rows["parts"])
            horizons = horizons_of(rows["reports"], self._settings.shards)
            fed_back = {"cache_rounds": rows["items"], "cache_horizons": horizons}
        of_tables = {
            "cache_batches": _numbered(progress.filter(pc.greater(progress["rows"], 0)), CACHE_BATCHES, batch_id),
            "cache_metrics": _numbered(rows["metrics"], CACHE_METRICS, batch_id),
            "cache_evictions": rows["evictions"],
            "dead_letters": pa.concat_tables([rows["dead_letters"], lost]),
            **fed_back,
        }
        for name, of_table in of_tables.items():
            self.tables.append(name, of_table, query_id, batch_id)
        self._goes_on = any(len(of_table) for of_table in fed_back.values())
        self._clock.take(progress)
        rounds = len(fed_back.get("cache_horizons", ()))
        result = _result(batch_id, of_tables["cache_batches"], len(of_tables["dead_letters"]), rounds)
        self._taken += result.rows
        self._on_batch(result)
        self._life.heard(batch_id, result.rows)

    def _follow(self, query: StreamingQuery) -> None:
        """Go on until a stop, and let time go on where nothing comes that would move it, and something waits for it."""
        live, hold_back = self._conf.settings.live, timedelta(milliseconds=self._conf.settings.input.hold_back_ms)
        append = PatientAppend(lambda rows: self._control(rows[0]))

        def tick(is_idle: bool) -> None:
            at = self._clock.due_tick(live, now(), hold_back, is_idle=is_idle)
            append([] if at is None else [tick_row(at)])

        self._life.follow(self._spark, query, live.live_lag_ms / 1000, tick)

    def _control(self, row: dict[str, Any]) -> None:
        self.tables.extend("cache_control", pa.Table.from_pylist([row], CONTROL))


def _numbered(rows: pa.Table, schema: pa.Schema, batch_id: int) -> pa.Table:
    numbered = rows.add_column(0, schema.field("batch_id"), pa.repeat(batch_id, len(rows)))
    return numbered.select(schema.names)


def _result(batch_id: int, batches: pa.Table, dead_letters: int, rounds: int) -> CacheResult:
    taken, late = (pc.sum(batches[name]).as_py() or 0 for name in ("rows", "late"))
    return CacheResult(batch_id, taken, late, dead_letters, rounds, pc.max(batches["event_time"]).as_py())
