"""Jobs as real processes through spark-submit.sh, with little memory and their state in a few parts."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.runs import await_that

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
SMALL_SPARK = ("--driver-memory", "1g", "--conf", "spark.sql.shuffle.partitions=2")


def command(job: str, *arguments: str) -> list[str]:
    return [str(ROOT / "spark-submit.sh"), *SMALL_SPARK, f"jobs/{job}.py", *arguments]


def run_job(job: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The job from start to end."""
    return subprocess.run(
        command(job, *arguments),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@contextmanager
def started(job: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job while the block runs, its screen in `log`; ended by SIGKILL if the block leaves it running."""
    with log.open("ab") as screen:
        process = subprocess.Popen(command(job, *arguments), cwd=ROOT, stdout=screen, stderr=screen)
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
