"""Streams of raw rows: every column as the source has it, with where the row came from. Nothing is judged here."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.spark.feed import PATTERN, VERSIONS_IN_MEMORY, Feed
from headgate.spark.input.file_rows import parquet_rows, path_of_url

_WHOLE_FILES = "1t"
FEED = "headgate.feed"
"""An option that only feeds have, by which a plan tells them from input."""
FILE_FORMATS = ("json", "csv", "parquet")
_PLAIN = re.compile(r"[^\\{}\[\]*?^!,-]")
"""A character that stands for itself also between brackets."""
PAST_DAMAGE = {"ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}
"""Options with which damage ends a file and fails no task: Spark cancels the other tasks of the stage of one that
failed, and with one that was writing to its Python worker at that moment the JVM has died.
"""
TAKEN = "taken"
"""What a batch of files tells on its side: rows by file, none if it is not named, and of text the bytes of all lines.
Exact for up to MOST_FILES files a batch.
"""
MOST_FILES = 100_000


def read_raw(
    spark: SparkSession,
    settings: InputSettings,
    path: str,
    format_: str,
    *,
    once: bool = False,
    files: Sequence[str] = (),
) -> DataFrame:
    """The input as a stream, or `once` as what is there now, of `files` alone if there are any.

    Columns: as `rows.batches.parsed` takes them. source: file, table, or Kafka topic and partition. offset: row from 0
    (Parquet), Kafka offset, null for Delta. Of a file that is damaged or gone it has the rows before the damage, and
    batch_files says what is lost. Raises InputError for an input that is not there or that Spark cannot open.
    """
    sources = {"json": _lines, "csv": _whole_files, "parquet": _parquet, "delta": _delta, "kafka": _kafka}
    if format_ not in sources:
        raise InputError(f"--format: got {format_}; allowed are {', '.join(sources)}")
    options = _Options(settings, once, tuple(files))
    try:
        if format_ != "kafka" and not path_exists(spark, path):
            raise InputError(
                f"--input: nothing is at {path}; give a file, a folder or a pattern that exists, readable for Spark"
            )
        is_stream_of_files = format_ in FILE_FORMATS and not once
        return sources[format_](spark, options, _readable_as_stream(spark, path) if is_stream_of_files else path)
    except SPARK_ERRORS as error:
        raise InputError(f"--input: {path} cannot be read as {format_}: {first_line(error)}{_advice(error)}") from error


class _Options(NamedTuple):
    settings: InputSettings
    once: bool = False
    chosen: tuple[str, ...] = ()

    def reader(self, spark: SparkSession) -> Any:
        """Of a stream, or of what is there now; both have the same methods."""
        return spark.read if self.once else spark.readStream

    def paths(self, path: str) -> str | list[str]:
        """What to load: the path, or the chosen files."""
        return [literal(file) for file in self.chosen] or path

    @property
    def files(self) -> dict[str, str]:
        """Spark's options of a stream of files."""
        return {"maxFilesPerTrigger": str(self.settings.max_files_per_trigger)} | PAST_DAMAGE


def _counted(stream: DataFrame, *more: Column) -> DataFrame:
    """With what it has TAKEN."""
    by_file = F.expr(f"approx_top_k(_metadata.file_path, {MOST_FILES}, {MOST_FILES})")
    return stream.observe(TAKEN, by_file.alias("files"), *more)


def literal(path: str) -> str:
    """The path as one that Spark does not take for a pattern."""
    return PATTERN.sub(r"\\\g<0>", path)


def _readable_as_stream(spark: SparkSession, path: str) -> str:
    """The path, of one file as a pattern: Spark's streams take folders and patterns only."""
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    if not hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).isFile(hadoop):
        return path
    folder, slash, name = path.rpartition("/")
    return folder + slash + _PLAIN.sub(r"[\g<0>]", name, count=1)


def path_exists(spark: SparkSession, path: str) -> bool:
    """Whether anything is at the path or pattern, on any file system that Spark knows."""
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    found = hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).globStatus(hadoop)
    return found is not None and len(found) > 0


def kafka_stream(spark: SparkSession, settings: InputSettings, topic: str) -> DataFrame:
    """Records of a Kafka topic, with the columns of Spark's source."""
    kafka = settings.kafka
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", kafka.starting_offsets)
        .option("maxOffsetsPerTrigger", settings.max_offsets_per_trigger)
        .options(**kafka.spark_options())
        .load()
    )


def appended_rows(spark: SparkSession, path: str) -> DataFrame:
    """Rows of a Delta table as they are appended. Commits that delete or join rows bring nothing."""
    return spark.readStream.format("delta").option("skipChangeCommits", "true").load(path)


def fed_lines(spark: SparkSession, feed: Feed) -> DataFrame:
    """Lines of a feed (feed.fed_rows). Spark deletes a file once the batch that read it is committed."""
    return (
        spark.readStream.format("text")
        .option("maxFileAge", f"{VERSIONS_IN_MEMORY}s")
        .option("fileNameOnly", "true")
        .option("cleanSource", "delete")
        .option(FEED, feed.name)
        .load(feed.place)
    )


def _place() -> Column:
    """The file, and where in it the part of the file starts that a task reads, if that is not its beginning."""
    start = F.col("_metadata.file_block_start")
    return F.when(start == 0, F.col("_metadata.file_path")).otherwise(
        F.concat("_metadata.file_path", F.lit("#byte="), start.cast("string"))
    )


def _lines(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    lines: DataFrame = (
        options.reader(spark)
        .format("text")
        .options(**options.files)
        .load(options.paths(path))
        .transform(_counted, F.sum(F.octet_length("value")).alias("bytes"))
        .select(F.col("value").cast("binary").alias("value"), _place().alias("source"))
    )
    return lines


def _whole_files(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    """Lines of CSV: a task has to read a file from its header to its last line.

    Spark cuts files at each core's share of the bytes unless opening one costs more: then a partition holds one file.
    """
    spark.conf.set("spark.sql.files.maxPartitionBytes", _WHOLE_FILES)
    spark.conf.set("spark.sql.files.openCostInBytes", _WHOLE_FILES)
    return _lines(spark, options, path)


def _typed(frame: DataFrame, source: Column, offset: Column) -> DataFrame:
    """Every column as the input has it."""
    return frame.select(
        F.struct(*(_named(name) for name in frame.columns)).alias("row"), source.alias("source"), offset.alias("offset")
    )


def _named(column: str) -> Column:
    """The top-level column of that name, dots and all."""
    return F.col("`" + column.replace("`", "``") + "`")


def _parquet(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    """The columns of the files that are there; Spark cannot add any while a query runs."""
    reader = options.reader(spark).schema(_parquet_schema(spark, path)).options(**options.files)
    return _typed(
        _counted(reader.format("parquet").load(options.paths(path))),
        F.col("_metadata.file_path"),
        F.col("_metadata.row_index"),
    )


def _parquet_schema(spark: SparkSession, path: str) -> T.StructType:
    """Of all files that are not damaged together or, where a column has several types, of the first one alone.

    If all are damaged, it raises what is wrong with the first.
    """
    reader = spark.read.options(**PAST_DAMAGE)
    try:
        return reader.option("mergeSchema", "true").parquet(path).schema
    except SPARK_ERRORS:
        try:
            return reader.option("mergeSchema", "false").parquet(path).schema
        except SPARK_ERRORS:
            for file in spark.read.text(path).inputFiles():
                parquet_rows(spark, path_of_url(spark, file))
            raise


def _delta(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    stream = options.reader(spark).format("delta").option("maxFilesPerTrigger", options.settings.max_files_per_trigger)
    return _typed(stream.load(path), F.lit(path), F.lit(None).cast("long"))


def _kafka(spark: SparkSession, options: _Options, topic: str) -> DataFrame:
    """Values are JSON objects, one a record."""
    source = F.concat_ws("/", "topic", "partition").alias("source")
    return kafka_stream(spark, options.settings, topic).select("value", source, "offset")


def _advice(error: Exception) -> str:
    for sign, advice in {
        "UNABLE_TO_INFER_SCHEMA": "give a folder with at least one Parquet file, or the right --format",
        "is not a Parquet file": "give a folder whose first file is Parquet, or the right --format",
        "DELTA_SCHEMA_NOT_SET": "give the folder of a Delta table, or the right --format",
        "NANOS": "write its times in microseconds",
        "S3AFileSystem not found": "start with ./spark-submit.sh --with-s3, or install with deploy/install.sh",
        "data source: kafka": "start with ./spark-submit.sh --with-kafka, or install with deploy/install.sh",
    }.items():
        if sign in str(error):
            return f". To do: {advice}"
    return ""
