"""Whether a streaming query has taken in all that is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryIdleEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery


class _WithoutProgress(JStreamingQueryListener):
    """Leaves progress reports unread: each field takes a call, and Java then searches its whole class path for names.

    That was half of Java's CPU time of a small batch.
    """

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802  Spark's name
        pass


class Idle(StreamingQueryListener):
    """When the query last looked for input and found none.

    `query.status` cannot tell: for a moment of every trigger it says that no data is available.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self._run_id = str(query.runId)
        self.last = datetime.min.replace(tzinfo=UTC)

    @cached_property
    def _jlistener(self) -> Any:
        return SparkContext._jvm.PythonStreamingQueryListenerWrapper(_WithoutProgress(self))  # type: ignore[union-attr]

    def since(self, moment: datetime) -> bool:
        return self.last >= moment

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        if str(event.runId) == self._run_id:
            self.last = datetime.fromisoformat(event.timestamp)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


@contextmanager
def idle_of(spark: SparkSession, query: StreamingQuery) -> Iterator[Idle]:
    """Listens while the block runs."""
    idle = Idle(query)
    spark.streams.addListener(idle)
    try:
        yield idle
    finally:
        spark.streams.removeListener(idle)
