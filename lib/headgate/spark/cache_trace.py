"""The trace of a sweep: read once, in the order of each broker, to files that the runs read for themselves."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.core.cache.traces.sampling import SampledRows
from headgate.sizing.asked import Generated, SweepJob
from headgate.sizing.sweep import ANY_TIME, EventCount, StagedTrace, trace_of
from headgate.sizing.trace import EVENTS, PLACE, READ, cut, generated, read_input
from headgate.spark.input.batch_files import readable_rows
from headgate.spark.input.sources import read_raw


def read_events(spark: SparkSession, path: str, format_: str, files: Sequence[str]) -> DataFrame:
    """Columns of READ, of `files` alone if there are any.

    Raises InputError for an input that is not there or that Spark cannot open.
    """
    raw = read_raw(spark, ANY_TIME, path, format_, once=True, files=files)
    return raw.mapInArrow(partial(read_input, format_, ANY_TIME), from_arrow_schema(READ))


def generated_events(spark: SparkSession, traffic: Generated, _: Sequence[str]) -> DataFrame:
    """Columns of READ; a task a broker. There are no files."""
    seeds = spark.createDataFrame([(seed,) for seed in traffic.seeds], "seed long")
    make = partial(_generate, traffic)
    return seeds.repartition(len(traffic.seeds), "seed").mapInArrow(make, from_arrow_schema(READ))


def _generate(traffic: Generated, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for seed in batch["seed"].to_pylist():
            yield from generated(traffic.family, seed, traffic.sizes, traffic.scale)


def stage(spark: SparkSession, job: SweepJob) -> StagedTrace:
    """Write each broker's rows in order to a folder of its own, or one entry in so many of them.

    Rows that have no place in that order go to `dead_letters`. Raises InputError for an input that cannot be read, or
    that is without any event.
    """
    if isinstance(job.input, Generated):
        place, read = "made-up traffic", partial(generated_events, spark, job.input)
    else:
        place, read = job.input, partial(read_events, spark, job.input, job.format)
    events, lost, counts = readable_rows(spark, place, read, _counted)
    has_place = F.col("defect").isNull()
    try:
        trace = trace_of(job, counts, lost)
        if trace.bad:
            told = events.where(~has_place).select(F.col("defect").alias("reason"), *PLACE)
            told.write.format("delta").mode("append").save(f"{job.output}/dead_letters")
        ordered = events.where(has_place & ~F.col("kind").eqNullSafe("conf"))
        _write(ordered, list(trace.folders), job.trace, job.every)
    finally:
        events.unpersist()
    return trace


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
    of, sample = None, SampledRows(every)
    for batch in batches:
        for number, rows in groupby(range(len(batch)), batch["number"].to_pylist().__getitem__):
            if number != of:
                of, sample = number, SampledRows(every)
            places = list(rows)
            kept = cut(sample, batch.slice(places[0], len(places)))
            yield kept.add_column(0, "number", pa.repeat(pa.scalar(number, pa.int32()), len(kept)))


def _counted(events: DataFrame) -> list[EventCount]:
    """The only pass over the input."""
    is_bad = F.col("defect").isNotNull()
    what = F.when(is_bad, "bad").when(F.col("kind") == "conf", "conf").otherwise("event").alias("what")
    of = F.when(~is_bad, F.col("broker")).alias("of")
    found = events.groupBy(what, of).agg(F.min("t_us"), F.max("t_us"), F.count("*")).collect()
    return [EventCount(*row) for row in found]
