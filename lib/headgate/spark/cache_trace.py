"""The trace of a sweep: read once, in the order of each broker, to files that the runs read for themselves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headgate.core.cache.rows import Row
from headgate.core.cache.sampling import sampled
from headgate.core.cache.workload import Family, Sizes
from headgate.errors import InputError
from headgate.sizing.instants import Span
from headgate.sizing.trace import COLUMNS, batches_of, generated, rows_in
from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.spark.sources import path_exists

FORMATS = ("json", "parquet", "delta")
FAMILIES, SIZES = tuple(map(str, Family)), tuple(map(str, Sizes))
_STAGED = "t_us long, seq long, kind string, topic string, cursor string, ledger long, entry long, count long"
STAGED = f"broker string, {_STAGED}, sizes array<long>"
_NUMBERS, _NAMES = ("seq", "ledger", "entry", "count"), ("broker", "kind", "topic", "cursor")
_CORRUPT = "_corrupt"
_LINE = (
    "event_time string, broker string, kind string, topic string, cursor string, seq long, ledger long, entry long, "
    f"count long, sizes array<long>, {_CORRUPT} string"
)


def _is_bad() -> Column:
    """Whether a row has no time, number or broker."""
    return F.col("raw").isNotNull()


@dataclass(frozen=True)
class Generated:
    """Traffic that is made up, one broker a seed (entry-cache 15)."""

    family: str
    seeds: tuple[int, ...]
    sizes: str
    scale: int


@dataclass(frozen=True)
class StagedTrace:
    """What was read. folders: by broker. rows: all in order. left_out: of kind conf. bad: dead letters."""

    folders: dict[str, str]
    span: Span
    rows: int
    left_out: int
    bad: int


def read_events(spark: SparkSession, path: str, format_: str) -> DataFrame:
    """Columns of STAGED, and `raw`: the row, where it has no time, number or broker. What is not of its type is null.

    Raises InputError for an input that cannot be read as a whole.
    """
    if not path_exists(spark, path):
        raise InputError(f"--input: nothing is at {path}; give a file, a folder or a pattern that exists")
    try:
        if format_ == "json":
            options = {"columnNameOfCorruptRecord": _CORRUPT}
            frame = spark.read.schema(_LINE).options(**options).json(path)
        else:
            frame = spark.read.format(format_).load(path)
        return _typed(frame)
    except SPARK_ERRORS as error:
        raise InputError(f"--input: {path} cannot be read as {format_}: {first_line(error)}") from error


def _typed(frame: DataFrame) -> DataFrame:
    kinds = {field.name: field.dataType for field in frame.schema}
    if missing := [name for name in ("event_time", "seq", "broker", "kind", "topic") if name not in kinds]:
        raise InputError(
            f"--input: got the columns {', '.join(frame.columns)}; needed: event_time, seq, broker, kind, topic, and "
            f"cursor, ledger, entry, count, sizes; missing: {', '.join(missing)}"
        )

    def column(name: str, kind: str) -> Column:
        return F.col(name).try_cast(kind) if name in kinds else F.lit(None).cast(kind)

    time_us, broker = _time_us(kinds["event_time"]), column("broker", "string")
    has_place = time_us.isNotNull() & column("seq", "long").isNotNull() & (F.length(broker) > 0)
    raw = F.to_json(F.struct(*(name for name in frame.columns if name != _CORRUPT)))
    return frame.select(
        time_us.alias("t_us"),
        *(column(name, "string").alias(name) for name in _NAMES),
        *(column(name, "long").alias(name) for name in _NUMBERS),
        column("sizes", "array<long>").alias("sizes"),
        F.when(~F.coalesce(has_place, F.lit(False)), F.coalesce(_CORRUPT, raw) if _CORRUPT in kinds else raw).alias(
            "raw"
        ),
    )


def _time_us(kind: T.DataType) -> Column:
    """Timestamps, in text ISO 8601, or whole microseconds since 1970."""
    time = F.col("event_time")
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(time.cast("timestamp"))
    if isinstance(kind, T.StringType):
        return F.coalesce(F.trim(time).try_cast("long"), F.unix_micros(F.trim(time).try_cast("timestamp")))
    return time.try_cast("long")


def generated_events(spark: SparkSession, traffic: Generated) -> DataFrame:
    """Columns of STAGED, and `raw`; a task a broker."""
    seeds = spark.createDataFrame([(seed,) for seed in traffic.seeds], "seed long")
    make = partial(_generate, traffic)
    return (
        seeds.repartition(len(traffic.seeds), "seed")
        .mapInArrow(make, STAGED)
        .withColumn("raw", F.lit(None).cast("string"))
    )


def _generate(traffic: Generated, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for seed in batch["seed"].to_pylist():
            yield from generated(traffic.family, seed, traffic.sizes, traffic.scale)


def stage(events: DataFrame, folder: str, letters: str, every: int) -> StagedTrace:
    """Write each broker's rows in order to a folder of its own below `folder`, or one entry in so many of them.

    letters: the table of dead letters, for rows without a time, a number or a broker. Raises InputError for a trace
    without any row.
    """
    events = events.persist()
    try:
        by_broker, left_out, bad = _counted(events)
        if bad:
            _write_letters(events.where(_is_bad()), letters)
        brokers = sorted(by_broker)
        _write(events.where(~_is_bad() & ~F.col("kind").eqNullSafe("conf")), brokers, folder, every)
    finally:
        events.unpersist()
    span = Span(min(first for first, _, _ in by_broker.values()), max(last for _, last, _ in by_broker.values()))
    rows = sum(count for _, _, count in by_broker.values())
    folders = {broker: f"{folder}/number={number}" for number, broker in enumerate(brokers)}
    return StagedTrace(folders, span, rows, left_out, bad)


def _write(events: DataFrame, brokers: list[str], folder: str, every: int) -> None:
    """One file a broker, its rows in order."""
    numbers = events.sparkSession.createDataFrame(list(enumerate(brokers)), "number int, broker string")
    ordered = (
        events.join(F.broadcast(numbers), "broker")
        .select("number", *COLUMNS)
        .repartition(len(brokers), "number")
        .sortWithinPartitions("number", "t_us", "seq")
    )
    cut = ordered.mapInArrow(partial(_cut, every), ordered.schema) if every > 1 else ordered
    cut.write.partitionBy("number").parquet(folder)


def _cut(every: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sample of each broker's rows; a partition may hold several brokers, one after the other."""
    for number, rows in groupby(_numbered(batches), key=lambda pair: pair[0]):
        for batch in batches_of(sampled((row for _, row in rows), every)):
            yield batch.add_column(0, "number", pa.repeat(pa.scalar(number, pa.int32()), len(batch)))


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Row]]:
    for batch in batches:
        yield from zip(batch["number"].to_pylist(), rows_in(batch), strict=True)


def _counted(events: DataFrame) -> tuple[dict[str, tuple[int, int, int]], int, int]:
    """By broker its first and last time and its rows; rows of kind conf; rows without a place."""
    what = F.when(_is_bad(), "bad").when(F.col("kind") == "conf", "conf").otherwise("event").alias("what")
    of = F.when(~_is_bad(), F.col("broker")).alias("of")
    found = events.groupBy(what, of).agg(F.min("t_us"), F.max("t_us"), F.count("*")).collect()
    by_broker = {of: (first, last, count) for what, of, first, last, count in found if what == "event"}
    left_out, bad = (sum(row[4] for row in found if row[0] == what) for what in ("conf", "bad"))
    if not by_broker:
        raise InputError(
            f"--input: no event of a cache could be read ({bad:,} bad rows, {left_out:,} rows of kind conf); give "
            "recorded cache events, in the right --format"
        )
    return by_broker, left_out, bad


def _write_letters(rows: DataFrame, letters: str) -> None:
    nothing = F.lit(None)
    columns = (nothing.cast("string").alias("source"), nothing.cast("long").alias("offset"))
    rows.select(F.lit("bad_row").alias("reason"), "raw", *columns).write.format("delta").mode("append").save(letters)
