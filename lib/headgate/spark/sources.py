"""Streams of raw rows: every column as the source has it, with where the row came from. Nothing is judged here."""

import csv
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.conf import InputSettings
from headgate.errors import InputError

COLUMNS = ("event_time", "seq", "broker", "topic", "kind", "producer", "connection", "messages", "bytes")
"""What a traffic row has; docs/tables.md describes each."""

_TEXT = T.StructType([T.StructField(name, T.StringType()) for name in (*COLUMNS, "_corrupt")])
_WHOLE_FILES = "1t"


def read_raw(spark: SparkSession, settings: InputSettings, path: str, format_: str) -> DataFrame:
    """The input as a stream with COLUMNS and `raw` (the row as text), `source`, `offset`, `defect` (why it has no columns, or null).

    A column that the input lacks is null. source: file, table, or Kafka topic and partition. offset: line (text), row (Parquet) or
    Kafka offset; null for text, whose lines are counted later. Raises InputError for an input that is not there.
    """
    if format_ != "kafka" and not _exists(spark, path):
        raise InputError(
            f"--input: nothing is at {path}; give a file, a folder or a pattern that exists, readable for Spark"
        )
    match format_:
        case "json":
            return _json(_lines(spark, settings, path))
        case "csv":
            return _csv(spark, settings, path)
        case "parquet":
            return _parquet(spark, settings, path)
        case "delta":
            return _delta(spark, settings, path)
        case "kafka":
            return _kafka(spark, settings, path)
    raise InputError(f"--format: got {format_}; allowed are json, csv, parquet, delta and kafka")


def _exists(spark: SparkSession, path: str) -> bool:
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    found = hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).globStatus(hadoop)
    return found is not None and len(found) > 0


def _place() -> Column:
    """The file, and where in it the part of the file starts that a task reads, if that is not its beginning."""
    start = F.col("_metadata.file_block_start")
    return F.when(start == 0, F.col("_metadata.file_path")).otherwise(
        F.concat("_metadata.file_path", F.lit("#byte="), start.cast("string"))
    )


def _lines(spark: SparkSession, settings: InputSettings, path: str) -> DataFrame:
    return (
        spark.readStream.format("text")
        .option("maxFilesPerTrigger", settings.max_files_per_trigger)
        .load(path)
        .select(F.col("value").alias("raw"), _place().alias("source"), F.lit(None).cast("long").alias("offset"))
    )


def _json(lines: DataFrame) -> DataFrame:
    parsed = F.from_json("raw", _TEXT, {"columnNameOfCorruptRecord": "_corrupt", "mode": "PERMISSIVE"})
    defect = F.when(
        F.col("parsed").isNull() | F.col("parsed._corrupt").isNotNull(), F.lit("the line is not a JSON object")
    )
    return (
        lines.withColumn("parsed", parsed)
        .withColumn("defect", defect)
        .select(*(F.col(f"parsed.{name}") for name in COLUMNS), "raw", "source", "offset", "defect")
    )


def _csv(spark: SparkSession, settings: InputSettings, path: str) -> DataFrame:
    """Columns by the header of each file, in any order, so a task has to read a file from its first line: files are not split."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", _WHOLE_FILES)
    schema = T.StructType(
        [
            *(T.StructField(name, T.StringType()) for name in (*COLUMNS, "raw", "source")),
            T.StructField("offset", T.LongType()),
            T.StructField("defect", T.StringType()),
        ]
    )
    return _lines(spark, settings, path).mapInArrow(split_csv, schema)


def split_csv(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Lines to columns: the first line of a file is its header; a record is one line, quoted as in RFC 4180."""
    headers: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    schema = pa.schema(
        [(name, pa.string()) for name in (*COLUMNS, "raw", "source")]
        + [("offset", pa.int64()), ("defect", pa.string())]
    )
    for batch in batches:
        rows = []
        for raw, source in zip(batch["raw"].to_pylist(), batch["source"].to_pylist(), strict=True):
            lines[source] = lines.get(source, 0) + 1
            try:
                fields = next(csv.reader([raw], strict=True), [])
            except csv.Error as error:
                fields, defect = [], f"the line is not CSV: {error}"
            else:
                defect = None
            if source not in headers:
                headers[source] = [field.strip().lstrip("\ufeff") for field in fields]
                continue
            header = headers[source]
            if defect is None and len(fields) != len(header):
                defect = f"the line has {len(fields)} fields, the header of its file has {len(header)}"
            named = dict(zip(header, fields, strict=False)) if defect is None else {}
            columns = {name: named.get(name) or None for name in COLUMNS}
            rows.append(columns | {"raw": raw, "source": source, "offset": lines[source], "defect": defect})
        yield pa.RecordBatch.from_pylist(rows, schema)


def _typed(frame: DataFrame, source: Column, offset: Column) -> DataFrame:
    """Columns as the input has them; `raw` is made where a row turns out bad (parse), so it is a struct here."""
    present = {name.lower(): name for name in frame.columns}
    columns = [
        F.col(present[name]).alias(name) if name in present else F.lit(None).cast("string").alias(name)
        for name in COLUMNS
    ]
    return frame.select(
        *columns,
        F.struct(*(F.col(name) for name in frame.columns)).alias("raw"),
        source.alias("source"),
        offset.alias("offset"),
        F.lit(None).cast("string").alias("defect"),
    )


def _parquet(spark: SparkSession, settings: InputSettings, path: str) -> DataFrame:
    """The first files' schema is that of the stream: Spark cannot change it while a query runs."""
    try:
        schema = spark.read.option("recursiveFileLookup", False).parquet(path).schema  # noqa: FBT003
    except Exception as error:
        raise InputError(
            f"--input: the schema of {path} cannot be read as Parquet: {_first_line(error)}. "
            "Give a folder with at least one Parquet file, or the right --format"
        ) from error
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", settings.max_files_per_trigger).parquet(path)
    return _typed(stream, F.col("_metadata.file_path"), F.col("_metadata.row_index"))


def _delta(spark: SparkSession, settings: InputSettings, path: str) -> DataFrame:
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", settings.max_files_per_trigger).load(path)
    return _typed(stream, F.lit(path), F.lit(None).cast("long"))


def _kafka(spark: SparkSession, settings: InputSettings, topic: str) -> DataFrame:
    """Values are JSON objects, one a record."""
    kafka = settings.kafka
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", kafka.starting_offsets)
        .option("maxOffsetsPerTrigger", settings.max_offsets_per_trigger)
        .options(**kafka.spark_options())
        .load()
        .select(
            F.col("value").cast("string").alias("raw"),
            F.concat_ws("/", "topic", "partition").alias("source"),
            F.col("offset"),
        )
    )
    return _json(stream)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
