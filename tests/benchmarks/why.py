"""How long `headgate why` takes on a day of 100 million marks, and how much memory; the page over the same tables.

    python tests/benchmarks/why.py [--marks 100000000] [--keep DIR]

A day of 10,000 topics of 100 tenants in three groups on 10 brokers; a few topics have most of the marks (Zipf). A
third as many rows of topic_usage, at most one of a topic and second, as jobs write them. The whole command is measured,
as a user runs it: an instant and the whole day, of a topic with many rows and of one with few. Making the tables takes
some minutes and 3 GB; with --keep they stay. Then a service makes views of longer and longer ranges, one after the
other; its memory is the most that it ever had (VmHWM).
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from _bench import Results, high_water_mb, parser
from deltalake import DeltaTable, write_deltalake
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lib")]

from headgate.arrow.topic_names import named_rows, named_schema  # noqa: E402
from headgate.tables.delta import Tables  # noqa: E402
from headgate.throttle.schemas import MARKS, TOPIC_USAGE  # noqa: E402
from unit.service.test_serve import service  # noqa: E402

TOPICS, TENANTS, BROKERS, CHUNKS = 10_000, 100, 10, 96
DAY_S, DAY0_S = 86_400, 1_767_571_200
SECOND_NS = 10**9
MOST_DRAWS = 50
MANY, FEW = 4, 6001
"""Topics with many marks and with few."""
Ints = NDArray[np.int64]
GROUPS = ("gold", "silver", "bronze")


def topic(number: int) -> str:
    return f"persistent://tenant-{number % TENANTS}/ns-{number % 300}/topic-{number}"


def make(output: str, marks: int) -> None:
    """The tables, with the groups that a run of headgate try leaves."""
    Tables(output, {"marks": MARKS, "topic_usage": TOPIC_USAGE})
    chance = np.random.default_rng(7)
    popular = chance.zipf(1.3, 4_000_000) % TOPICS
    names = pa.array([topic(number) for number in range(TOPICS)])
    brokers = pa.array([f"broker-{number}" for number in range(BROKERS)])
    for chunk in range(CHUNKS):
        first_s, length_s = DAY0_S + chunk * DAY_S // CHUNKS, DAY_S // CHUNKS
        for table, rows in (("marks", marks // CHUNKS), ("topic_usage", marks // 3 // CHUNKS)):
            if table == "marks":
                of = chance.choice(popular, rows)
                at_ns = np.sort(chance.integers(first_s * SECOND_NS, (first_s + length_s) * SECOND_NS, rows))
            else:
                second_s, of = once_a_second(chance, popular, rows, length_s)
                at_ns = (first_s + second_s) * SECOND_NS
            is_group = of % 3 > 0
            at_us = at_ns // 1000
            made = {
                "event_time": pa.array(at_us).cast(pa.timestamp("us", "UTC")),
                "broker": brokers.take(pa.array(of % BROKERS)),
                "topic": names.take(pa.array(of)),
                "at_ns": at_ns,
                "producer": pa.array(["p0", "p1"]).take(pa.array(chance.integers(0, 2, rows))),
                "connection": pa.array([f"c{number}" for number in range(1000)]).take(pa.array(of % 1000)),
                "scope": pa.array(["topic", "group"]).take(pa.array(is_group.astype(np.int64))),
                "limiter": pa.array(GROUPS).take(pa.array(of % TENANTS % 3)),
                "type": pa.array(["TopicPublishRate", "ResourceGroupPublishRate"]).take(
                    pa.array(is_group.astype(np.int64))
                ),
                "action": pa.array(["mark", "unmark"]).take(pa.array(chance.integers(0, 2, rows))),
                "messages_balance": -chance.integers(0, 50, rows),
                "messages_per_s": np.full(rows, 1000),
                "publishes": np.full(rows, 10),
                "messages": chance.integers(1, 100, rows),
                "bytes": chance.integers(100, 100_000, rows),
                "throttled_publishes": np.where(is_group, 1, 0),
                "throttled_by_group": np.where(is_group, 1, 0),
                "throttled_ns": np.where(is_group, SECOND_NS // 10, 0),
            }
            schema = MARKS if table == "marks" else TOPIC_USAGE
            columns = [made.get(name, pa.nulls(rows, schema.field(name).type)) for name in schema.names]
            whole = named_rows(pa.table(columns, schema.names)).cast(named_schema(schema))
            write_deltalake(f"{output}/{table}", whole, mode="append")


def once_a_second(chance: np.random.Generator, popular: Ints, rows: int, length_s: int) -> tuple[Ints, Ints]:
    """Seconds from 0 on and topics, in the order of time: no pair twice, up to `rows` of them."""
    pairs = np.zeros(0, np.int64)
    for _ in range(MOST_DRAWS):
        if len(pairs) >= rows:
            break
        drawn = chance.integers(0, length_s, rows) * TOPICS + chance.choice(popular, rows)
        pairs = np.union1d(pairs, drawn)
    kept = np.sort(chance.choice(pairs, min(rows, len(pairs)), replace=False))
    return kept // TOPICS, kept % TOPICS


def conf(folder: Path) -> None:
    """Tenants in the three groups."""
    tenants = {f"tenant-{number}": GROUPS[number % 3] for number in range(TENANTS)}
    groups = {name: {"publishRateInMsgs": 900} for name in GROUPS}
    folder.mkdir()
    (folder / "resource-groups.json").write_text(json.dumps({"resourcegroups": groups, "tenants": tenants}))


def asked(output: str, *options: str) -> tuple[float, float, float, dict[str, object]]:
    """Wall clock, CPU seconds and megabytes of the command, and what it answered."""
    command = [sys.executable, "-m", "headgate", "why", *options, output, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True)
    took_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took_s, cpu_s, int(done.stderr.splitlines()[-1]) / 1024, json.loads(done.stdout)


def measure_page(output: str, results: Results) -> None:
    """The page: how long each view takes, and the service's memory up to then."""
    path = topic(MANY).replace("://", "/")
    views = ["/now", f"/topics/{path}", "/tenants", f"/why/{path}"]
    with service(output) as one:
        for last_s, span in ((300, "5 minutes"), (3600, "an hour"), (DAY_S, "the day")):
            for view in views:
                began = time.perf_counter()
                status, *_ = one.ask("GET", f"{view}?last={last_s}", token=None)
                assert status == 200, (view, status)
                results.measure(f"page {view}, {span}", "s", [time.perf_counter() - began])
            results.target(f"service, up to views of {span}", "MB", [high_water_mb(one.process.pid)], at_most=500)


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--marks", type=int, default=100_000_000)
    options.add_argument("--keep", metavar="DIR", help="where the tables are, or are to stay")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        output = arguments.keep or f"{scratch}/output"
        if not DeltaTable.is_deltatable(f"{output}/marks"):
            conf(Path(scratch) / "conf")
            trial = [sys.executable, "-m", "headgate", "try", "--conf-dir", f"{scratch}/conf", "--output", output]
            subprocess.run(trial, check=True, capture_output=True)
        if DeltaTable(f"{output}/marks").version() < CHUNKS:
            for name in ("marks", "topic_usage"):
                subprocess.run(["rm", "-r", f"{output}/{name}"], check=True)
            make(output, arguments.marks)
        noon = ("--at", str((DAY0_S + DAY_S // 2) * 1000))
        day = ("--from", str(DAY0_S * 1000))
        with Results("why", "A question to a day of marks", about=f"{arguments.marks:,} marks") as results:
            for number in (MANY, FEW):
                for name, when in (("an instant", noon), ("the day", day)):
                    runs = [asked(output, topic(number), *when) for _ in range(arguments.repetitions)]
                    took_s, cpu_s, mb, found = map(list, zip(*runs, strict=True))
                    question = f"topic-{number}, {name}"
                    results.measure(f"{question} ({found[0]['reason']})", "CPU s", cpu_s)
                    results.measure(question, "MB", mb)
                    results.target(question, "s", took_s, at_most=2)
            measure_page(output, results)


if __name__ == "__main__":
    main()
