"""How soon shares of a quota follow a step of the demand, in the job itself: one for all brokers, and one for each.

    python tests/benchmarks/reaction.py [--steps 12] [--live-steps 4]

Three brokers want more than the quota together, and at a step what they want goes round. A step is over as soon as what
the limits let in stays within 10 % of the exact max-min split, for 15 rounds at least (resource-groups 12.2, 12.3
number 2). Limits are taken from the jobs' own tables, with the event time from which they hold.

The one job takes a recorded trace in, a tenth of a second a batch after a step and then a second, so its times are
event time alone. The jobs of one broker are processes of their own on live traffic.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from _bench import Results, parser
from _reads import note_reads, noted_reads
from deltalake import DeltaTable

from headgate.conf import load_conf
from headgate.core.quota.allocation.exact_split import exact_split
from headgate.spark.session import spark_session
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.tables.query import query
from headgate.throttle.tables import throttle_tables

ROOT = Path(__file__).parents[2]
QUOTA = 1000
WANTED = ({"b1": 600, "b2": 300, "b3": 200}, {"b1": 200, "b2": 600, "b3": 300}, {"b1": 300, "b2": 200, "b3": 600})
"""Messages a second; which of them holds goes round with the steps."""
BROKERS = tuple(WANTED[0])
PER_PUBLISH = 10
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": QUOTA}}, "tenants": {"acme": "gold"}}
SHARED = "[operator]\ngroup_limits = 'shared'\ntraffic = 'offered'\nsend_timeout_ms = 100\n"
"""What is refused is gone (12.1): a backlog would go on to be let in, and count, after a step down."""
EVENT_START_S = 1_767_603_600
STEP_S, FINE_FOR_S, FILE_S = 18, 2, 0.05
LIVE_STEP_S, LIVE_FILE_S, LIVE_WARM_UP_S, LIVE_T_MS = 68, 0.5, 150, 4000
"""T is longer than a batch: those of three jobs on two cores take seconds."""
SMALL_SPARK = ("--driver-memory", "1g", "--conf", "spark.sql.shuffle.partitions=2")
CLOSE = 0.1
OF_LIMITS = ("quota", "limit")


class Step(NamedTuple):
    """From `at_s` on, seconds since 1970, until `until_s`, this is what brokers want."""

    at_s: float
    until_s: float
    wanted: dict[str, int]


class Limit(NamedTuple):
    """The limit of a broker from an event time on, seconds since 1970; None: not limited."""

    at_s: float
    broker: str
    messages_per_s: int | None


class Found(NamedTuple):
    """Of one layout, in seconds: each step to within 10 %, in event time, and each commit to its read.

    too_much: messages that brokers let in beyond their limits.
    """

    reactions_s: list[float]
    reads_s: list[float]
    too_much: int

    def tell(self, results: Results, layout: str) -> None:
        results.measure(f"{layout}: step to within 10 %, event time", "s", self.reactions_s)
        results.measure(f"{layout}: commit to read", "s", self.reads_s)
        results.measure(f"{layout}: commit to read, 99 of 100", "s", [p99(self.reads_s)])
        results.check(f"{layout}: brokers let in what their limits say", passed=self.too_much == 0)


def plan(begin_s: float, first_s: float, length_s: float, steps: int) -> list[Step]:
    """Times up to each of `steps` steps and after them; each step comes anywhere within a second."""
    chosen = random.Random(7)
    at_s = [begin_s, *(begin_s + first_s + length_s * step + chosen.randrange(100) / 100 for step in range(steps))]
    ends = [*at_s[1:], at_s[-1] + length_s]
    return [Step(*times, WANTED[i % len(WANTED)]) for i, times in enumerate(zip(at_s, ends, strict=True))]


def publishes(steps: Sequence[Step]) -> Iterator[tuple[float, str]]:
    """Time and broker of every publish, evenly spread, in order of time."""
    for step in steps:
        every = [
            (step.at_s + (i + 0.5) * PER_PUBLISH / rate, broker)
            for broker, rate in step.wanted.items()
            for i in range(int((step.until_s - step.at_s) * rate / PER_PUBLISH))
        ]
        yield from sorted(every)


def line(at_s: float, broker: str) -> str:
    row = {
        "event_time": round(at_s * 1e6),
        "seq": round(at_s * 1e6),
        "broker": broker,
        "topic": f"persistent://acme/ns/{broker}",
        "kind": "publish",
        "producer": "p",
        "connection": "c",
        "messages": PER_PUBLISH,
        "bytes": 1000,
    }
    return f"{json.dumps(row)}\n"


def reactions_s(steps: Sequence[Step], limits: Sequence[Limit]) -> list[float]:
    """For each step but the first: how long until what is let in stays close; all its time if it never does."""
    held: dict[str, int | None] = {}
    coming = sorted(limits, key=lambda limit: limit.at_s)
    found = []
    for step in steps:
        far_until_s = step.at_s
        while coming and coming[0].at_s < step.until_s:
            now_s = max(coming[0].at_s, step.at_s)
            if not is_close(step.wanted, held):
                far_until_s = now_s
            while coming and max(coming[0].at_s, step.at_s) == now_s:
                limit = coming.pop(0)
                held[limit.broker] = limit.messages_per_s
        found.append((far_until_s if is_close(step.wanted, held) else step.until_s) - step.at_s)
    return found[1:]


def is_close(wanted: dict[str, int], held: dict[str, int | None]) -> bool:
    split = exact_split(QUOTA, list(wanted.values()), [1] * len(wanted), [True] * len(wanted))
    exact = [part / split.scale for part in split.parts]
    let_in = [rate if held.get(broker) is None else min(rate, held[broker] or 0) for broker, rate in wanted.items()]
    return sum(abs(a - x) for a, x in zip(let_in, exact, strict=True)) <= CLOSE * sum(exact)


def too_much(steps: Sequence[Step], limits: Sequence[Limit], admitted: Mapping[tuple[str, int], int]) -> int:
    """How many messages brokers let in beyond their limits, step by step, with a bucket and a publish to spare.

    admitted: by broker and second since 1970.
    """
    beyond = 0
    for step in steps:
        seconds = range(int(step.at_s) + 1, int(step.until_s))
        for broker in step.wanted:
            rates = [limit for limit in limits if limit.broker == broker and limit.messages_per_s is not None]
            allowed = most = 0
            for second in seconds:
                before = [limit for limit in rates if limit.at_s <= second][-1:]
                inside = [limit for limit in rates if second < limit.at_s < second + 1]
                here = max((limit.messages_per_s or 0 for limit in before + inside), default=QUOTA)
                allowed, most = allowed + here, max(most, here)
            let_in = sum(admitted.get((broker, second), 0) for second in seconds)
            beyond += max(0, let_in - allowed - most - PER_PUBLISH)
    return beyond


def admitted_in(output: Path) -> dict[tuple[str, int], int]:
    """Messages that a job let in, by broker and second."""
    found: Counter[tuple[str, int]] = Counter()
    for row in throttle_tables(output).read("topic_usage", ["broker", "event_time", "admitted_messages"]).to_pylist():
        found[row["broker"], int(row["event_time"].timestamp())] += row["admitted_messages"]
    return found


def limits_in(output: Path, broker: str | None = None) -> list[Limit]:
    """What a job went by, as far as it concerns its brokers alone, in order of time."""
    rows = [
        row for row in throttle_tables(output).read("control").to_pylist() if (row["source"], row["kind"]) == OF_LIMITS
    ]
    return [
        Limit(row["effective_time"].timestamp(), row["broker"], row["messages_per_s"])
        for row in sorted(rows, key=lambda row: (row["effective_time"], row["seq"]))
        if row["broker"] is not None and broker in {None, row["broker"]}
    ]


def commits_s(output: Path) -> dict[int, tuple[float, int | None]]:
    """By version of rg_usage: when it was committed, seconds since 1970, and the id of the broker that appended."""
    found: dict[int, tuple[float, int | None]] = {}
    for log in sorted((output / "rg_usage" / "_delta_log").glob("*.json")):
        actions = [json.loads(text) for text in log.read_text().splitlines()]
        at_s = next(action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action) / 1000
        applications = [action["txn"]["appId"] for action in actions if "txn" in action]
        ids = [int(name.split("-")[2]) for name in applications if name.startswith("headgate-usage-")]
        found[int(log.stem)] = at_s, ids[0] if ids else None
    return found


def reads_s(commits: Mapping[int, float], reads: Sequence[tuple[float, int]]) -> list[float]:
    """From each commit, by version, to the end of the first read that has it; those that nobody read are left out."""
    return [
        max(0.0, next(at_s for at_s, newest in reads if newest >= version) - committed_s)
        for version, committed_s in commits.items()
        if reads and version <= reads[-1][1]
    ]


def write_conf(folder: Path, text: str, **broker: int) -> None:
    folder.mkdir()
    (folder / "headgate.toml").write_text(text)
    (folder / "resource-groups.json").write_text(json.dumps(GROUPS))
    (folder / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in broker.items()))


def file_of(at_s: float, steps: Sequence[Step]) -> int:
    """The file of a publish, named by the end of its time, at the latest the next step, in parts of FILE_S."""
    step = [step for step in steps if step.at_s <= at_s][-1]
    files_per_s = round(1 / FILE_S)
    number = int((at_s - EVENT_START_S) / FILE_S) + 1
    if at_s < step.at_s + FINE_FOR_S:
        return number
    return min(-(-number // files_per_s) * files_per_s, int((step.until_s - EVENT_START_S) / FILE_S))


def one_job(work: Path, steps: Sequence[Step]) -> Found:
    """The whole recorded trace through one job, a file a batch."""
    trace, output = work / "trace", work / "out"
    trace.mkdir()
    files: dict[int, list[str]] = {}
    for at_s, broker in publishes(steps):
        files.setdefault(file_of(at_s, steps), []).append(line(at_s, broker))
    for number, lines in files.items():
        file = trace / f"{number:06}.json"
        file.write_text("".join(lines))
        os.utime(file, (EVENT_START_S + number, EVENT_START_S + number))
    write_conf(work / "conf", f"[input]\nmax_files_per_trigger = 1\n{SHARED}")
    job = ThrottleJob(str(trace), "json", str(output), str(output / "checkpoint"), once=True)
    note_reads(work / "reads")
    spark = spark_session("benchmark")
    ThrottleRun(spark, job, load_conf(work / "conf"), lambda _batch, _waiting: None, threading.Event()).run()
    spark.stop()
    limits = limits_in(output)
    commits = {version: at_s for version, (at_s, broker_id) in commits_s(output).items() if broker_id is not None}
    latencies = reads_s(commits, noted_reads(work / "reads"))
    return Found(reactions_s(steps, limits), latencies, too_much(steps, limits, admitted_in(output)))


@contextmanager
def feed(trace: Path, steps: Sequence[Step]) -> Iterator[None]:
    """Files of live traffic, each as its time is over."""
    stop = threading.Event()
    coming = list(publishes(steps))

    def write() -> None:
        due_s, place = steps[0].at_s, 0
        while place < len(coming) and not stop.wait(max(0.0, due_s - time.time())):
            until = bisect_right(coming, due_s, key=lambda publish: publish[0])
            hidden = trace / f".{place:09}.json"
            hidden.write_text("".join(line(*publish) for publish in coming[place:until]))
            hidden.rename(trace / hidden.name[1:])
            due_s, place = due_s + LIVE_FILE_S, until

    writer = threading.Thread(target=write)
    trace.mkdir()
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def job_of(broker: str, work: Path) -> Iterator[None]:
    paths = {"--input": work / "trace", "--output": work / "out", "--conf-dir": work / "conf", "--broker": broker}
    options = [str(part) for option in paths.items() for part in option]
    log = work / f"{broker}.log"
    with log.open("wb") as screen:
        process = subprocess.Popen(
            [str(ROOT / "spark-submit.sh"), *SMALL_SPARK, "tests/benchmarks/_reads.py", "--format", "json", *options],
            cwd=ROOT,
            env=os.environ | {"HEADGATE_READS": str(work / f"{broker}.reads")},
            stdout=screen,
            stderr=screen,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        if process.wait(120):
            raise SystemExit(f"the job of {broker} failed:\n{log.read_text()}")


def job_each(work: Path, steps: int) -> Found:
    """Live traffic through three jobs."""
    write_conf(work / "conf", f"{SHARED}slots = 2\n[live]\nlive_lag_ms = 4000\n", resourceGroupEpochMillis=LIVE_T_MS)
    planned = plan(datetime.now(UTC).timestamp(), LIVE_WARM_UP_S, LIVE_STEP_S, steps)
    with feed(work / "trace", planned), ExitStack() as jobs:
        for broker in BROKERS:
            jobs.enter_context(job_of(broker, work))
        threading.Event().wait(planned[-1].until_s - time.time())
    outputs = {broker: work / "out" / "brokers" / broker for broker in BROKERS}
    limits = [limit for broker, output in outputs.items() for limit in limits_in(output, broker)]
    admitted: dict[tuple[str, int], int] = {}
    for output in outputs.values():
        admitted |= admitted_in(output)
    members = query("SELECT broker_id, name FROM m", {"m": DeltaTable(work / "out" / "rg_members")}).to_pylist()
    names = {row["broker_id"]: row["name"] for row in members}
    commits = commits_s(work / "out")
    latencies = []
    for reader in BROKERS:
        of_others = {
            version: at_s
            for version, (at_s, broker_id) in commits.items()
            if broker_id is not None and names[broker_id] != reader and at_s > planned[1].at_s
        }
        latencies += reads_s(of_others, noted_reads(work / f"{reader}.reads"))
    return Found(reactions_s(planned, limits), latencies, too_much(planned[1:], limits, admitted))


def p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=12, metavar="N", help="of the one job")
    options.add_argument("--live-steps", type=int, default=4, metavar="N", help="of the jobs of one broker")
    arguments = options.parse_args()
    about = (
        f"Three brokers want {sum(WANTED[0].values()):,} messages a second of a quota of {QUOTA:,}, and at a step what "
        f"they want goes round. One job: recorded traffic, {FILE_S} s a batch for {FINE_FOR_S} s after a step, then a "
        f"second, T = 1 s, early cuts every 100 ms. A job a broker: three processes on live traffic, T = "
        f"{LIVE_T_MS / 1000:g} s, batches as long as they take. A step of few counts is as slow as its slowest: the "
        "largest stands for the 99 of 100 of the target."
    )
    title = "From a step of the demand to the shares that it should have"
    with Results("reaction", title, about=about) as results, tempfile.TemporaryDirectory() as work:
        folders = [Path(work) / name for name in ("one", "each")]
        for folder in folders:
            folder.mkdir()
        steps = plan(EVENT_START_S, STEP_S, STEP_S, arguments.steps)
        together = one_job(folders[0], steps)
        together.tell(results, "one job")
        results.target("one job: slowest step to within 10 %", "s", [max(together.reactions_s)], at_most=1)
        apart = job_each(folders[1], arguments.live_steps)
        apart.tell(results, "a job a broker")
        bound_s = LIVE_T_MS / 1000 + p99(apart.reads_s)
        name = "a job a broker: slowest step to within 10 %, T and commit to read"
        results.target(name, "s", [max(apart.reactions_s)], at_most=bound_s)


if __name__ == "__main__":
    main()
