"""The life of a streaming query that writes tables: what may begin, and an end between two batches."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import StateError
from headgate.spark.ending import POLL_S, end_query, is_committed
from headgate.spark.feed import Feed
from headgate.spark.idle import idle_of
from headgate.spark.sources import literal, path_exists
from headgate.tables.delta import Tables


class QueryLife:
    """A query runs until it ends by itself, or `stop` is set: then to the end of the batch under way.

    broken_off: a batch took too long for that; the next start runs it again. ended_batch: the last one that is in its
    tables, -1: none. taken_at: when the last one with rows was. feed: what the query reads beside its input; it is fed
    before the query starts, after each batch, and while `follow` waits.
    """

    def __init__(self, stop: threading.Event, feed: Feed | None = None) -> None:
        self.stop = stop
        self._feed = feed
        self.broken_off = False
        self.ended_batch = -1
        self.taken_at = datetime.now(UTC)
        self._batch_ended = threading.Event()

    def run(
        self, start: Callable[[], StreamingQuery], wait: Callable[[StreamingQuery], None] | None = None
    ) -> StreamingQueryException | None:
        """Why the query failed; None if it ended or a stop was asked for. wait: returns when it is to end."""
        query = start()
        try:
            (wait or self.until_ended)(query)
        finally:
            self._batch_ended.clear()
            if end_query(query, lambda: self._batch_ended.is_set() and is_committed(query, self.ended_batch)):
                self.broken_off = True
        return None if self.stop.is_set() else query.exception()

    def start(
        self,
        name: str,
        checkpoint: str,
        rows: Callable[[], DataFrame],
        take: Callable[[DataFrame, int], None],
        **trigger: Any,
    ) -> StreamingQuery:
        """A query that gives `take` each batch of the rows."""
        feed = self._feed
        if feed is not None:
            feed.begin()

        def take_and_feed(output: DataFrame, batch_id: int) -> None:
            take(output, batch_id)
            if feed is not None:
                feed.feed()

        stream = rows().writeStream.foreachBatch(take_and_feed)
        return stream.option("checkpointLocation", checkpoint).queryName(name).trigger(**trigger).start()

    def write(
        self,
        name: str,
        checkpoint: str,
        rows: Callable[[], DataFrame],
        take: Callable[[DataFrame, int], None],
        wait: Callable[[StreamingQuery], None] | None = None,
        **trigger: Any,
    ) -> None:
        """Run a query as `start` starts it. Raises what fails of Spark's. wait: as of `run`."""
        failure = self.run(partial(self.start, name, checkpoint, rows, take, **trigger), wait)
        if failure is not None:
            raise failure

    def until_ended(self, query: StreamingQuery) -> None:
        """Wait for the query's own end, or a stop."""
        while query.isActive and not self.stop.wait(POLL_S):
            pass

    def follow(
        self, spark: SparkSession, query: StreamingQuery, interval_s: float, tick: Callable[[bool], None]
    ) -> None:
        """Wait for the query's own end, or a stop, feed, and let time go on every interval_s, POLL_S at the least.

        tick: is told whether the query has taken in all that is there.
        """
        interval_s = max(interval_s, POLL_S)
        due_s = time.monotonic() + interval_s
        with idle_of(spark, query) as idle:
            while query.isActive and not self.stop.wait(POLL_S):
                if self._feed is not None:
                    self._feed.feed_beside()
                if time.monotonic() >= due_s:
                    due_s = time.monotonic() + interval_s
                    tick(idle.since(self.taken_at))

    def heard(self, batch_id: int, rows: int) -> None:
        """A batch is in its tables, and brought so many rows."""
        self.ended_batch = batch_id
        if rows:
            self.taken_at = datetime.now(UTC)
        self._batch_ended.set()


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
