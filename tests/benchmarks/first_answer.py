"""How long a first answer takes: `headgate try` and its sisters, and the Spark job beside a query without rules.

    python tests/benchmarks/first_answer.py [--only try sweep replay spark rows] [--repetitions 3]

Each command runs as a user would run it, warm: compiled rules are there. CPU seconds are of the command and of all that
it waits for; sweep and replay do not wait for their processes, so they have wall seconds alone.
`rows` makes ten million publishes over 100,000 topics once, in .cache, and takes a gigabyte of disk.
"""

import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from _bench import Results, interleave, parser, ratios

from headgate.trace.spec import TraceSpec
from headgate.trace.write import write_trace

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".cache" / "first-answer"
MANY = TraceSpec(events=10_000_000, topics=100_000, duration_s=600.0, files=40)
PARTS = ("try", "sweep", "replay", "spark", "rows")


class Used(NamedTuple):
    """What a command took. status: its exit status. peak_bytes: of its largest process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    status: int


def run(*command: str | Path) -> Used:
    """Run a command to its end; what it prints is thrown away."""
    began_s = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - began_s
    return Used(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, process.returncode)


def headgate(*arguments: str | Path) -> Used:
    return run(ROOT / ".venv" / "bin" / "headgate", *arguments)


def measure(results: Results, name: str, used: list[Used], *, wall_s: float, cpu_s: float | None = None) -> None:
    """Wall seconds, and CPU seconds where they have a bound."""
    results.target(f"{name}, wall", "s", [one.wall_s for one in used], at_most=wall_s)
    if cpu_s is not None:
        results.target(f"{name}, CPU", "s", [one.cpu_s for one in used], at_most=cpu_s)


def several(repetitions: int, *arguments: str | Path) -> list[Used]:
    headgate(*arguments)  # compiles what is new
    return [headgate(*arguments) for _ in range(repetitions)]


def tries(results: Results, repetitions: int) -> None:
    measure(results, "try, bundled trace", several(repetitions, "try"), wall_s=5, cpu_s=6)
    measure(results, "headgate --help", several(repetitions, "--help"), wall_s=0.5)
    wrong = WORK / "wrong"
    shutil.copytree(ROOT / "conf", wrong, dirs_exist_ok=True)
    (wrong / "broker.conf").write_text("maxPublishRatePerTopicInMessages=many\n")
    mistaken = several(repetitions, "try", "--conf-dir", wrong)
    measure(results, "try with a conf mistake", mistaken, wall_s=1)
    results.check("a conf mistake is status 2", passed={2} == {used.status for used in mistaken})


def sweep(results: Results, repetitions: int) -> None:
    measure(results, "default sweep", several(repetitions, "sweep"), wall_s=15)


def replay(results: Results, repetitions: int) -> None:
    """The bundled trace under two conf folders."""
    other = WORK / "other"
    shutil.copytree(ROOT / "conf", other, dirs_exist_ok=True)
    used = several(repetitions, "replay", "--conf-dir", ROOT / "conf", "--conf-dir", other)
    measure(results, "replay of the bundled trace under 2 confs", used, wall_s=15)


def spark(results: Results, repetitions: int) -> None:
    """README's Spark command, and the same query with an operator that does nothing."""
    launcher = ROOT / "spark-submit.sh"
    sides = {
        "README's Spark command": lambda: run(launcher, "jobs/throttle.py").cpu_s,
        "the same query without rules": lambda: run(launcher, "tests/benchmarks/_floor.py").cpu_s,
    }
    values = interleave(sides, repetitions, warmups=1)
    for name, cpu_s in values.items():
        results.measure(f"{name}, CPU", "s", cpu_s)
    ours, floor = values.values()
    results.target("README's Spark command / the same query without rules", "x", ratios(ours, floor), at_most=1.6)


def rows(results: Results, repetitions: int) -> None:
    """Ten million publishes as Parquet, under limits of topics that throttle some of them."""
    trace = WORK / "many"
    if not trace.exists():
        write_trace(replace(MANY, moves=1), trace, "parquet")
    limits = WORK / "limits"
    limits.mkdir(exist_ok=True)
    (limits / "broker.conf").write_text(
        "maxPublishRatePerTopicInMessages=1000\nmaxPublishRatePerTopicInBytes=1000000\n"
    )
    used = several(repetitions, "try", "--conf-dir", limits, trace)
    speeds = [MANY.events / one.wall_s for one in used]
    results.target("try, 10 M publishes over 100,000 topics", "rows/s", speeds, at_least=250_000)
    results.target("its memory", "GB", [one.peak_bytes / 1e9 for one in used], at_most=1.5)


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help="default: all")
    arguments = options.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    WORK.mkdir(parents=True, exist_ok=True)
    parts = dict(zip(PARTS, (tries, sweep, replay, spark, rows), strict=True))
    title = "A first answer: commands without Spark, and the Spark job beside a query without rules"
    with Results("first_answer", title) as results:
        for name in arguments.only:
            parts[name](results, arguments.repetitions)


if __name__ == "__main__":
    sys.exit(main())
