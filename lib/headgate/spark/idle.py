"""Whether a streaming query has taken in all that is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryIdleEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery


class Idle(StreamingQueryListener):
    """When the query last looked for input and found none.

    `query.status` cannot tell: for a moment of every trigger it says that no data is available.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self._run_id = str(query.runId)
        self._last = datetime.min.replace(tzinfo=UTC)

    def since(self, moment: datetime) -> bool:
        return self._last >= moment

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        if str(event.runId) == self._run_id:
            self._last = datetime.fromisoformat(event.timestamp)

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
