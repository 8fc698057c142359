"""From a batch's trigger to its rows in `marks`, while 2,000 publishes a second come in as files.

    python tests/benchmarks/latency.py [--seconds 180]

The job runs as it does live, with its default settings; limits bite in every batch. A batch counts from when Spark
triggered it (its progress report) to when its rows can be read, which is when its last table is committed.
"""

import json
import statistics
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _bench import Results, parser
from pyspark.sql.streaming import StreamingQueryListener

from headgate.conf import load_conf
from headgate.spark.session import spark_session
from headgate.spark.throttle import ThrottleJob, ThrottleRun

PER_S = 2_000
FILE_S = 0.25
TOPICS = 500
WARM_UP_S = 60


class Feed(threading.Thread):
    """Writes a file of publishes every FILE_S, dated now; each appears whole."""

    def __init__(self, folder: Path, stop: threading.Event) -> None:
        super().__init__()
        self._folder, self._ended, self._seq = folder, stop, 0
        self.write()

    def run(self) -> None:
        due_s = time.monotonic()
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            self.write()
            due_s += FILE_S

    def write(self) -> None:
        now = datetime.now(UTC).isoformat()
        rows = range(self._seq, self._seq + int(PER_S * FILE_S))
        self._seq = rows.stop
        hidden = self._folder / f".{rows.start:09}.json"
        hidden.write_text("".join(json.dumps(publish(n, now)) + "\n" for n in rows))
        hidden.rename(self._folder / hidden.name[1:])


def publish(n: int, event_time: str) -> dict[str, Any]:
    topic = n % TOPICS
    return {
        "event_time": event_time,
        "seq": n,
        "broker": f"broker-{topic % 3}",
        "topic": f"persistent://tenant-{topic % 10}/ns/topic-{topic}",
        "kind": "publish",
        "producer": f"producer-{n % 1000}",
        "connection": f"connection-{n % 100}",
        "messages": 1,
        "bytes": 1000,
    }


class Triggers(StreamingQueryListener):
    """When each batch was triggered, seconds since 1970."""

    def __init__(self) -> None:
        self.at_s: dict[int, float] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to note."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.at_s[event.progress.batchId] = datetime.fromisoformat(event.progress.timestamp).timestamp()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing to note."""


def latencies_s(seconds: float) -> list[float]:
    """Of all batches with marks that were triggered after the warm-up."""
    spark = spark_session("benchmark")
    triggers, stop = Triggers(), threading.Event()
    spark.streams.addListener(triggers)
    visible_s: dict[int, float] = {}

    def on_batch(batch: Any, _waiting: int) -> None:
        if batch.marks:
            visible_s[batch.batch_id] = time.time()

    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "input"
        source.mkdir()
        (Path(work) / "broker.conf").write_text("maxPublishRatePerTopicInMessages=3\n")
        feed = Feed(source, stop)
        job = ThrottleJob(str(source), "json", f"{work}/out", f"{work}/out/checkpoint")
        end = threading.Timer(WARM_UP_S + seconds, stop.set)
        started_s = time.time()
        feed.start()
        end.start()
        ThrottleRun(spark, job, load_conf(work), on_batch, stop).run()
        feed.join()
    spark.sparkContext._gateway.jvm.org.apache.spark.SparkContext.getOrCreate().listenerBus().waitUntilEmpty()
    return [
        visible_s[batch] - at_s
        for batch, at_s in sorted(triggers.at_s.items())
        if batch in visible_s and at_s > started_s + WARM_UP_S
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=180)
    arguments = options.parse_args()
    about = (
        f"{PER_S:,} publishes a second on {TOPICS} topics of 3 brokers, a file every {FILE_S} s, the job's default "
        f"settings; batches that were triggered in the first {WARM_UP_S} s do not count."
    )
    with Results("latency", "From a batch's trigger to its rows in marks", about=about) as results:
        found = latencies_s(arguments.seconds)
        cuts = statistics.quantiles(found, n=100)
        results.measure("trigger to visible, all batches", "s", found)
        results.target("half of the batches", "s", [statistics.median(found)], at_most=0.8)
        results.target("99 of 100 batches", "s", [cuts[98]], at_most=2)


if __name__ == "__main__":
    main()
