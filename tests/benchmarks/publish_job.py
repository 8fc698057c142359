"""The publish job against Spark's own aggregation of the same input into the same kind of sink.

    python tests/benchmarks/publish_job.py [--topics 1000 100000 1000000] [--repetitions 3] [--save]

Each side runs in a process of its own, in turns. The value of a run is the median of its batches after the second.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _bench import Results, interleave, parser, ratios
from deltalake import write_deltalake
from pyspark.sql import functions as F

from headgate.conf import load_conf
from headgate.spark.session import spark_session
from headgate.spark.throttle import ThrottleJob, ThrottleRun

EVENTS = 500_000
BATCHES = 6
SETTLED_AFTER = 1
START_US = 1_767_603_600_000_000
BATCH_US = 2_000_000
FILES = 2
SIDES = ("headgate", "aggregation")


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


def write_limits(folder: Path) -> None:
    """All limits on: topic, broker and group, messages and bytes; the topics' bite now and then."""
    (folder / "broker.conf").write_text(
        "maxPublishRatePerTopicInMessages=60\nmaxPublishRatePerTopicInBytes=200000\n"
        "brokerPublisherThrottlingMaxMessageRate=100000000\nbrokerPublisherThrottlingMaxByteRate=100000000000\n"
    )
    groups = {"g": {"publishRateInMsgs": 2_000_000, "publishRateInBytes": 10**10}}
    attached = {f"tenant-{i}": "g" for i in range(50)}
    (folder / "resource-groups.json").write_text(json.dumps({"resourcegroups": groups, "tenants": attached}))
    (folder / "headgate.toml").write_text(f"[input]\nmax_files_per_trigger = {FILES}\n")


class Ends:
    """When each full batch ended; what lies between two is a batch's time, triggers following one another at once."""

    def __init__(self) -> None:
        self._ends_s: list[float] = []

    def note(self) -> None:
        self._ends_s.append(time.monotonic())

    def seconds(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self._ends_s)]


def run_headgate(source: Path, work: Path) -> list[float]:

    write_limits(work)
    spark = spark_session("benchmark")
    job = ThrottleJob(f"{source}/*.parquet", "parquet", f"{work}/out", f"{work}/out/checkpoint", once=True)
    ends = Ends()
    ThrottleRun(spark, job, load_conf(work), lambda batch, _: batch.rows and ends.note(), threading.Event()).run()
    return ends.seconds()


def run_aggregation(source: Path, work: Path) -> list[float]:

    spark = spark_session("benchmark")
    pattern = f"{source}/*.parquet"
    events = spark.readStream.schema(spark.read.parquet(pattern).schema).option("maxFilesPerTrigger", FILES)
    sums = events.parquet(pattern).groupBy("topic").agg(F.sum("messages").alias("m"), F.sum("bytes").alias("b"))

    ends = Ends()

    def sink(batch: Any, _batch_id: int) -> None:
        write_deltalake(f"{work}/sums", batch.toArrow(), mode="append")
        ends.note()

    writer = sums.writeStream.foreachBatch(sink).outputMode("update").option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    return ends.seconds()


def measured(side: str, source: Path) -> float:
    """The median seconds a batch of one run of `side`, in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--source", str(source)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(done.stdout.splitlines()[-1])


def run_side(side: str, source: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        seconds = {"headgate": run_headgate, "aggregation": run_aggregation}[side](source, Path(work))
    print(statistics.median(seconds[SETTLED_AFTER:]))


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--topics", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    options.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    about = (
        f"{EVENTS:,} events a batch, all limits on, {BATCHES} batches a run; Spark's own groupBy(topic) sums beside."
    )
    with Results("publish_job", "Publish job against an aggregation", about=about, save=arguments.save) as results:
        for topics in arguments.topics:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder)
                write_input(source, topics, BATCHES)
                sides = {side: lambda side=side, source=source: measured(side, source) for side in SIDES}
                values = interleave(sides, arguments.repetitions, warmups=0)
            for side in SIDES:
                results.measure(f"{side}: {topics:,} topics", "s a batch", values[side])
            name = f"aggregation / headgate at {topics:,} topics"
            results.target(name, "x", ratios(values["aggregation"], values["headgate"]), at_least=0.9)


if __name__ == "__main__":
    main()
