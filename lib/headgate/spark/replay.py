"""A replay on Spark: the trace read once, each row sent to its key under every conf, one pass in the order of time."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.replay.plan import Plan
from headgate.replay.run import Trace
from headgate.replay.stream import replay, route
from headgate.replay.summary import Summary
from headgate.replay.tables import ReplayTables
from headgate.spark.batch_files import readable_rows
from headgate.spark.parse import parse
from headgate.spark.session import PARTITIONS
from headgate.spark.sources import read_raw
from headgate.throttle.blocks import decode
from headgate.throttle.engine import engine_of
from headgate.throttle.faults import faults_of
from headgate.throttle.schemas import DEAD_LETTERS

_EVENTS = (
    "event_time_us long, seq long, broker string, topic string, producer string, connection string, messages long, "
    "bytes long"
)
ROUTED = f"{_EVENTS}, keys array<string>, letter string"
REPLAYED = "conf int, kind string, block binary"
_COLUMNS = tuple(column.split()[0] for column in _EVENTS.split(", "))
_LETTERS_AT_ONCE = 10_000
MOST_ROUNDS = 31 * 86_400
TASKS = 4
"""Parts of the pass over keys by shuffle partition: keys are few and unlike, so that a core takes the next when it can.
"""


@dataclass(frozen=True)
class ReplayJob:
    """What the command line says: where the trace is, and where the tables go."""

    input: str
    format: str
    output: str


@dataclass(frozen=True)
class Replayed:
    """What came of a replay."""

    tables: ReplayTables
    trace: Trace
    rows: int
    dead_letters: int


def run_replay(
    spark: SparkSession,
    job: ReplayJob,
    plans: Sequence[Plan],
    settings: InputSettings,
    heard: Callable[[Trace, int, int, int, Sequence[str]], None],
) -> Replayed:
    """Replay the input under every plan and write the tables.

    The same input gives the same rows, whatever the partitions, batches and files and the order of rows in them.

    settings: how the input is read, for all plans. heard: is told of the trace, its publishes, bad rows, dispatches and
    files that are left out, once they are counted; dispatches are not replayed. A file that cannot be read to its end
    is left out, and told of in a dead letter. Raises InputError for an input that cannot be read, is without any
    publish or goes over too long a time, TableError for the tables.
    """
    read, count = partial(_routed, spark, job, plans, settings), partial(_counted, job)
    routed, lost, (trace, rows, bad, dispatches) = readable_rows(spark, job.input, read, count)
    try:
        bad += len(lost)
        heard(trace, rows, bad, dispatches, lost["source"].to_pylist())
        check_span(trace, plans)
        tables = ReplayTables(job.output)
        tables.append("dead_letters", lost)
        _take_letters(routed, tables)
        _take_results(routed, plans, trace, tables)
        tables.flush()
    finally:
        routed.unpersist()
    return Replayed(tables, trace, rows, bad)


def _routed(
    spark: SparkSession, job: ReplayJob, plans: Sequence[Plan], settings: InputSettings, files: Sequence[str]
) -> DataFrame:
    """Every row with its keys."""
    return (
        read_raw(spark, settings, job.input, job.format, once=True, files=files)
        .transform(parse, settings)
        .mapInArrow(partial(route, plans, faults_of(settings)), ROUTED)
    )


def _counted(job: ReplayJob, routed: DataFrame) -> tuple[Trace, int, int, int]:
    """The trace, its publishes, bad rows and dispatches; the only pass over the input."""
    time, is_dispatch = F.col("event_time_us"), (F.size("keys") == 0).alias("is_dispatch")
    sums = (F.min(time).alias("first"), F.max(time).alias("last"), F.count("*").alias("n"))
    found = routed.groupBy("broker", is_dispatch).agg(*sums).collect()
    dispatches = sum(row["n"] for row in found if row["is_dispatch"])
    by_broker = {row["broker"]: row for row in found if not row["is_dispatch"]}
    letters = by_broker.pop(None, None)
    bad = 0 if letters is None else letters["n"]
    if not by_broker:
        raise InputError(
            f"--input: {job.input} has no publish that can be replayed ({bad:,} bad rows, {dispatches:,} dispatches); "
            f"give recorded traffic, in the right --format (now {job.format})"
        )
    first_us, last_us = min(row["first"] for row in by_broker.values()), max(row["last"] for row in by_broker.values())
    rows = sum(row["n"] for row in by_broker.values())
    return Trace(tuple(sorted(by_broker)), first_us, last_us), rows, bad, dispatches


def check_span(trace: Trace, plans: Sequence[Plan]) -> None:
    """Refuse a trace with more rounds than a replay could go through: mostly one row with a wrong year."""
    rounds = (trace.last_us - trace.first_us) // 1000 // min(plan.round_ms for plan in plans)
    if rounds > MOST_ROUNDS:
        first, last = (datetime.fromtimestamp(at / 1e6, UTC).isoformat() for at in (trace.first_us, trace.last_us))
        raise InputError(
            f"--input: event times go from {first} to {last}, {rounds:,} rounds of trigger.interval_ms; allowed: up to "
            f"{MOST_ROUNDS:,}, a month of seconds. Set [input] event_time_from and event_time_until in headgate.toml "
            "to the time to replay: other rows become dead letters"
        )


def _take_letters(routed: DataFrame, tables: ReplayTables) -> None:
    waiting: list[dict[str, Any]] = []
    for row in routed.where(F.col("letter").isNotNull()).select("letter").toLocalIterator():
        waiting.append(json.loads(row["letter"]))
        if len(waiting) == _LETTERS_AT_ONCE:
            tables.append("dead_letters", pa.Table.from_pylist(waiting, DEAD_LETTERS))
            waiting = []
    tables.append("dead_letters", pa.Table.from_pylist(waiting, DEAD_LETTERS))


def _take_results(routed: DataFrame, plans: Sequence[Plan], trace: Trace, tables: ReplayTables) -> None:
    replayed = routed.transform(replayed_by_key, plans, trace).persist(StorageLevel.DISK_ONLY)
    summaries = [Summary(plan.name, plan.quotas()) for plan in plans]
    try:
        replayed.count()
        for conf, kind, rows in _blocks(replayed):
            if kind in {"replay_seconds", "replay_limits"}:
                named = rows.append_column("conf", pa.repeat(plans[conf].name, len(rows)))
                tables.append(kind, named)
            else:
                summaries[conf].add(kind, rows)
    finally:
        replayed.unpersist()
    for summary in summaries:
        tables.append("replay_groups", summary.groups())
        tables.append("replay_tenants", summary.tenants())


def replayed_by_key(routed: DataFrame, plans: Sequence[Plan], trace: Trace) -> DataFrame:
    """Every row under every plan, those of a key together and in the order of time, through the rules."""
    by_plan = routed.where(F.col("letter").isNull()).select(F.posexplode("keys").alias("conf", "key"), *_COLUMNS)
    partitions = TASKS * int(routed.sparkSession.conf.get(PARTITIONS) or 1)
    return (
        by_plan.repartition(partitions, "conf", "key")
        .sortWithinPartitions("conf", "key", "event_time_us")
        .mapInArrow(partial(replay, plans, trace, engine_of), REPLAYED)
    )


def _blocks(replayed: DataFrame) -> Iterator[tuple[int, str, pa.Table]]:
    """Partition by partition, so that no more than one is in memory here."""
    for row in replayed.toLocalIterator():
        yield row["conf"], row["kind"], decode(bytes(row["block"]))
