"""Jobs as real processes through spark-submit.sh, with little memory and their state in a few parts."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.runs import await_that

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
FOR_FEW_ROWS = {"spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false"}
"""Of the session and of processes. Generating Java for a plan takes longer than a test's few rows.

The README's command and the benchmarks run the generated code.
"""
SMALL_SPARK = (
    "--driver-memory",
    "1g",
    *(part for name, value in FOR_FEW_ROWS.items() for part in ("--conf", f"{name}={value}")),
)
UNAVAILABLE = 69  # set-up could not fetch something


def command(job: str, *arguments: str) -> list[str]:
    return [str(ROOT / "spark-submit.sh"), *SMALL_SPARK, f"jobs/{job}.py", *arguments]


def options(**values: object) -> list[str]:
    """`conf_dir=x` as --conf-dir x, for each."""
    return [part for name, value in values.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def run_job(job: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The job from start to end.

    All that the job says, errors too, is on stdout: Spark joins its streams. stderr is what spark-submit.sh says.
    """
    return subprocess.run(
        command(job, *arguments),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def connected(done: subprocess.CompletedProcess[str]) -> None:
    """The job has ended well; skip where Spark's Kafka connector cannot be had."""
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"no Kafka connector for Spark: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def started(job: str, *arguments: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """The job while the block runs, its screen in `log`; ended by SIGKILL if the block leaves it running."""
    with log.open("ab") as screen:
        process = subprocess.Popen(
            command(job, *arguments), cwd=ROOT, env=os.environ | environment, stdout=screen, stderr=screen
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(TIMEOUT_S)


def stopped(process: subprocess.Popen[bytes]) -> int:
    """The exit status after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    return process.wait(TIMEOUT_S)


def await_line(log: Path, text: str) -> None:
    await_that(lambda: text in log.read_text(), f"{text!r} on the screen")


def commits(output: Path) -> int:
    """Transactions in all tables of a job."""
    return len(list(output.glob("*/_delta_log/*.json")))


def kill_at_commits(output: Path, versions: int, job: str, *arguments: str, log: Path, delay_s: float = 0.0) -> bool:
    """Kill the job when its tables have that many commits; if they have as many at its start, after its first one."""
    goal = max(versions, commits(output) + 1)
    return kill_when(lambda: commits(output) >= goal, f"{goal} commits", job, *arguments, log=log, delay_s=delay_s)


def kill_when(
    reached: Callable[[], bool], what: str, job: str, *arguments: str, log: Path, delay_s: float = 0.0
) -> bool:
    """Start the job, and kill -9 its process group `delay_s` after `reached` holds; False if the job ended before.

    what: `reached` in words.
    """
    pid_file = log.with_suffix(".pid")
    pid_file.unlink(missing_ok=True)
    with started(job, *arguments, log=log, HEADGATE_PID_FILE=str(pid_file)) as process:
        await_that(lambda: process.poll() is not None or (_noted(pid_file) and reached()), what, TIMEOUT_S)
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay_s)
        if process.poll() is not None:
            return False
        try:
            os.killpg(os.getpgid(_noted(pid_file)), signal.SIGKILL)
        except ProcessLookupError:  # its wrapper alone is left
            return False
        process.wait(TIMEOUT_S)
    return True


def _noted(pid_file: Path) -> int:
    """The process id that a job has written there; 0 if it has not, or has just begun to."""
    return int(pid_file.read_text() or 0) if pid_file.exists() else 0


class Process(NamedTuple):
    """A line of /proc. state: R if it computes. command: its arguments, with spaces between."""

    pid: int
    parent: int
    state: str
    command: str


def python_workers(process: subprocess.Popen[bytes]) -> list[Process]:
    """Those of a job that computes on this machine: what Spark's Python daemon has forked. Linux only."""
    below = _descendants(process.pid)
    daemons = {one.pid for one in below if "pyspark.daemon" in one.command}
    return [one for one in below if one.parent in daemons]


def _descendants(pid: int) -> list[Process]:
    found, above = [], {pid}
    running = [one for folder in Path("/proc").glob("[0-9]*") if (one := _read(folder))]
    while children := [one for one in running if one.parent in above]:
        found += children
        above = {one.pid for one in children}
    return found


def _read(folder: Path) -> Process | None:
    """None for a process that has ended meanwhile."""
    try:
        after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return Process(int(folder.name), int(after_name[1]), after_name[0], words)
