"""The input files of the batch under way: which of them cannot be read, which Spark would count several times.

A file that cannot be read is told of in a dead letter, and the stream goes on without it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.throttle.schemas import DEAD_LETTERS

_CONDITION = "FAILED_READ_FILE"
_PATTERN = re.compile(r"[\\{}\[\]*?]")


def is_unreadable_file(failure: Exception) -> bool:
    """Whether a query failed for a file that is damaged, of another format or types, or gone."""
    return _CONDITION in str(failure)


def files_that_spark_multiplies(query: StreamingQuery) -> list[str]:
    """Files whose path could be a pattern: with one in a batch, Spark 4.2 takes files of it several times."""
    planned = [relation.location().rootPaths().mkString("\n").split("\n") for relation in _relations(query)]
    return [path for paths in planned if len(paths) > 1 for path in paths if _PATTERN.search(path)]


def unreadable_files(spark: SparkSession, query: StreamingQuery) -> pa.Table:
    """Dead letters (schemas.DEAD_LETTERS) of the files that cannot be read to their end.

    Every file is read once more, so this is for runs that have met such a file. The stream itself takes the rows before
    the damage.
    """
    letters = []
    for relation in _relations(query):
        schema = T.StructType.fromJson(json.loads(relation.dataSchema().json()))
        reader = spark.read.format(relation.fileFormat().shortName()).schema(schema)
        for path in _present(relation):
            try:
                reader.load(_PATTERN.sub(r"\\\g<0>", path)).write.format("noop").mode("overwrite").save()
            except SPARK_ERRORS as error:
                reason = f"the file cannot be read to its end; rows that are not read are lost: {first_line(error)}"
                letters.append({"reason": reason, "raw": None, "source": path, "offset": None})
    return pa.Table.from_pylist(letters, DEAD_LETTERS)


def _relations(query: StreamingQuery) -> Iterator[Any]:
    """What Spark has planned into the batch, but for Delta tables, whose files Delta looks after."""
    leaves = query._jsq.streamingQuery().lastExecution().logical().collectLeaves()
    for leaf in (leaves.apply(i) for i in range(leaves.size())):
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            if "Delta" not in relation.fileFormat().getClass().getSimpleName():
                yield relation


def _present(relation: Any) -> list[str]:
    """Without those that are gone since they were planned."""
    files = relation.location().allFiles()
    return [files.apply(i).getPath().toString() for i in range(files.size())]
