"""Input files: which of them cannot be read or are gone, which Spark would count several times.

A file that cannot be read is told of in a dead letter, and the stream goes on without it. A batch is never failed for
one once it is computed: the state that it has written would stay, whatever its next run reads.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import InputError
from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.spark.sources import FEED, PATTERN, ROWS_BY_FILE, literal
from headgate.throttle.schemas import DEAD_LETTERS

Counts = TypeVar("Counts")

_CONDITION = "FAILED_READ_FILE"
_UNREADABLE = "cannot be read to its end"
_STRICTLY = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}


def is_unreadable_file(failure: Exception) -> bool:
    """Whether a query failed for a file that is damaged, of another format or types, or gone."""
    return _CONDITION in str(failure)


class PlannedFiles(NamedTuple):
    """Files of one input in a batch, with those that are gone; `relation` is Spark's own (Java)."""

    relation: Any
    paths: list[str]


def planned_files(query: StreamingQuery) -> list[PlannedFiles]:
    """Input files that Spark has planned into the batch under way, but for those of Delta tables."""
    return [
        PlannedFiles(relation, relation.location().rootPaths().mkString("\0").split("\0"))
        for relation in _relations(query._jsq.streamingQuery().lastExecution().logical())
    ]


def files_that_spark_multiplies(planned: Iterable[PlannedFiles]) -> list[str]:
    """Files whose path could be a pattern: with one in a batch, Spark 4.2 takes files of it several times."""
    return [path for _, paths in planned if len(paths) > 1 for path in paths if PATTERN.search(path)]


def missing_files(planned: Iterable[PlannedFiles]) -> pa.Table:
    """Dead letters (schemas.DEAD_LETTERS) of files that were gone before the batch could be planned.

    Spark is silent about them: a batch that is run again has the files that it had, less those that are gone.
    """
    letters = []
    for relation, paths in planned:
        files = relation.location().allFiles()
        if files.size() < len(paths):
            present = set(_paths(files))
            letters += [_letter(path, _UNREADABLE, "it is gone") for path in paths if path not in present]
    return pa.Table.from_pylist(letters, DEAD_LETTERS)


def unreadable_files(spark: SparkSession, query: StreamingQuery, planned: Iterable[PlannedFiles]) -> pa.Table:
    """Dead letters (schemas.DEAD_LETTERS) of every file of which the batch may lack a row.

    Those are the files that cannot be read to their end or are gone, and those that can be read now, but not with as
    many rows as the batch has of them: they were being written, or could not be read for a moment. So every file is
    read once more, nothing left out. This is for a computed batch of a stream that leaves damage out (sources.read_raw,
    past_damage), which takes the rows before the damage.
    """
    taken = _rows_taken(spark, query)
    letters = []
    for path, rows in _read_once_more(spark, planned):
        if isinstance(rows, str):
            letters.append(_letter(path, _UNREADABLE, rows))
        elif rows != taken.get(path, 0):
            counts = f"{taken.get(path, 0):,} lines or rows were taken, now it has {rows:,}"
            letters.append(_letter(path, "changed while it was read, or could not be read for a moment", counts))
    return pa.Table.from_pylist(letters, DEAD_LETTERS)


def damaged_files(spark: SparkSession, frame: DataFrame) -> tuple[pa.Table, list[str]]:
    """Of the files behind `frame`, no stream: dead letters (schemas.DEAD_LETTERS) of those that cannot be read to their
    end, and the others.
    """
    letters, whole = [], []
    for relation in _relations(frame._jdf.queryExecution().analyzed()):
        files = PlannedFiles(relation, _paths(relation.location().allFiles()))
        for path, rows in _read_once_more(spark, [files]):
            if isinstance(rows, str):
                letters.append(_letter(path, _UNREADABLE, rows))
            else:
                whole.append(path)
    return pa.Table.from_pylist(letters, DEAD_LETTERS), whole


def readable_rows(
    spark: SparkSession, input_: str, read: Callable[[Sequence[str]], DataFrame], count: Callable[[DataFrame], Counts]
) -> tuple[DataFrame, pa.Table, Counts]:
    """The rows of an input, persisted; dead letters of files that are left out (damaged_files); what was counted.

    read: the rows of these files, of all where none are named. count: goes over every row that it is given. Raises
    InputError where no file can be read, and what both raise.
    """
    rows = read(()).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return rows, DEAD_LETTERS.empty_table(), count(rows)
    except (InputError, *SPARK_ERRORS) as error:
        rows.unpersist()
        if not is_unreadable_file(error):
            raise
        lost, whole = damaged_files(spark, rows)
        if not whole:
            raise InputError(f"--input: no file of {input_} can be read to its end: {first_line(error)}") from error
    rows = read(whole).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return rows, lost, count(rows)
    except BaseException:
        rows.unpersist()
        raise


def _read_once_more(spark: SparkSession, planned: Iterable[PlannedFiles]) -> Iterator[tuple[str, int | str]]:
    """For each file how many rows it has, or why they cannot be read."""
    for relation, paths in planned:
        schema = T.StructType.fromJson(json.loads(relation.dataSchema().json()))
        reader = spark.read.format(relation.fileFormat().shortName()).schema(schema).options(**_STRICTLY)
        for path in paths:
            try:
                yield path, _rows(reader.load(literal(path)))
            except SPARK_ERRORS as error:
                yield path, first_line(error)


def _rows(frame: DataFrame) -> int:
    """Counted while every column is read."""
    counted = Observation()
    frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    rows: int = counted.get["rows"]
    return rows


def _rows_taken(spark: SparkSession, query: StreamingQuery) -> dict[str, int]:
    """Rows by file, as the batch under way has counted them (sources.ROWS_BY_FILE)."""
    told = query._jsq.streamingQuery().lastExecution().observedMetrics()
    if not told.contains(ROWS_BY_FILE):
        return {}
    files = json.loads(told.apply(ROWS_BY_FILE).json())["files"]
    paths = spark._jvm.org.apache.spark.paths.SparkPath  # type: ignore[union-attr]
    return {paths.fromUrlString(file["item"]).toPath().toString(): file["count"] for file in files}


def _letter(path: str, what: str, why: str) -> dict[str, Any]:
    reason = f"the file {what}; rows that are not read are lost: {why}"
    return {"reason": reason, "raw": None, "source": path, "offset": None}


def _paths(files: Any) -> list[str]:
    """Of a sequence of files (Scala)."""
    return [files.apply(i).getPath().toString() for i in range(files.size())]


def _relations(plan: Any) -> Iterator[Any]:
    """The file relations of a logical plan (Java)."""
    leaves = plan.collectLeaves()
    for leaf in (leaves.apply(i) for i in range(leaves.size())):
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            is_feed = relation.options().contains(FEED)
            if not is_feed and "Delta" not in relation.fileFormat().getClass().getSimpleName():
                yield relation
