"""The end of a streaming query: between two batches, if the one under way does not take too long."""

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

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
