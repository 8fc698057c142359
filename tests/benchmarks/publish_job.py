"""The publish job against Spark's own aggregation of the same input into the same kind of sink.

    python tests/benchmarks/publish_job.py [--topics 1000 100000 1000000] [--repetitions 3]
    python tests/benchmarks/publish_job.py --formats [--repetitions 3]

Each side runs in a process of its own, in turns. The value of a run is the median of its batches once Java has compiled
what it runs. At 100,000 topics a third side runs one batch the plain way: a key a topic, a Python loop over its rows.

With --formats the job alone, at 100,000 topics: over JSON lines beside Parquet, the same rows.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from _bench import Results, interleave, parser, ratios
from _jobs import (
    BATCH_US,
    BATCHES,
    EVENTS,
    FILES,
    SETTLED_AFTER,
    SIDES,
    START_US,
    measured,
    peak_bytes,
    run_aggregation,
    run_headgate,
)
from deltalake import write_deltalake
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from headgate.core.token_bucket import TokenBucket
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

LOOP_TOPICS = 100_000
LIMITS = (60, 200_000)
TRAFFIC_OF_LIMITS = 100_000
"""Topics at which LIMITS bite now and then; with fewer, each has more traffic and a higher limit."""
TIME = "strftime(event_time AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
FORMATS = {"headgate": "Parquet", "json": "JSON lines"}
FIELDS = ("balance", "last_ns", "remainder_ns")
STATE = ", ".join(f"{name}_{dimension} long" for dimension in ("messages", "bytes") for name in FIELDS)
MARKS = "event_time timestamp, broker string, topic string, producer string, connection string, seq long"


def write_input(folder: Path, topics: int, batches: int) -> None:
    """Uniform traffic of 50 tenants on 4 brokers, FILES files a batch."""
    random = np.random.default_rng(1)
    names = np.array([f"persistent://tenant-{i % 50}/ns-{i % 500}/topic-{i}" for i in range(topics)])
    for batch in range(batches):
        topic = random.integers(0, topics, EVENTS)
        times = np.sort(random.integers(0, BATCH_US, EVENTS)) + START_US + batch * BATCH_US
        table = pa.table(
            {
                "event_time": pa.array(times, pa.timestamp("us", tz="UTC")),
                "seq": np.arange(EVENTS) + batch * EVENTS,
                "broker": np.char.add("broker-", (topic % 4).astype(str)),
                "topic": names[topic],
                "kind": np.full(EVENTS, "publish"),
                "producer": np.char.add("producer-", (topic % 1000).astype(str)),
                "connection": np.char.add("connection-", (topic % 997).astype(str)),
                "messages": random.integers(1, 10, EVENTS),
                "bytes": random.integers(100, 10_000, EVENTS),
            }
        )
        size = EVENTS // FILES
        for part in range(FILES):
            pq.write_table(table.slice(part * size, size), folder / f"part-{batch:03}-{part}.parquet")


def write_limits(folder: Path, topics: int) -> None:
    """All limits on: topic, broker and group, messages and bytes; the topics' bite now and then."""
    folder.mkdir()
    messages, of_bytes = (limit * max(TRAFFIC_OF_LIMITS // topics, 1) for limit in LIMITS)
    (folder / "broker.conf").write_text(
        f"maxPublishRatePerTopicInMessages={messages}\nmaxPublishRatePerTopicInBytes={of_bytes}\n"
        "brokerPublisherThrottlingMaxMessageRate=100000000\nbrokerPublisherThrottlingMaxByteRate=100000000000\n"
    )
    groups = {"g": {"publishRateInMsgs": 2_000_000, "publishRateInBytes": 10**10}}
    attached = {f"tenant-{i}": "g" for i in range(50)}
    (folder / "resource-groups.json").write_text(json.dumps({"resourcegroups": groups, "tenants": attached}))
    (folder / "headgate.toml").write_text(f"[input]\nmax_files_per_trigger = {FILES}\n")


def limit_one_topic(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The topic's own limit alone, row by row; without queues, releases and usage, so it does less than the job."""
    rows = pd.concat(frames).sort_values(["event_time", "seq"])
    buckets = [TokenBucket(rate, created_ns=rows["event_time"].iloc[0].value) for rate in LIMITS]
    if state.exists:
        for i, bucket in enumerate(buckets):
            bucket.balance, bucket.last_ns, bucket.remainder_ns = state.get[3 * i : 3 * i + 3]
    marks = []
    for row in rows.itertuples():
        costs = (row.messages, row.bytes)
        left = [b.consume_check(cost, row.event_time.value) for b, cost in zip(buckets, costs, strict=True)]
        if not all(left):
            marks.append((row.event_time, row.broker, key[0], row.producer, row.connection, row.seq))
    state.update(tuple(getattr(bucket, name) for bucket in buckets for name in FIELDS))
    yield pd.DataFrame(marks, columns=["event_time", "broker", "topic", "producer", "connection", "seq"])


def run_loop(source: Path, work: Path) -> list[float]:
    """One batch."""
    spark = spark_session("benchmark")
    schema = spark.read.parquet(f"{source}/*.parquet").schema
    events = spark.readStream.schema(schema).parquet(f"{source}/part-000-*.parquet")
    marks = events.groupBy("topic").applyInPandasWithState(
        limit_one_topic, MARKS, STATE, "append", GroupStateTimeout.NoTimeout
    )

    def sink(batch: Any, _batch_id: int) -> None:
        write_deltalake(f"{work}/marks", batch.toArrow(), mode="append")

    query = marks.writeStream.foreachBatch(sink).option("checkpointLocation", f"{work}/checkpoint")
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    return [started.recentProgress[0]["durationMs"]["addBatch"] / 1000]


RUNS = {
    "headgate": run_headgate,
    "json": partial(run_headgate, format_="json"),
    "aggregation": partial(run_aggregation, keys=("topic",)),
    "loop": run_loop,
}


def run_side(side: str, source: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        seconds = RUNS[side](source, Path(work))
        found = {"seconds": statistics.median(seconds[SETTLED_AFTER:] or seconds)} | peak_bytes()
        if side == "headgate":
            state = spark_session("benchmark").read.format("statestore").load(f"{work}/out/checkpoint")
            found["state_bytes"] = state.select(F.sum(F.length("value.groupState.blocks"))).collect()[0][0]
        close_stores(spark_session("benchmark"))
    print(json.dumps(found))


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--topics", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    options.add_argument("--formats", action="store_true", help="JSON lines beside Parquet")
    options.add_argument("--side", choices=RUNS, help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    if arguments.formats:
        about = (
            f"{EVENTS:,} events a batch over {LOOP_TOPICS:,} topics, all limits on, {BATCHES} batches a run, of which "
            f"the first {SETTLED_AFTER} do not count."
        )
        with Results("formats", "JSON lines beside Parquet", about=about) as results:
            compare_formats(results, arguments.repetitions)
        return
    about = (
        f"{EVENTS:,} events a batch, all limits on, {BATCHES} batches a run, of which the first {SETTLED_AFTER} do not "
        "count; Spark's own groupBy(topic) sums of the same input into the same kind of sink beside."
    )
    with Results("publish_job", "Publish job against an aggregation", about=about) as results:
        medians = {topics: compare(results, topics, arguments.repetitions) for topics in arguments.topics}
        if len(medians) > 1:
            least, most = min(medians), max(medians)
            growth = {side: medians[most][side] / medians[least][side] for side in SIDES}
            name = f"growth of a batch's time from {least:,} to {most:,} topics, headgate / aggregation"
            results.target(name, "x", [growth["headgate"] / growth["aggregation"]], at_most=1)


def compare(results: Results, topics: int, repetitions: int) -> dict[str, float]:
    """Both sides in turns; seconds a batch by side."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, topics, BATCHES)
        write_limits(source / "conf", topics)
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        sides = {side: lambda side=side: runs[side].append(measured(__file__, side, source)) or 0.0 for side in SIDES}
        interleave(sides, repetitions, warmups=0)
        loop = measured(__file__, "loop", source) if topics == LOOP_TOPICS else None
    seconds = {side: [run["seconds"] for run in runs[side]] for side in SIDES}
    for side in SIDES:
        results.measure(f"{side}: {topics:,} topics", "s a batch", seconds[side])
    name, compared = f"aggregation / headgate at {topics:,} topics", ratios(seconds["aggregation"], seconds["headgate"])
    if topics < LOOP_TOPICS:  # there the aggregation has next to nothing to keep
        results.measure(name, "x", compared)
    else:
        results.target(name, "x", compared, at_least=0.9)
    if loop is not None:
        results.measure(f"a key a topic, loop in Python: {topics:,} topics", "s a batch", [loop["seconds"]])
        name = f"loop in Python / headgate at {topics:,} topics"
        results.target(name, "x", [loop["seconds"] / statistics.median(seconds["headgate"])], at_least=40)
    of_headgate = runs["headgate"]
    for part in ("java", "python"):
        peaks = [run[f"{part}_bytes"] / 2**30 for run in of_headgate]
        results.measure(f"headgate, peak memory of {part}: {topics:,} topics", "GiB", peaks)
    if topics >= LOOP_TOPICS:
        state = [run["state_bytes"] / topics for run in of_headgate]
        results.target(f"state at {topics:,} topics", "bytes a topic", state, at_most=200)
    return {side: statistics.median(values) for side, values in seconds.items()}


def compare_formats(results: Results, repetitions: int) -> None:
    """The job over the same rows in both formats, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, LOOP_TOPICS, BATCHES)
        write_limits(source / "conf", LOOP_TOPICS)
        for file in source.glob("*.parquet"):
            lines = file.with_suffix(".json")
            duckdb.sql(f"COPY (SELECT * REPLACE ({TIME} AS event_time) FROM '{file}') TO '{lines}' (FORMAT json)")
            shutil.copystat(file, lines)  # Spark reads files in the order of their times
        runs = {side: partial(lambda side: measured(__file__, side, source)["seconds"], side) for side in FORMATS}
        seconds = interleave(runs, repetitions, warmups=0)
    for side, format_ in FORMATS.items():
        results.measure(format_, "s a batch", seconds[side])
    results.target("JSON / Parquet", "x", ratios(seconds["json"], seconds["headgate"]), at_most=1.3)


if __name__ == "__main__":
    main()
