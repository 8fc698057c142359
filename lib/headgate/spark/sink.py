"""What the foreachBatch stage of every job does: one pass over the operator's output, and the name of its query."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from headgate.engines.batches import rows_by_kind
from headgate.errors import StateError

QUERY_ID = "sql.streaming.queryId"


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
