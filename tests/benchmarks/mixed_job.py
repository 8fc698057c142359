"""The throttle job over all kinds of rows against Spark's own aggregation by topic and kind into the same kind of sink.

    python tests/benchmarks/mixed_job.py [--topics 100000] [--repetitions 3]

60 % of the rows are publishes, 30 % dispatches, 10 % others: subscribes, unloads, and what connections do. Limits of
every kind are on. Sides and batches are those of publish_job.py.
"""

import argparse
import json
import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
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
    run_aggregation,
    run_headgate,
)

from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

SHARES = {"publish": 0.6, "dispatch": 0.3, "subscribe": 0.04, "unload": 0.01, "connection": 0.05}
BROKERS, CONNECTIONS, THREADS = 4, 997, 8
RUNS = {"headgate": run_headgate, "aggregation": partial(run_aggregation, keys=("topic", "kind"))}


def write_input(folder: Path, topics: int, batches: int) -> None:
    """Uniform traffic of 50 tenants, FILES files a batch."""
    random = np.random.default_rng(1)
    names = np.array([f"persistent://tenant-{i % 50}/ns-{i % 500}/topic-{i}" for i in range(topics)])
    for batch in range(batches):
        table = mixed(random, names, batch)
        size = EVENTS // FILES
        for part in range(FILES):
            pq.write_table(table.slice(part * size, size), folder / f"part-{batch:03}-{part}.parquet")


def mixed(random: np.random.Generator, names: np.ndarray, batch: int) -> pa.Table:
    topic = random.integers(0, len(names), EVENTS)
    times = np.sort(random.integers(0, BATCH_US, EVENTS)) + START_US + batch * BATCH_US
    kind = random.choice(list(SHARES), EVENTS, p=list(SHARES.values()))
    is_of = {name: kind == name for name in SHARES}
    consumer = random.integers(1, 4, EVENTS)
    action, connection, io_thread, of_bytes = connections(random, is_of["connection"], topic)
    both = is_of["publish"] | is_of["dispatch"]

    def only(values: object, *kinds: str) -> pa.Array:
        return pa.array(values, mask=~np.logical_or.reduce([is_of[name] for name in kinds]))

    return pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "seq": np.arange(EVENTS) + batch * EVENTS,
            "broker": np.char.add("broker-", (np.where(is_of["connection"], io_thread, topic) % BROKERS).astype(str)),
            "topic": only(names[topic], "publish", "dispatch", "subscribe"),
            "kind": kind,
            "producer": only(np.char.add("producer-", (topic % 1000).astype(str)), "publish"),
            "connection": only(np.char.add("connection-", connection.astype(str)), "publish", "connection"),
            "subscription": only(np.char.add("sub-", consumer.astype(str)), "dispatch"),
            "client": only(np.char.add("host-", consumer.astype(str)), "subscribe"),
            "consumer": only(np.char.add("consumer-", consumer.astype(str)), "subscribe"),
            "consumer_id": only(consumer, "subscribe"),
            "bundle": only(np.char.add("tenant/ns/", (topic % 64).astype(str)), "unload"),
            "duration_ms": only(random.integers(5, 500, EVENTS), "unload"),
            "action": only(action, "connection"),
            "io_thread": only(io_thread, "connection"),
            "messages": pa.array(random.integers(1, 10, EVENTS), mask=~both),
            "bytes": pa.array(of_bytes, mask=~(both | is_of["connection"])),
        }
    )


def connections(random: np.random.Generator, is_connection: np.ndarray, topic: np.ndarray) -> tuple[np.ndarray, ...]:
    """Publish requests that start and finish, one after the other, and the connections of publishes."""
    connection, of_bytes = topic % CONNECTIONS, random.integers(100, 10_000, EVENTS)
    places = np.flatnonzero(is_connection)
    first = places[: len(places) // 2 * 2].reshape(-1, 2)
    connection[first[:, 1]], of_bytes[first[:, 1]] = connection[first[:, 0]], of_bytes[first[:, 0]]
    action = np.full(EVENTS, "start")
    action[first[:, 1]] = "finish"
    return action, connection, connection % (BROKERS * THREADS), of_bytes


def write_conf(folder: Path) -> None:
    """Limits of every kind; those of topics and subscriptions bite now and then."""
    folder.mkdir()
    (folder / "broker.conf").write_text(
        "maxPublishRatePerTopicInMessages=60\nmaxPublishRatePerTopicInBytes=200000\n"
        "brokerPublisherThrottlingMaxMessageRate=100000000\nbrokerPublisherThrottlingMaxByteRate=100000000000\n"
        "dispatchThrottlingRateInMsg=100000000\ndispatchThrottlingRatePerTopicInMsg=60\n"
        "dispatchThrottlingRatePerSubscriptionInMsg=30\nsubscribeThrottlingRatePerConsumer=3\n"
        "maxPendingPublishRequestsPerConnection=1000\nmaxMessagePublishBufferSizeInMB=64\nnumIOThreads=8\n"
    )
    rates = {"publishRateInMsgs": 2_000_000, "publishRateInBytes": 10**10}
    rates |= {"dispatchRateInMsgs": 2_000_000, "dispatchRateInBytes": 10**10}
    attached = {f"tenant-{i}": "g" for i in range(50)}
    (folder / "resource-groups.json").write_text(json.dumps({"resourcegroups": {"g": rates}, "tenants": attached}))
    (folder / "headgate.toml").write_text(f"[input]\nmax_files_per_trigger = {FILES}\n")


def run_side(side: str, source: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        seconds = RUNS[side](source, Path(work))
        close_stores(spark_session("benchmark"))
    print(json.dumps({"seconds": statistics.median(seconds[SETTLED_AFTER:] or seconds)}))


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--topics", type=int, default=100_000)
    options.add_argument("--side", choices=RUNS, help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    shares = ", ".join(f"{share:.0%} {kind}" for kind, share in SHARES.items())
    about = (
        f"{EVENTS:,} events a batch ({shares}), limits of every kind on, {BATCHES} batches a run, of which the first "
        f"{SETTLED_AFTER} do not count; Spark's own groupBy(topic, kind) sums of the same input into the same kind of "
        "sink beside."
    )
    with Results("mixed_job", "All kinds of rows against an aggregation", about=about) as results:
        compare(results, arguments.topics, arguments.repetitions)


def compare(results: Results, topics: int, repetitions: int) -> None:
    """Both sides in turns."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, topics, BATCHES)
        write_conf(source / "conf")
        seconds: dict[str, list[float]] = {side: [] for side in SIDES}

        def run(side: str) -> float:
            seconds[side].append(measured(__file__, side, source)["seconds"])
            return 0.0

        interleave({side: partial(run, side) for side in SIDES}, repetitions, warmups=0)
    for side in SIDES:
        results.measure(f"{side}: {topics:,} topics", "s a batch", seconds[side])
    compared = ratios(seconds["aggregation"], seconds["headgate"])
    results.target(f"aggregation / headgate at {topics:,} topics", "x", compared, at_least=0.8)


if __name__ == "__main__":
    main()
