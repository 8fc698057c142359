"""From a mark's commit to that of its command, while marks come in as from a live throttle job.

    python tests/benchmarks/protocol_latency.py [--seconds 60]

Ten times a second a commit to `marks` has a mark of each of 20 connections, dated now; what was marked a second before
is released. The job follows them with obedient clients, at a trigger of 1 s and of 200 ms.
"""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from _bench import Results, parser

from headgate.conf import load_conf
from headgate.spark.protocol import ProtocolJob, ProtocolRun
from headgate.spark.session import spark_session
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import throttle_tables

FEED_S = 0.1
CONNECTIONS = 20
WARM_UP_S = 25
TRIGGERS_MS = (1000, 200)
HELD_S = 1.0


class Feed(threading.Thread):
    """Marks of now, and unmarks of what was marked HELD_S before."""

    def __init__(self, output: Path, stop: threading.Event) -> None:
        super().__init__()
        self._tables, self._ended, self._version = throttle_tables(output), stop, 0
        self._marked: list[tuple[float, int]] = []
        self.append()

    def run(self) -> None:
        due_s = time.monotonic()
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            self.append()
            due_s += FEED_S

    def append(self) -> None:
        now_ns = time.time_ns()
        rows = [_row(now_ns + n, n, "mark", self._version) for n in range(CONNECTIONS)]
        due = [number for at_s, number in self._marked if time.monotonic() - at_s >= HELD_S]
        rows += [_row(now_ns + CONNECTIONS + n, n, "unmark", None) for _ in due for n in range(CONNECTIONS)]
        self._marked = [(at_s, number) for at_s, number in self._marked if number not in due]
        self._marked.append((time.monotonic(), self._version))
        self._tables.append("marks", pa.Table.from_pylist(rows, MARKS), "feed", self._version)
        self._version += 1


def _row(at_ns: int, number: int, action: str, seq: int | None) -> dict[str, Any]:
    held = {"messages_balance": -50, "messages_per_s": 100} if action == "mark" else {}
    return held | {
        "at_ns": at_ns,
        "broker": "broker-1",
        "topic": f"persistent://tenant/ns/topic-{number}",
        "producer": "producer",
        "connection": f"connection-{number}",
        "scope": "topic",
        "limiter": f"persistent://tenant/ns/topic-{number}",
        "type": "TopicPublishRate",
        "action": action,
        "seq": seq,
    }


def commits(table: Path) -> Iterator[tuple[int, pa.Table]]:
    """When each commit of a Delta table was made, in ms, and its rows."""
    for entry in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        added = [pq.read_table(table / action["add"]["path"]) for action in actions if "add" in action]
        made_ms = next(action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action)
        if added:
            yield made_ms, pa.concat_tables(added)


def latencies_ms(output: Path, from_ms: float) -> list[float]:
    """Of each command that answers a mark of after `from_ms`: how much later it was committed than its mark."""
    marked_ms = {}
    for made_ms, rows in commits(output / "marks"):
        for at_ns, connection in zip(rows["at_ns"].to_pylist(), rows["connection"].to_pylist(), strict=True):
            marked_ms.setdefault((f"broker-1/{connection}", at_ns // 1_000_000), made_ms)
    return [
        made_ms - marked_ms[place]
        for made_ms, rows in commits(output / "throttle_decisions")
        for place in zip(rows["connection"].to_pylist(), rows["at_ms"].to_pylist(), strict=True)
        if place in marked_ms and place[1] >= from_ms
    ]


def measure(trigger_ms: int, seconds: float) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        output, stop, ended = Path(folder) / "out", threading.Event(), threading.Event()
        (Path(folder) / "headgate.toml").write_text(f"[trigger]\ninterval_ms = {trigger_ms}\n")
        feed = Feed(output, ended)
        job = ProtocolJob(str(output), f"{output}/checkpoint")
        run = ProtocolRun(spark_session("benchmark"), job, load_conf(folder), lambda _: None, stop)
        feed.start()
        threading.Timer(WARM_UP_S + seconds, stop.set).start()
        from_ms = (time.time() + WARM_UP_S) * 1000
        run.run()
        ended.set()
        feed.join()
        return latencies_ms(output, from_ms)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    arguments = options.parse_args()
    about = (
        f"A commit to marks each {FEED_S * 1000:.0f} ms with a mark of each of {CONNECTIONS} connections; "
        "milliseconds from that commit to the one of throttle_decisions with its command."
    )
    with Results("protocol_latency", "From a mark to its command", about=about) as results:
        for trigger_ms in TRIGGERS_MS:
            found = measure(trigger_ms, arguments.seconds)
            cut = statistics.quantiles(found, n=100)
            results.measure(f"trigger {trigger_ms} ms: p50", "ms", [statistics.median(found)])
            results.measure(f"trigger {trigger_ms} ms: p99", "ms", [cut[98]])
            results.note(f"Trigger {trigger_ms} ms: {len(found):,} commands.")


if __name__ == "__main__":
    main()
