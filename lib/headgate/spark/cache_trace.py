"""The trace of a sweep: read once, in the order of each broker, to files that the runs read for themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.cache.schemas import COLUMNS
from headgate.conf import InputSettings
from headgate.core.cache.sampling import Cut
from headgate.core.cache.workload import Family, Sizes
from headgate.errors import InputError
from headgate.sizing.instants import Span
from headgate.sizing.trace import EVENTS, PLACE, READ, cut, generated, read
from headgate.spark.batch_files import readable_rows
from headgate.spark.cache_parse import parse_events
from headgate.spark.sources import read_raw

TRACE = "trace"
FORMATS = ("json", "csv", "parquet", "delta")
FAMILIES, SIZES = tuple(map(str, Family)), tuple(map(str, Sizes))

ANY_TIME = InputSettings(
    event_time_from=datetime(1970, 1, 1, tzinfo=UTC), event_time_until=datetime(2262, 1, 1, tzinfo=UTC)
)
"""Public traces count from 0; nothing here waits for a time, so none is too early or too late."""


@dataclass(frozen=True)
class Generated:
    """Traffic that is made up, one broker a seed (entry-cache 15)."""

    family: str
    seeds: tuple[int, ...]
    sizes: str
    scale: int


@dataclass(frozen=True)
class StagedTrace:
    """What was read. folders: by broker. rows: all in order. left_out: of kind conf. bad: rows that are dead letters.

    lost: dead letters of files that cannot be read to their end, of which no row is there.
    """

    folders: dict[str, str]
    span: Span
    rows: int
    left_out: int
    bad: int
    lost: pa.Table


def read_events(spark: SparkSession, path: str, format_: str, files: Sequence[str]) -> DataFrame:
    """Columns of READ, of `files` alone if there are any.

    Raises InputError for an input that is not there or that Spark cannot open.
    """
    raw = read_raw(spark, ANY_TIME, path, format_, once=True, files=files, columns=COLUMNS)
    return raw.transform(parse_events, ANY_TIME).mapInArrow(read, from_arrow_schema(READ))


def generated_events(spark: SparkSession, traffic: Generated, _: Sequence[str]) -> DataFrame:
    """Columns of READ; a task a broker. There are no files."""
    seeds = spark.createDataFrame([(seed,) for seed in traffic.seeds], "seed long")
    make = partial(_generate, traffic)
    return seeds.repartition(len(traffic.seeds), "seed").mapInArrow(make, from_arrow_schema(READ))


def _generate(traffic: Generated, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for seed in batch["seed"].to_pylist():
            yield from generated(traffic.family, seed, traffic.sizes, traffic.scale)


def stage(
    spark: SparkSession, input_: str, read: Callable[[Sequence[str]], DataFrame], output: str, every: int
) -> StagedTrace:
    """Write each broker's rows in order to a folder of its own below `trace`, or one entry in so many of them.

    read: events of these files, of all of `input_` if none are named. output: the folder of `trace` and of the table
    `dead_letters`, for rows that have no place in that order. Raises InputError for a trace without any row.
    """
    folder = f"{output}/{TRACE}"
    events, lost, (by_broker, left_out, bad) = readable_rows(spark, input_, read, _counted)
    has_place = F.col("defect").isNull()
    try:
        if bad:
            told = events.where(~has_place).select(F.col("defect").alias("reason"), *PLACE)
            told.write.format("delta").mode("append").save(f"{output}/dead_letters")
        brokers = sorted(by_broker)
        _write(events.where(has_place & ~F.col("kind").eqNullSafe("conf")), brokers, folder, every)
    finally:
        events.unpersist()
    span = Span(min(first for first, _, _ in by_broker.values()), max(last for _, last, _ in by_broker.values()))
    rows = sum(count for _, _, count in by_broker.values())
    folders = {broker: f"{folder}/number={number}" for number, broker in enumerate(brokers)}
    return StagedTrace(folders, span, rows, left_out, bad, lost)


def _write(events: DataFrame, brokers: list[str], folder: str, every: int) -> None:
    """One file a broker, its rows in order: those of one time and number in that of a file's lines."""
    numbers = events.sparkSession.createDataFrame(list(enumerate(brokers)), "number int, broker string")
    ordered = (
        events.join(F.broadcast(numbers), "broker")
        .select("number", *EVENTS.names)
        .repartition(len(brokers), "number")
        .sortWithinPartitions("number", "t_us", "seq", "source", "offset")
    )
    kept = ordered.mapInArrow(partial(_sampled, every), ordered.schema) if every > 1 else ordered
    kept.write.partitionBy("number").parquet(folder)


def _sampled(every: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sample of each broker's rows; a partition may hold several brokers, one after the other."""
    of, sample = None, Cut(every)
    for batch in batches:
        for number, rows in groupby(range(len(batch)), batch["number"].to_pylist().__getitem__):
            if number != of:
                of, sample = number, Cut(every)
            places = list(rows)
            kept = cut(sample, batch.slice(places[0], len(places)))
            yield kept.add_column(0, "number", pa.repeat(pa.scalar(number, pa.int32()), len(kept)))


def _counted(events: DataFrame) -> tuple[dict[str, tuple[int, int, int]], int, int]:
    """By broker its first and last time and its rows; rows of kind conf; rows without a place."""
    is_bad = F.col("defect").isNotNull()
    what = F.when(is_bad, "bad").when(F.col("kind") == "conf", "conf").otherwise("event").alias("what")
    of = F.when(~is_bad, F.col("broker")).alias("of")
    found = events.groupBy(what, of).agg(F.min("t_us"), F.max("t_us"), F.count("*")).collect()
    by_broker = {of: (first, last, count) for what, of, first, last, count in found if what == "event"}
    left_out, bad = (sum(row[4] for row in found if row[0] == what) for what in ("conf", "bad"))
    if not by_broker:
        raise InputError(
            f"--input: no event of a cache could be read ({bad:,} bad rows, {left_out:,} rows of kind conf); give "
            "recorded cache events, in the right --format"
        )
    return by_broker, left_out, bad
