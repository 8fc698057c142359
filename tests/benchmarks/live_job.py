"""What a batch of a live job costs, minute by minute: it must not depend on how many batches came before.

    python tests/benchmarks/live_job.py [--minutes 8] [--job floor] [--keep-files]

The throttle job runs through spark-submit.sh as it does live: 200 publishes a second of two brokers, which share the
quota of a group that bites in one second of four, a file a second, a batch a second. A minute's line has the CPU time
of a batch, of all processes of the job and of each part, and their memory.

    java       Spark: planning, parsing, state, checkpoint
    driver     the job's own Python: tables, and the quota loop
    workers    Python that Spark starts for the rules

`--job floor` runs the same input through an operator that does nothing, without tables: Spark's own price.
A file is deleted a minute after it was written, as whoever runs such a job has to do: Spark lists the whole folder for
every batch. `--keep-files` shows what that costs. Run it for 65 minutes to see growth.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from _bench import Results, parser

ROOT = Path(__file__).parents[2]
PER_S = 200
TOPICS = 40
KEPT_S = 60
BURST_EVERY_S, BURST_MESSAGES = 4, 3
GROUPS = {
    "resourcegroups": {"gold": {"publishRateInMsgs": 2 * PER_S, "publishRateInBytes": 100_000_000}},
    "tenants": {"acme": "gold"},
}
"""More than traffic has in the long run: what waits does not add up."""
JOBS = {"throttle": "jobs/throttle.py", "floor": "tests/benchmarks/_live_floor.py"}
RESULTS = {
    "throttle": ("live_job", "What a batch of a live job costs"),
    "floor": ("live_floor", "What a batch of the same input costs without rules and tables"),
}
PARTS = ("java", "driver", "workers")
SETTLED_MINUTES = 5
WINDOW_MINUTES = 3
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Input(threading.Thread):
    """Writes a file of publishes a second, dated now; each appears whole. keeps: whether old ones stay."""

    def __init__(self, folder: Path, stop: threading.Event, *, keeps: bool) -> None:
        super().__init__()
        self._folder, self._stop_asked, self._keeps = folder, stop, keeps
        self._written: deque[Path] = deque()

    def run(self) -> None:
        second = int(time.time())
        while not self._stop_asked.wait(max(0.0, second - time.time())):
            self._write(second)
            if not self._keeps and len(self._written) > KEPT_S:
                self._written.popleft().unlink()
            second += 1

    def _write(self, second: int) -> None:
        """The publishes of the second before."""
        rows = (publish(second - 1, n) for n in range(PER_S))
        file = self._folder / f"{second}.json"
        hidden = file.with_name(f".{file.name}")
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(file)
        self._written.append(file)


def publish(second: int, n: int) -> dict[str, Any]:
    """The n-th of a second; the first broker has two of three."""
    topic = n % TOPICS
    return {
        "event_time": datetime.fromtimestamp(second + n / PER_S, UTC).isoformat(),
        "seq": n,
        "broker": "b2" if topic % 3 == 0 else "b1",
        "topic": f"persistent://acme/shop/topic-{topic}",
        "kind": "publish",
        "producer": f"producer-{topic}",
        "connection": f"connection-{topic}",
        "messages": 1 if second % BURST_EVERY_S else BURST_MESSAGES,
        "bytes": 1000,
    }


class Process(NamedTuple):
    """A process of the job. cpu_s: with that of its children that have ended."""

    pid: int
    parent: int
    part: str
    cpu_s: float
    memory_bytes: int


class Sample(NamedTuple):
    """At one instant: batches that Spark has noted as done, CPU seconds since the start and memory, by part."""

    batches: int
    cpu_s: dict[str, float]
    memory_bytes: dict[str, int]


def sampled(pid: int, checkpoint: Path) -> Sample:
    cpu_s, memory_bytes = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, 0)
    for process in tree(pid):
        cpu_s[process.part] += process.cpu_s
        memory_bytes[process.part] += process.memory_bytes
    commits = [int(file.name) for file in (checkpoint / "commits").glob("*") if file.name.isdecimal()]
    return Sample(max(commits, default=-1) + 1, cpu_s, memory_bytes)


def tree(pid: int) -> Iterator[Process]:
    """The process and all below it."""
    running = [one for folder in Path("/proc").glob("[0-9]*") if (one := process_of(folder))]
    above = {pid}
    yield from (one for one in running if one.pid == pid)
    while below := [one for one in running if one.parent in above]:
        yield from below
        above = {one.pid for one in below}


def process_of(folder: Path) -> Process | None:
    """None for one that has ended meanwhile."""
    with suppress(OSError):
        name, _, fields = (folder / "stat").read_text().rpartition(") ")
        state = fields.split()
        command = (folder / "cmdline").read_bytes()
        resident = int((folder / "statm").read_text().split()[1])
        part = "java" if name.endswith("(java") else "workers" if b"pyspark.daemon" in command else "driver"
        cpu_s = sum(map(int, state[11:15])) / TICKS_PER_S
        return Process(int(folder.name), int(state[1]), part, cpu_s, resident * PAGE_BYTES)
    return None


@contextmanager
def running(job: str, work: Path, *, keeps: bool) -> Iterator[subprocess.Popen[bytes]]:
    """The job with its input while the block runs; stopped after it."""
    stop = threading.Event()
    source, conf = work / "input", work / "conf"
    source.mkdir(parents=True)
    shutil.copytree(ROOT / "conf", conf)
    (conf / "broker.conf").write_text("")
    (conf / "policies.json").write_text("{}")
    (conf / "resource-groups.json").write_text(json.dumps(GROUPS))
    feeder = Input(source, stop, keeps=keeps)
    feeder.start()
    options = ["--input", source, "--format", "json", "--output", work / "out", "--conf-dir", conf]
    with (work / "screen.log").open("wb") as screen:
        command = [str(ROOT / "spark-submit.sh"), JOBS[job], *map(str, options)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=screen, stderr=screen)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        stop.set()
        feeder.join()


def minute_by_minute(job: str, minutes: int, *, keeps: bool) -> Iterator[Sample]:
    """A sample after the first batch, and one for each minute from then on."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "live"
        checkpoint = work / "out" / "checkpoint"
        with running(job, work, keeps=keeps) as process:
            while not (first := sampled(process.pid, checkpoint)).batches:
                ended_early(process, work)
                time.sleep(1)
            yield first
            due_s = time.monotonic()
            for _ in range(minutes):
                due_s += 60
                time.sleep(max(0.0, due_s - time.monotonic()))
                ended_early(process, work)
                yield sampled(process.pid, checkpoint)


def ended_early(process: subprocess.Popen[bytes], work: Path) -> None:
    if process.poll() is not None:
        sys.exit(f"the job ended with status {process.returncode}:\n{(work / 'screen.log').read_text()[-4000:]}")


def cpu_s_a_batch(earlier: Sample, later: Sample) -> dict[str, float]:
    """By part, and in all."""
    batches = max(1, later.batches - earlier.batches)
    by_part = {part: (later.cpu_s[part] - earlier.cpu_s[part]) / batches for part in PARTS}
    return by_part | {"all": sum(by_part.values())}


def row_of(minute: int, earlier: Sample, later: Sample) -> dict[str, float]:
    """A minute's line: CPU s a batch, memory in MB."""
    cpu = {f"{part}_cpu_s": round(spent, 3) for part, spent in cpu_s_a_batch(earlier, later).items()}
    memory = {f"{part}_mb": later.memory_bytes[part] >> 20 for part in PARTS}
    return {"minute": minute, "batches": later.batches - earlier.batches} | cpu | memory


def measure(results: Results, job: str, minutes: int, *, keeps: bool) -> None:
    samples: list[Sample] = []
    for sample in minute_by_minute(job, minutes, keeps=keeps):
        if samples:
            results.row(row_of(len(samples), samples[-1], sample))
        samples.append(sample)
    last = len(samples) - 1
    windows = {"at the end": (max(0, last - WINDOW_MINUTES), last)}
    if last >= SETTLED_MINUTES + WINDOW_MINUTES:
        windows = {
            f"after {SETTLED_MINUTES} minutes": (SETTLED_MINUTES, SETTLED_MINUTES + WINDOW_MINUTES),
            f"after {last - WINDOW_MINUTES} minutes": (last - WINDOW_MINUTES, last),
        }
    spent = {name: cpu_s_a_batch(samples[begin], samples[end]) for name, (begin, end) in windows.items()}
    results.table("CPU s a batch", ("when", *PARTS, "all"), [cells(name, one) for name, one in spent.items()])
    first, end = next(iter(spent.values())), list(spent.values())[-1]
    if job == "floor":
        return
    results.target("CPU of a batch, settled", "s", [first["all"]], at_most=0.3)
    if len(spent) > 1:
        results.target("CPU of a batch, at the end / settled", "x", [end["all"] / first["all"]], at_most=1.1)
        memory = [samples[at].memory_bytes["driver"] for at in (SETTLED_MINUTES, last)]
        results.target("memory of the driver's Python, at the end / settled", "x", [memory[1] / memory[0]], at_most=1.1)


def cells(name: str, spent: dict[str, float]) -> Sequence[str]:
    return [name, *(f"{spent[part]:.3f}" for part in (*PARTS, "all"))]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--minutes", type=int, default=8, help="after the first batch; default 8")
    options.add_argument("--job", choices=JOBS, default="throttle", help="default throttle")
    options.add_argument("--keep-files", action="store_true", help="input files stay in their folder")
    given = options.parse_args()
    about = (
        f"{PER_S} publishes a second of two brokers that share a quota, on {TOPICS} topics, a file and a batch a "
        f"second, the job's default settings. Windows are of {WINDOW_MINUTES} minutes."
    )
    name, title = RESULTS[given.job]
    with Results(name, title, about=about) as results:
        measure(results, given.job, given.minutes, keeps=given.keep_files)


if __name__ == "__main__":
    main()
