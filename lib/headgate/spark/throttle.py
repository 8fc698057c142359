"""The throttle query from source to tables, from start to end."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.conf import Conf, conf_limits
from headgate.engines.batches import BatchResult, BatchWriter
from headgate.engines.exchange import TableExchange
from headgate.engines.sharing import Sharing
from headgate.errors import StateError
from headgate.metrics import Metrics
from headgate.quota.pace import Pace
from headgate.quota.usage.share_courses import QuotaCourse
from headgate.spark.feed import Feed, fed_rows
from headgate.spark.idle import idle_of
from headgate.spark.input.input_files import InputFiles
from headgate.spark.input.sources import fed_lines, path_exists, read_raw
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.sink import query_id_of
from headgate.spark.state import stored
from headgate.spark.streaming_job import Schedule, StreamingJob, Ticks
from headgate.throttle.clocks import Clocks
from headgate.throttle.key_operator import ThrottleOperator, form_of
from headgate.throttle.kinds import OUTPUT_BLOCKS, OUTPUT_TABLES
from headgate.throttle.layout import (
    Layout,
    check_layout,
    kept_checkpoint,
    kept_layout,
    layout_of,
    layout_row,
    routing_of,
    rules_of,
    without_layouts,
)
from headgate.throttle.limits.control import FROM_THE_START, changes_in, conf_rows, pack_control, tick_row
from headgate.throttle.routing import Routing, pack_input
from headgate.throttle.schemas import CONTROL
from headgate.throttle.tables import throttle_tables

_MOST_EPOCHS = 30
_TOO_LONG = (
    "a batch had {:,.0f} s of traffic, and brokers exchange their usage once a batch: until its end each broker kept "
    "the share that it had before, so figures of groups are not those of shared quotas. Give the input in smaller "
    "files with [input] max_files_per_trigger = 1, or use headgate try or replay, which exchange it every epoch"
)


@dataclass(frozen=True)
class ThrottleJob:
    """What the command line says. once: end when the input is used up.

    broker: the one whose rows count, None: every one. shared: the output whose rg_ tables the jobs of all brokers use,
    None: the job's own.
    """

    input: str
    format: str
    output: str
    checkpoint: str
    once: bool = False
    broker: str | None = None
    shared: str | None = None


class ThrottleRun(StreamingJob):
    """One start of the throttle job: prepares the control table, runs the query, ends it.

    on_batch hears of each batch once it is in its tables, and how many producers wait in all. metrics: counts each
    batch, None: nobody asks.
    """

    name = "throttle"

    def __init__(
        self,
        spark: SparkSession,
        job: ThrottleJob,
        conf: Conf,
        on_batch: Callable[[BatchResult, int], None],
        stop: threading.Event,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(spark, job.checkpoint, stop, Schedule(job.once, conf.settings.trigger.interval_ms))
        self._metrics = metrics
        self._job = job
        self._conf = conf
        self._on_batch = on_batch
        self._files: InputFiles = InputFiles(spark)
        self._caught_up = False
        self._longest = timedelta(0)
        self.clocks = Clocks(job.broker)
        read_raw(spark, conf.settings.input, job.input, job.format)  # what is refused leaves no trace
        self._has_begun = path_exists(spark, f"{job.checkpoint}/offsets")
        if self._has_begun and not path_exists(spark, f"{job.output}/control/_delta_log"):
            raise self._not_of_this_checkpoint()
        self._feed: Feed = Feed(f"{job.output}/control", CONTROL, job.checkpoint)
        self.tables = throttle_tables(job.output, conf.settings.tables.kept_hours)
        self._ticks = Ticks(conf.settings.live.live_lag_ms, self._due_ticks, self.tables.append_control)
        self.sharing = self._sharing() if conf.settings.operator.group_limits == "shared" else None
        self._writer = BatchWriter(self.tables, self._heard, self.sharing, self._counted)
        self._pace = None
        if self.sharing is not None and job.broker is not None:
            self._pace = Pace(conf.quota.epoch_ms, conf.settings.trigger.interval_ms)
        self._is_behind = self._has_begun and self._is_batch_open()
        self._limits_changed = False
        self._layout = self._prepared()
        self._routing = replace(routing_of(self._layout), broker=job.broker)
        if self.sharing is not None:
            self.sharing.enforces = self._layout.whole_brokers
            if not self._is_behind:
                self.sharing.begin(self._reached())

    def _begin(self) -> None:
        form_of(self._conf.settings.operator.kernel)  # compiled here, workers load it from disk
        if self._is_behind:
            self._to_the_end(None, once=True)
            if self._stop.is_set():
                return
            self.tables.append_control(self._limits_and_ticks(self.tables.read("control"), self._layout))
        if self.sharing is not None:
            self.sharing.begin(self._reached())  # jobs of other brokers may have come up meanwhile

    def _end(self) -> None:
        if self.sharing is not None:
            self.sharing.end()

    @property
    def has_rows(self) -> bool:
        """Whether any start took in a row of traffic."""
        return self._reached() != FROM_THE_START

    @property
    def limits_changed(self) -> bool:
        """Whether the conf files say something else than at the last start."""
        return self._limits_changed or (self.sharing is not None and self.sharing.groups_changed and self._has_begun)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the files say and the tables cannot follow, and batches that are too long for shares to follow."""
        if self.sharing is None:
            return ()
        epochs = self._longest // timedelta(milliseconds=self._conf.quota.epoch_ms)
        too_long = () if epochs <= _MOST_EPOCHS else (_TOO_LONG.format(self._longest.total_seconds()),)
        return (*self.sharing.warnings, *too_long)

    def quota_courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went; none where they are not shared."""
        return [] if self.sharing is None else self.sharing.courses()

    @property
    def _shares(self) -> bool:
        """Whether brokers share quotas now."""
        return self.sharing is not None and self.sharing.shares

    def _sharing(self) -> Sharing | None:
        """None where topics are keys: they share no limiter."""
        if self._conf.settings.operator.state_key == "topic":
            return None
        shared = self._job.shared or self._job.output
        exchange = TableExchange(self._conf, shared, self._job.output, self._job.broker)
        return Sharing(self.tables, self.tables.read("control"), self._conf, exchange)

    def _drain(self) -> None:
        """Use the input up. With availableNow no control row of the run itself would be seen before its end, and what
        brokers use would not change what they may; so where quotas are shared, it is used up when nothing is to do.
        """
        if self.sharing is not None and self.sharing.is_in_use:
            self._to_the_end(self._until_idle, processingTime="0 seconds")
        else:
            self._to_the_end(None, availableNow=True)

    def _start(self, trigger: dict[str, Any]) -> StreamingQuery:
        self._caught_up = False
        return super()._start(trigger)

    def _take(self, output: DataFrame, batch_id: int) -> int:
        began_s = time.monotonic()
        rows = self._collected(output, OUTPUT_BLOCKS)
        result = self._writer.write(rows, query_id_of(output), batch_id)
        if self._shares and len(rows["topic_usage"]):
            times = pc.min_max(rows["topic_usage"]["event_time"]).as_py()
            self._longest = max(self._longest, times["max"] - times["min"])
        if self._shares and self._pace is not None:
            self._pace.took(time.monotonic() - began_s, time.monotonic())
        return result.rows

    def dataframe(self) -> DataFrame:
        """A row's way: raw -> parsed and packed by key -> operator. Control rows join where keys meet."""
        settings = self._conf.settings.input
        operator = self._conf.settings.operator
        meter = None if self.sharing is None else self.sharing.meter
        rules = rules_of(self._layout, meter, connection_topics=operator.connection_topics)
        given = tuple(changes_in(self.tables.read("control"))) if self._routing.by_topic else ()
        traffic = read_raw(self._spark, settings, self._job.input, self._job.format).mapInArrow(
            partial(pack_input, self._job.format, settings, self._routing), PACKED
        )
        return traffic.unionByName(self._control()).transform(
            apply_operator, ThrottleOperator(rules, operator.kernel, given)
        )

    def _control(self) -> DataFrame:
        pack_rows = partial(_pack_fed, self._routing)
        return fed_lines(self._spark, self._feed).mapInArrow(partial(fed_rows, pack_rows), PACKED)

    def _prepared(self) -> Layout:
        """Bring the control table up to the conf files; a restart finds the layout that the first start chose.

        A batch that was broken off is done first, under the limits that it was planned with: new ones hold after it.
        """
        control = self.tables.read("control")
        wanted, kept = layout_of(self._conf, whole_brokers=self._are_brokers_whole()), kept_layout(control)
        rows = []
        if not self._has_begun:
            self._refuse_another_checkpoint(control)
            kept = wanted
            rows.append(layout_row(wanted, len(control), self._job.checkpoint))
        elif kept is None:
            raise self._not_of_this_checkpoint()
        check_layout(wanted, kept)
        if not self._is_behind:
            rows += self._limits_and_ticks(control, kept)
        self.tables.append_control(rows)
        return kept

    def _limits_and_ticks(self, control: pa.Table, layout: Layout) -> list[dict[str, Any]]:
        """Rows of what the conf files say and `control` does not, from the highest event time in the tables on, and
        ticks for which every key tells how far it is.
        """
        changed_at = min(self._reached(), datetime.now(UTC))  # a row dated ahead does not put changes off
        said = conf_rows(conf_limits(self._conf), control, changed_at, groups=self.sharing is None)
        self._limits_changed = self._has_begun and bool(said)
        keys = self._keys_in_state() if layout.state_key == "topic" else [None]
        return [*said, *(tick_row(FROM_THE_START, key=key) for key in keys)]

    def _are_brokers_whole(self) -> bool:
        """Whether all topics of a broker need one key: groups are shared, or may be before the checkpoint ends."""
        if self.sharing is None:
            return False
        return self.sharing.is_in_use if self._has_begun else self.sharing.may_be_in_use

    def _not_of_this_checkpoint(self) -> StateError:
        return StateError(
            f"the checkpoint {self._job.checkpoint} has begun, but not with the tables under {self._job.output}: "
            "give the --output that it belongs to, or a new --checkpoint"
        )

    def _refuse_another_checkpoint(self, control: pa.Table) -> None:
        """A new checkpoint takes the input in from its start, and tables that have it already would have it twice."""
        is_new = all(self.tables.is_empty(name) for name in (*OUTPUT_TABLES, "batches"))
        if not is_new or kept_checkpoint(control) not in {None, self._job.checkpoint}:
            raise StateError(
                f"the tables under {self._job.output} are of another checkpoint than {self._job.checkpoint}, which is "
                "new: give the --checkpoint that they were written with, or a new --output"
            )

    def _reached(self) -> datetime:
        """The highest event time that is in the tables: changed conf files hold from there on."""
        reached = pc.max(self.tables.read("batches", ["event_time"])["event_time"]).as_py()
        return FROM_THE_START if reached is None else reached

    def _counted(self, batch_id: int, rows: Mapping[str, pa.Table]) -> None:
        if self._metrics is not None:
            self._metrics.take(batch_id, rows, None if self.sharing is None else self.sharing.figures())

    def _heard(self, result: BatchResult) -> None:
        self.clocks.take(result.progress)
        if self._is_new(result.batch_id):
            self._on_batch(result, self.clocks.throttled_producers)
        if result.rows:
            self._caught_up = 0 < self._files.planned < self._conf.settings.input.max_files_per_trigger

    def _finish(self) -> bool:
        """Time comes to the largest event time of the input everywhere, and what is open is closed."""
        keys = self._keys_in_state() if self._routing.by_topic else [None]
        self.tables.append_control([tick_row(self._reached(), finish=True, key=key) for key in keys])
        return True

    def _keys_in_state(self) -> list[str | None]:
        """Every key of the checkpoint, whose query must not be running: a tick has to name topics that are keys.

        None stands for no state yet: nothing was taken in, or the first batch was broken off and is still to be done.
        """
        if not path_exists(self._spark, f"{self._job.checkpoint}/commits/[0-9]*"):
            return [None]
        state = stored(self._spark, self._job.checkpoint)
        return sorted(row["key"] for row in state.select("key.key").collect())

    def _until_idle(self, query: StreamingQuery) -> None:
        """Go on until nothing is there to be taken in, or a batch took in all that was there: input may never pause."""
        with idle_of(self._spark, query) as idle:
            self._until(query, lambda: idle.since(self._taken_at) or self._caught_up or _has_caught_up(query))

    def _due_ticks(self, is_idle: bool) -> list[dict[str, Any]]:
        return self.clocks.due_ticks(
            self._conf.settings.live,
            time.time_ns() // 1000,
            is_idle=is_idle,
            by_topic=self._routing.by_topic,
            shares=self._shares,
        )


def _pack_fed(routing: Routing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `control` as the operator takes them."""
    return pack_control(routing, without_layouts(pa.Table.from_batches(batches, CONTROL)).to_batches())


def _has_caught_up(query: StreamingQuery) -> bool:
    """Whether the last batch had rows and took in all that its source, if it tells, had as it began (Kafka does)."""
    progress = query.lastProgress
    if progress is None:
        return False
    source = progress["sources"][0]
    newest = source.get("latestOffset")
    return bool(source["numInputRows"]) and newest is not None and source["endOffset"] == newest
