"""What `headgate try` says of a limit, beside what a real Pulsar broker did with it: the same publishes, one run.

    python tests/benchmarks/predicted.py

Two producers, each with a client of its own, publish to topics of a namespace with a publish rate of 100 messages a
second. `flood` sends 150 a second for 30 s and then 40; `steady` 80. When each message was sent is the trace for
`headgate try`; when the broker had it is the broker's side. Compared, by topic: messages let in by the end of each
second, and how long they took.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from _bench import Results, parser
from _clusters import LIB
from cluster_quota import admin, cluster, new_tenant, publishers_of
from cluster_quota import took as ended
from deltalake import DeltaTable

from headgate.tables.query import query

RATE = 100
SENT = [({"a/flood": 150, "a/steady": 80}, 30), ({"a/flood": 40, "a/steady": 80}, 35)]
MS = 1000


def publish() -> dict[str, list[tuple[float, float]]]:
    """When each message was sent, and how long it took, by topic."""
    new_tenant("real")
    rate = {"publishThrottlingRateInMsg": RATE, "publishThrottlingRateInByte": -1}
    admin("POST", "namespaces/real/a/publishRate", rate)
    publishers = publishers_of("real", pending=100_000)
    for rates, seconds in SENT:
        publishers.set(rates)
        time.sleep(seconds)
    return ended(publishers)


def predict(took: dict[str, list[tuple[float, float]]], folder: Path) -> Path:
    """The tables of headgate try for the same publishes."""
    rows = sorted((sent_s, topic) for topic, messages in took.items() for sent_s, _ in messages)
    with (folder / "trace.json").open("w") as trace:
        for seq, (sent_s, topic) in enumerate(rows):
            at = datetime.fromtimestamp(sent_s, UTC).isoformat(timespec="microseconds")
            row = {
                "event_time": at,
                "seq": seq,
                "broker": "b",
                "kind": "publish",
                "topic": f"persistent://real/{topic}",
            }
            trace.write(json.dumps(row | {"producer": topic, "connection": topic, "messages": 1, "bytes": 200}) + "\n")
    conf = folder / "conf"
    conf.mkdir()
    rate = {"publishRate": {"publishThrottlingRateInMsg": RATE, "publishThrottlingRateInByte": -1}}
    (conf / "policies.json").write_text(json.dumps({"namespaces": {"real/a": rate}}))
    given = [folder / "trace.json", "--conf-dir", conf, "--output", folder / "out"]
    subprocess.run([sys.executable, "-m", "headgate", "try", *given], check=True, env={"PYTHONPATH": str(LIB)})
    return folder / "out"


def by_second(times_s: Sequence[float], first_s: int, last_s: int) -> list[int]:
    """How many there were by the end of each second."""
    return [sum(at_s < second + 1 for at_s in times_s) for second in range(first_s, last_s)]


def main() -> None:
    parser(__doc__).parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        cluster(),
        Results("predicted", "headgate try beside a real broker") as results,
    ):
        took = publish()
        output = predict(took, Path(name))
        usage = DeltaTable(output / "topic_usage")
        for topic, messages in took.items():
            sql = f"SELECT * FROM t WHERE topic = 'persistent://real/{topic}' ORDER BY event_time"
            rows = query(sql, {"t": usage}).to_pylist()
            first_s, last_s = int(messages[0][0]), int(max(sent_s + took_s for sent_s, took_s in messages)) + 1
            real = by_second([sent_s + took_s for sent_s, took_s in messages], first_s, last_s)
            let_in = [
                sum(row["admitted_messages"] for row in rows if row["event_time"].timestamp() <= second)
                for second in range(first_s, last_s)
            ]
            worst = max(abs(one - other) for one, other in zip(real, let_in, strict=True))
            results.measure(f"{topic}: most that the two differ, by the end of a second", "messages", [worst])
            waits = MS * sum(took_s for _, took_s in messages) / len(messages)
            said = sum(row["delay_ns"] for row in rows) / 1e6 / len(messages)
            results.measure(f"{topic}: mean time of a publish, broker", "ms", [waits])
            results.measure(f"{topic}: mean wait, headgate", "ms", [said])
            longest = MS * max(took_s for _, took_s in messages)
            results.measure(f"{topic}: longest, broker", "ms", [longest])
            results.measure(f"{topic}: longest, headgate", "ms", [max(row["max_delay_ns"] for row in rows) / 1e6])


if __name__ == "__main__":
    main()
