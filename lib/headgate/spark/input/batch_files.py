"""Input files of a batch: of which of them rows are lost, and which Spark would count several times.

Spark reads on past damage (sources.read_raw), so no task fails for it. Once a batch is computed, the rows that it has
taken of each file are compared with those that the file has. A file that lacks rows is told of in a dead letter, and
the stream goes on. A batch is never failed for one: the state that it has written would stay, whatever its next run
reads.
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

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.errors import InputError
from headgate.rows.files import UNREADABLE, unreadable
from headgate.spark.failures import SPARK_ERRORS, first_line, is_interrupt
from headgate.spark.feed import PATTERN
from headgate.spark.input.file_rows import parquet_rows, path_of_url, text_lines
from headgate.spark.input.sources import FEED, PAST_DAMAGE, TAKEN, literal

Counts = TypeVar("Counts")

_CHANGED = "changed while it was read, or could not be read for a moment"


class PlannedFiles(NamedTuple):
    """Files of one input in a batch, with those that are gone; `relation` is Spark's own (Java)."""

    relation: Any
    paths: list[str]


class Taken(NamedTuple):
    """What a batch or a pass has taken: rows by file, and bytes of text without line ends."""

    rows: dict[str, int]
    text_bytes: int


class Loss(NamedTuple):
    """A file of which rows may be lost."""

    path: str
    what: str
    why: str


def planned_files(query: StreamingQuery) -> list[PlannedFiles]:
    """Input files that Spark has planned into the batch under way, but for those of Delta tables and feeds."""
    return [
        PlannedFiles(relation, relation.location().rootPaths().mkString("\0").split("\0"))
        for relation in _relations(query._jsq.streamingQuery().lastExecution().logical())
    ]


def files_that_spark_multiplies(planned: Iterable[PlannedFiles]) -> list[str]:
    """Files whose path could be a pattern: with one in a batch, Spark 4.2 takes files of it several times."""
    return [path for _, paths in planned if len(paths) > 1 for path in paths if PATTERN.search(path)]


def unreadable_files(spark: SparkSession, query: StreamingQuery, planned: Iterable[PlannedFiles]) -> pa.Table:
    """Dead letters (schemas.DEAD_LETTERS) of every file of which the batch, which is computed, lacks a row.

    Those are the files that cannot be read to their end or are gone, and those that can be read now, but have more rows
    than the batch has of them: they were being written, or could not be read for a moment.
    """
    taken = _taken(spark, query._jsq.streamingQuery().lastExecution())
    return _letters(loss for files in planned for loss in _losses(spark, files, taken))


def readable_rows(
    spark: SparkSession, input_: str, read: Callable[[Sequence[str]], DataFrame], count: Callable[[DataFrame], Counts]
) -> tuple[DataFrame, pa.Table, Counts]:
    """The rows of files that can be read to their end, persisted; dead letters of the others; what was counted.

    read: the rows of these files, of all where none are named. count: goes over every row that it is given. Raises
    InputError where no file can be read, and what both raise.
    """
    lost: list[Loss] = []
    files: list[str] = []
    while True:
        rows = read(files).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            counts = count(rows)
            found, files = _sorted_out(spark, rows)
        except BaseException:
            rows.unpersist()
            raise
        lost += found
        if not found:
            return rows, _letters(lost), counts
        rows.unpersist()
        if not files:
            raise InputError(f"--input: no file of {input_} can be read to its end: {lost[0].why}")


def _sorted_out(spark: SparkSession, rows: DataFrame) -> tuple[list[Loss], list[str]]:
    """Of the files behind rows that are persisted and computed: those that rows are lost of, and the others."""
    execution = rows._jdf.queryExecution()
    taken = _taken(spark, execution)
    lost: list[Loss] = []
    whole: list[str] = []
    for relation in _relations(execution.analyzed()):
        files = PlannedFiles(relation, _paths(relation.location().allFiles()))
        found = list(_losses(spark, files, taken))
        lost += found
        whole += set(files.paths) - {loss.path for loss in found}
    return lost, sorted(whole)


def _losses(spark: SparkSession, files: PlannedFiles, taken: Taken) -> Iterator[Loss]:
    """Spark is silent about files that are gone before it plans a batch that is run again, too."""
    present = files.relation.location().allFiles()
    paths = files.paths
    if present.size() < len(paths):
        found = set(_paths(present))
        yield from (Loss(path, UNREADABLE, "it is gone") for path in paths if path not in found)
        paths = [path for path in paths if path in found]
    losses = _of_parquet if files.relation.fileFormat().shortName() == "parquet" else _of_text
    yield from losses(spark, PlannedFiles(files.relation, paths), taken)


def _of_parquet(spark: SparkSession, files: PlannedFiles, taken: Taken) -> Iterator[Loss]:
    for path in files.paths:
        try:
            rows = parquet_rows(spark, path)
        except SPARK_ERRORS as error:
            yield _unread(path, error)
            continue
        if taken.rows.get(path, 0) < rows:
            readable = _readable_rows(spark, files.relation, path)
            if readable < rows:
                why = f"{readable:,} of its {rows:,} rows can be read with the columns and types of the input"
                yield Loss(path, UNREADABLE, why)
            else:
                yield _changed(path, taken, rows)


def _of_text(spark: SparkSession, files: PlannedFiles, taken: Taken) -> Iterator[Loss]:
    """Lines of plain text that account for all bytes need no look; of other files they are counted once more.

    Those are compressed files, whose bytes say nothing, and lines with more than a byte at the end.
    """
    lines = text_lines(spark)
    accounted = taken.text_bytes + sum(taken.rows.values())
    if files.relation.location().sizeInBytes() <= accounted and not any(map(lines.is_compressed, files.paths)):
        return
    for path in files.paths:
        try:
            rows = lines.count(path)
        except SPARK_ERRORS as error:
            yield _unread(path, error)
            continue
        if taken.rows.get(path, 0) < rows:
            yield _changed(path, taken, rows)


def _unread(path: str, error: Exception) -> Loss:
    """Raises the error where it is a stop's: the batch is run again, and reads the file then."""
    if is_interrupt(error):
        raise error
    return Loss(path, UNREADABLE, first_line(error))


def _changed(path: str, taken: Taken, rows: int) -> Loss:
    counts = f"{taken.rows.get(path, 0):,} lines or rows were taken, now it has {rows:,}"
    return Loss(path, _CHANGED, counts)


def _readable_rows(spark: SparkSession, relation: Any, path: str) -> int:
    """Counted while every column is read, as far as it can be."""
    schema = T.StructType.fromJson(json.loads(relation.dataSchema().json()))
    frame = spark.read.schema(schema).options(**PAST_DAMAGE).parquet(literal(path))
    counted = Observation()
    frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    rows: int = counted.get["rows"]
    return rows


def _taken(spark: SparkSession, execution: Any) -> Taken:
    """As an execution (Java) has counted it (sources.TAKEN). Nothing is told where there was no row."""
    told = execution.observedMetrics()
    if not told.contains(TAKEN):
        return Taken({}, 0)
    counts = json.loads(told.apply(TAKEN).json())
    rows = {path_of_url(spark, file["item"]): file["count"] for file in counts["files"]}
    return Taken(rows, counts.get("bytes") or 0)


def _letters(losses: Iterable[Loss]) -> pa.Table:
    letters = [unreadable(loss.path, loss.why, loss.what) for loss in losses]
    return pa.Table.from_pylist(letters, DEAD_LETTERS)


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
