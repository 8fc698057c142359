"""Streams of raw rows: every column as the source has it, with where the row came from. Nothing is judged here."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.spark.csv_lines import COLUMNS, split_csv
from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.throttle.routing import BLANK_LINE

_WHOLE_FILES = "1t"
PATTERN = re.compile(r"[\\{}\[\]*?]")
"""What Spark takes for a pattern in a path."""
FILE_FORMATS = ("json", "csv", "parquet")
_PLAIN = re.compile(r"[^\\{}\[\]*?^!,-]")
"""A character that stands for itself also between brackets."""
ROWS_BY_FILE = "rows by file"
"""What a batch that leaves damage out tells on its side: how many rows it has taken of each file, none if it is not
named. Exact for up to MOST_FILES files a batch.
"""
MOST_FILES = 100_000
_HALF = r"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F])"
"""In the text of a JSON object without its escaped backslashes: half of what stands in pairs in UTF-16."""
HALF_CHARACTER = r"a name holds half of a character: \ud800 to \udbff and \udc00 to \udfff stand in pairs"
NOT_UTF8 = "the line is not UTF-8; what cannot be read is shown as \N{REPLACEMENT CHARACTER}"


def read_raw(
    spark: SparkSession,
    settings: InputSettings,
    path: str,
    format_: str,
    *,
    past_damage: bool = False,
    once: bool = False,
    files: Sequence[str] = (),
    columns: Sequence[str] = COLUMNS,
) -> DataFrame:
    """The input as a stream, or `once` as what is there now, of `files` alone if there are any.

    Columns: `columns`, `raw` (the row), `source`, `offset`, `defect` (why it has no columns, or null).
    A column that the input lacks is null. raw: text, or a struct, of which only bad rows become text. source: file,
    table, or Kafka topic and partition. offset: line (CSV), row from 0 (Parquet), Kafka offset; null for Delta, and for
    lines of JSON, which have `file` and are counted later. past_damage: leave out what cannot be read of a file,
    instead of failing.
    Raises InputError for an input that is not there or that Spark cannot open.
    """
    sources = {"json": _json_files, "csv": _csv, "parquet": _parquet, "delta": _delta, "kafka": _kafka}
    if format_ not in sources:
        raise InputError(f"--format: got {format_}; allowed are {', '.join(sources)}")
    options = _Options(settings, past_damage, once, tuple(files), tuple(columns))
    try:
        if format_ != "kafka" and not path_exists(spark, path):
            raise InputError(
                f"--input: nothing is at {path}; give a file, a folder or a pattern that exists, readable for Spark"
            )
        if format_ in FILE_FORMATS and not once:
            path = _readable_as_stream(spark, path)
        return sources[format_](spark, options, path)
    except SPARK_ERRORS as error:
        raise InputError(f"--input: {path} cannot be read as {format_}: {first_line(error)}{_advice(error)}") from error


class _Options(NamedTuple):
    settings: InputSettings
    past_damage: bool
    once: bool = False
    chosen: tuple[str, ...] = ()
    columns: tuple[str, ...] = COLUMNS

    def reader(self, spark: SparkSession) -> Any:
        """Of a stream, or of what is there now; both have the same methods."""
        return spark.read if self.once else spark.readStream

    def paths(self, path: str) -> str | list[str]:
        """What to load: the path, or the chosen files."""
        return [literal(file) for file in self.chosen] or path

    @property
    def files(self) -> dict[str, str]:
        """Spark's options of a stream of files."""
        damage = {name: str(self.past_damage).lower() for name in ("ignoreCorruptFiles", "ignoreMissingFiles")}
        return {"maxFilesPerTrigger": str(self.settings.max_files_per_trigger)} | damage

    def counted(self, stream: DataFrame) -> DataFrame:
        """With ROWS_BY_FILE, if what is read may be less than what is there."""
        if not self.past_damage:
            return stream
        by_file = F.expr(f"approx_top_k(_metadata.file_path, {MOST_FILES}, {MOST_FILES})")
        return stream.observe(ROWS_BY_FILE, by_file.alias("files"))


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
        .transform(options.counted)
        .select(*_text(F.col("value")), _place().alias("source"), F.lit(None).cast("long").alias("offset"))
    )
    return lines


def _text(value: Column) -> tuple[Column, Column]:
    """The text as the tables can hold it, and the defect of one that is not UTF-8."""
    return F.make_valid_utf8(value).alias("raw"), F.when(~F.is_valid_utf8(value), NOT_UTF8).alias("defect")


def _json_files(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    lines = _lines(spark, options, path).withColumn("file", F.col("source"))
    blank = F.when(F.col("raw").rlike(r"^\s*\z"), BLANK_LINE)
    return _json(lines.withColumn("defect", F.coalesce("defect", blank)), options.columns)


def _json(lines: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Spark's parser is silent about what follows the first object of a line, and puts `?` in the place of half
    a character, so that is looked at here.
    """
    text = T.StructType([T.StructField(name, T.StringType()) for name in (*columns, "_corrupt")])
    parsed = F.from_json("raw", text, {"columnNameOfCorruptRecord": "_corrupt", "mode": "PERMISSIVE"})
    ends_later = F.instr("raw", "}") < F.length(F.rtrim("raw"))  # a flat object needs no second look
    objects = F.from_json(F.concat(F.lit("["), "raw", F.lit("]")), T.ArrayType(T.StringType()))
    more = ends_later & (F.coalesce(F.size(objects), F.lit(0)) != 1)
    defect = F.when(
        F.col("parsed").isNull() | F.col("parsed._corrupt").isNotNull(), F.lit("the line is not a JSON object")
    ).when(more, F.lit("the line holds more than one JSON object"))
    escapes = F.replace("raw", F.lit(r"\\"), F.lit(""))
    names = F.concat_ws("", *(F.col(f"parsed.{name}") for name in columns))
    halves = F.col("raw").contains(r"\u") & names.contains("?") & escapes.rlike(_HALF)
    defect = defect.when(halves, F.lit(HALF_CHARACTER))
    return (
        lines.withColumn("parsed", parsed)
        .withColumn("defect", F.coalesce("defect", defect))
        .select(*(F.col(f"parsed.{name}") for name in columns), *lines.columns)
    )


def _csv(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    """Columns by the header of each file, in any order: a task has to read a file from its first line to its last.

    Spark cuts files at each core's share of the bytes unless opening one costs more: then a partition holds one file.
    """
    spark.conf.set("spark.sql.files.maxPartitionBytes", _WHOLE_FILES)
    spark.conf.set("spark.sql.files.openCostInBytes", _WHOLE_FILES)
    schema = T.StructType(
        [
            *(T.StructField(name, T.StringType()) for name in (*options.columns, "raw", "source")),
            T.StructField("offset", T.LongType()),
            T.StructField("defect", T.StringType()),
        ]
    )
    return _lines(spark, options, path).mapInArrow(partial(split_csv, columns=options.columns), schema)


def _typed(frame: DataFrame, source: Column, offset: Column, names: Sequence[str] = COLUMNS) -> DataFrame:
    """Columns as the input has them; `raw` is made where a row turns out bad (parse), so it is a struct here."""
    present = {name.lower(): name for name in frame.columns}
    columns = [
        _named(present[name]).alias(name) if name in present else F.lit(None).cast("string").alias(name)
        for name in names
    ]
    return frame.select(
        *columns,
        F.struct(*(_named(name) for name in frame.columns)).alias("raw"),
        source.alias("source"),
        offset.alias("offset"),
        F.lit(None).cast("string").alias("defect"),
    )


def _named(column: str) -> Column:
    """The top-level column of that name, dots and all."""
    return F.col("`" + column.replace("`", "``") + "`")


def _parquet(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    """The first file's schema is that of the stream: Spark cannot change it while a query runs."""
    reader = options.reader(spark).schema(_parquet_schema(spark, path)).options(**options.files)
    return _typed(
        options.counted(reader.format("parquet").load(options.paths(path))),
        F.col("_metadata.file_path"),
        F.col("_metadata.row_index"),
        options.columns,
    )


def _parquet_schema(spark: SparkSession, path: str) -> T.StructType:
    """Of the first file; if that is damaged, of all those that are not. Raises what is wrong with the first file."""
    try:
        return spark.read.parquet(path).schema
    except SPARK_ERRORS as first:
        try:
            return spark.read.options(ignoreCorruptFiles=True, mergeSchema=True).parquet(path).schema
        except SPARK_ERRORS:
            raise first from None


def _delta(spark: SparkSession, options: _Options, path: str) -> DataFrame:
    stream = options.reader(spark).format("delta").option("maxFilesPerTrigger", options.settings.max_files_per_trigger)
    return _typed(stream.load(path), F.lit(path), F.lit(None).cast("long"), options.columns)


def _kafka(spark: SparkSession, options: _Options, topic: str) -> DataFrame:
    """Values are JSON objects, one a record."""
    records = kafka_stream(spark, options.settings, topic)
    source = F.concat_ws("/", "topic", "partition").alias("source")
    return _json(records.select(*_text(F.col("value").cast("string")), source, "offset"), options.columns)


def _advice(error: Exception) -> str:
    for sign, advice in {
        "UNABLE_TO_INFER_SCHEMA": "give a folder with at least one Parquet file, or the right --format",
        "is not a Parquet file": "give a folder whose first file is Parquet, or the right --format",
        "DELTA_SCHEMA_NOT_SET": "give the folder of a Delta table, or the right --format",
        "NANOS": "write its times in microseconds",
        "data source: kafka": "start with ./spark-submit.sh --with-kafka",
    }.items():
        if sign in str(error):
            return f". To do: {advice}"
    return ""
