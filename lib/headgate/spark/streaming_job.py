"""One start of a job around its streaming query: what may begin, how it goes on, and an end between two batches."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, StateError
from headgate.heap import leave_loaded_alone
from headgate.spark.failures import SPARK_ERRORS, in_words, is_interrupt
from headgate.spark.feed import Feed, has_open_batch
from headgate.spark.idle import idle_of
from headgate.spark.input.input_files import InputFiles
from headgate.spark.input.sources import literal, path_exists
from headgate.spark.session import prepare_checkpoint
from headgate.spark.silence import Silence
from headgate.spark.sink import collected
from headgate.store_errors import said
from headgate.tables.delta import PatientAppend, Tables

POLL_S = 0.1
STOP_WAIT_S = 30


def end_query(query: StreamingQuery, is_between: Callable[[], bool]) -> bool:
    """Stop the query between two batches. True: one took longer than STOP_WAIT_S, and was broken off.

    is_between: whether a batch has ended since this was called, and Spark has noted that.
    """
    deadline_s = time.monotonic() + STOP_WAIT_S
    broken_off = False
    while query.isActive and query.status["isTriggerActive"]:
        if is_between():
            break
        if time.monotonic() > deadline_s:
            broken_off = True
            break
        time.sleep(POLL_S)
    query.stop()
    return broken_off


def is_committed(query: StreamingQuery, batch_id: int) -> bool:
    """Whether Spark has noted that the batch is done, and will not run it again at the next start."""
    progress = query.lastProgress
    return progress is not None and progress["batchId"] >= batch_id


CLOSING_BATCHES = 5


@dataclass(frozen=True)
class Schedule:
    """once: end when the input is used up. interval_ms: from the start of one batch to that of the next."""

    once: bool
    interval_ms: int


class Ticks(NamedTuple):
    """How a job lets time go on in live input, where nothing comes that would move it.

    due: ticks for what waits for that; is told whether all that is there is taken in. append: writes them.
    """

    interval_ms: int
    due: Callable[[bool], list[dict[str, Any]]]
    append: Callable[[list[dict[str, Any]]], None]


_NO_TICKS = Ticks(0, lambda _: [], lambda _: None)


class StreamingJob:
    """Runs its query until the input is used up (`once`), or `stop` is set: then to the end of the last begun batch.

    If a batch does not end within STOP_WAIT_S, the job aborts it, and the next start reruns it. With `once`, rows that
    arrive during the run are taken in as well. When the input is used up, a closing batch ends all that is open. If
    rows arrive with it, another one follows, up to CLOSING_BATCHES, so that a run ends on a source that keeps growing.

    Each job implements `dataframe` and `_take`, and overrides `_begin`, `_drain`, `_finish` and `_end` as
    needed. `_feed`: what the query reads besides its input; it is fed before the query starts, after each batch, and
    during a batch of a live run. `_files`: input files of which rows may be lost. `_ticks`: how time goes on.
    """

    name: ClassVar[str]
    _ticks: Ticks = _NO_TICKS
    _feed: Feed | None = None
    _files: InputFiles | None = None

    def __init__(self, spark: SparkSession, checkpoint: str, stop: threading.Event, schedule: Schedule) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._stop = stop
        self._schedule = schedule
        self.broken_off = False
        """Whether a batch took too long to wait for its end."""
        self._has_failed = False
        """Whether the query failed after a stop: nothing more is done then, as after a crash."""
        self._ended_batch = -1
        """The last one that is in its tables, -1: none."""
        self._taken_at = datetime.now(UTC)
        self._taken = 0
        self._batch_ended = threading.Event()

    def dataframe(self) -> DataFrame:
        """A row's way from the source to the operator's output."""
        raise NotImplementedError

    def _take(self, output: DataFrame, batch_id: int) -> int:
        """Bring a batch to its tables. Returns how many rows of input it had."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Before the query starts. If a stop comes meanwhile, it does not."""

    def _drain(self) -> None:
        """Use the input up."""
        self._to_the_end(None, availableNow=True)

    def _finish(self) -> bool:
        """Write what makes a batch let all that is open end; False: nothing is to be closed."""
        return False

    def _end(self) -> None:
        """After the query has ended, and has not failed."""

    def run(self) -> bool:
        """Return True when the input is used up (`once`), False once `stop` is set.

        Raises InputError for an input file that cannot be taken as it is (one that cannot be read is a dead letter),
        StreamingQueryException for what fails otherwise, TableError for ticks that cannot be written.
        """
        self._begin()
        if not self._stop.is_set():
            leave_loaded_alone()  # Spark keeps a query for as long as Python has its DataFrame, in a cycle, too
            self._run_on()
        if self._stop.is_set() and not (self._has_failed or self.broken_off) and self._is_batch_open():
            self._complete()
        if not self._has_failed:
            self._end()
        return not self._stop.is_set()

    def _run_on(self) -> None:
        if self._schedule.once:
            self._drain()
            self._close()
        else:
            self._to_the_end(self._follow, processingTime=f"{self._schedule.interval_ms} milliseconds")

    def _close(self) -> None:
        if not self._stop.is_set() and self._is_batch_open():  # a closing batch would be that one
            self.broken_off = False
            self._to_the_end(None, once=True)
        for _ in range(CLOSING_BATCHES):
            taken, ended = self._taken, self._ended_batch
            if self._stop.is_set() or not self._finish():
                return
            self._to_the_end(None, once=True)
            if self._taken == taken and self._ended_batch > ended:
                return

    def _to_the_end(self, wait: Callable[[StreamingQuery], None] | None, **trigger: Any) -> None:
        """Run the query. wait: returns when it is to end, None: it ends by itself."""
        query = self._start(trigger)
        try:
            (wait or self._until_ended)(query)
        finally:
            self._batch_ended.clear()
            if end_query(query, lambda: self._batch_ended.is_set() and is_committed(query, self._ended_batch)):
                self.broken_off = True
        self._heed_failure(query)

    def _complete(self) -> None:
        """Run the batch that Spark had begun before it noticed the stop, as it does where more input waits.

        Where that cannot begin, it is told, and left to the next start.
        """
        try:
            query = self._start({"once": True})
        except (HeadgateError, *SPARK_ERRORS) as error:
            self._tell(str(error) if isinstance(error, HeadgateError) else in_words(error))
            return
        deadline_s = time.monotonic() + STOP_WAIT_S
        while query.isActive and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        self.broken_off = query.isActive
        query.stop()
        self._heed_failure(query)

    def _is_batch_open(self) -> bool:
        try:
            return has_open_batch(self._checkpoint)
        except OSError as error:
            self._tell(f"whether a batch has begun cannot be told: {said(error)}; if so, it is run before any other")
            return False

    def _heed_failure(self, query: StreamingQuery) -> None:
        """Raise what failed; after a stop it is told, and the next start runs the batch."""
        failure = query.exception()
        if failure is None:
            return
        if not self._stop.is_set():
            raise (self._files and self._files.refused) or failure
        if not is_interrupt(failure):
            self._has_failed = True
            self._tell(in_words(failure))

    def _start(self, trigger: dict[str, Any]) -> StreamingQuery:
        if self._feed is not None:
            self._feed.begin()
        prepare_checkpoint(self._spark, self._checkpoint)
        stream = self.dataframe().writeStream.foreachBatch(self._take_and_feed)
        stream = stream.option("checkpointLocation", self._checkpoint).queryName(self.name).trigger(**trigger)
        return stream.start() if self._files is None else self._files.of_query(stream.start)

    def _take_and_feed(self, output: DataFrame, batch_id: int) -> None:
        rows = self._take(output, batch_id)
        if self._is_new(batch_id):
            self._taken += rows
            self._ended_batch = batch_id
        if rows:
            self._taken_at = datetime.now(UTC)
        self._batch_ended.set()
        if self._feed is not None:
            self._feed.feed()

    def _collected(self, output: DataFrame, kinds: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
        """The batch's rows by kind, with dead letters of input files that rows of it were lost of."""
        rows = collected(output, kinds)
        if self._files is not None:
            rows["dead_letters"] = pa.concat_tables([rows["dead_letters"], self._files.lost()])
        return rows

    def _is_new(self, batch_id: int) -> bool:
        """Whether the batch was not heard of before. Spark reruns a batch that it has not noted as done."""
        return batch_id > self._ended_batch

    def _until_ended(self, query: StreamingQuery) -> None:
        """Wait for the query's own end, or a stop."""
        self._until(query, lambda: False)

    def _until(self, query: StreamingQuery, is_done: Callable[[], bool]) -> None:
        """Wait for the query's own end, a stop, or what `is_done` says."""
        while query.isActive and not self._stop.wait(POLL_S) and not is_done():
            pass

    def _follow(self, query: StreamingQuery) -> None:
        """Wait for the query's own end, or a stop; feed, and let time go on.

        Ticks that could not be written are due again after the next interval, until that has failed too often.
        """
        append = PatientAppend(self._ticks.append)
        interval_s = max(self._ticks.interval_ms / 1000, POLL_S)
        due_s = time.monotonic() + interval_s
        silence = Silence(lambda: str(query.status["message"]), self._tell, self._schedule.interval_ms / 1000)
        with idle_of(self._spark, query) as idle:
            while query.isActive and not self._stop.wait(POLL_S):
                silence.look((self._ended_batch, idle.last), time.monotonic())
                if self._feed is not None:
                    self._feed.feed_beside()
                if time.monotonic() >= due_s:
                    due_s = time.monotonic() + interval_s
                    append(self._ticks.due(idle.since(self._taken_at)))

    def _tell(self, text: str) -> None:
        sys.stderr.write(f"{self.name}: {text}\n")


def refuse_another_checkpoint(spark: SparkSession, checkpoint: str, output: str, tables: Tables, *names: str) -> None:
    """Raise StateError where tables have rows that a query with this checkpoint did not write.

    A new one takes the input in from its start, and they would have it twice. names: tables that batches write.
    """
    held = [name for name in names if not tables.is_empty(name)]
    is_new = not path_exists(spark, f"{checkpoint}/offsets")
    if not held or not (is_new or tables.are_strange_to(_query_id(spark, checkpoint), *held)):
        return
    raise StateError(
        f"the tables {', '.join(held)} under {output} are of another checkpoint than {checkpoint}, which "
        f"{'is new' if is_new else 'has begun with others'}: give the --checkpoint that they were written with, or "
        "move them away"
    )


def _query_id(spark: SparkSession, checkpoint: str) -> str:
    """Of the query that began the checkpoint, and under which tables keep its transactions."""
    (metadata,) = spark.read.json(literal(f"{checkpoint}/metadata")).select("id").collect()
    return str(metadata["id"])
