"""The foreachBatch stage: one pass over the operator's output, its rows to the Delta tables."""

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from headgate.engines.batches import BatchWriter, rows_by_kind
from headgate.errors import StateError
from headgate.throttle.kinds import OUTPUT_BLOCKS

QUERY_ID = "sql.streaming.queryId"


class TableSink:
    """Gives each batch to `writer`.

    lost: dead letters of the batch under way that did not come through the operator.
    """

    def __init__(self, writer: BatchWriter, lost: Callable[[], pa.Table]) -> None:
        self._writer = writer
        self._lost = lost

    def __call__(self, output: DataFrame, batch_id: int) -> None:
        rows = collected(output, OUTPUT_BLOCKS)
        rows["dead_letters"] = pa.concat_tables([rows["dead_letters"], self._lost()])
        self._writer.write(rows, query_id_of(output), batch_id)


def collected(output: DataFrame, kinds: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The rows of the operator's output by kind: the one pass over it."""
    table = output.toArrow()
    return rows_by_kind(zip(table["kind"].to_pylist(), table["block"].to_pylist(), strict=True), kinds)


def query_id_of(output: DataFrame) -> str:
    """The id of the streaming query whose batch it is: without it a repeated batch could not be told from a new one."""
    query_id = output.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if query_id is None:
        raise StateError(
            "the sink runs outside a streaming query: Spark names none. Use it with writeStream.foreachBatch"
        )
    return query_id
