"""Kill -9 of the whole process at any point: a restart leaves the tables of an undisturbed run."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from headgate.trace import write_trace
from integration.runs import GROUPS, SMALL, await_that, results_of, rows_of, write_conf

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
TEXT = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\n"


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    """A trace in seven files, limits, and the tables of an undisturbed run in `calm`."""
    folder = tmp_path_factory.mktemp("crash")
    write_trace(SMALL, folder / "trace", "json")
    write_conf(folder / "conf", TEXT, groups=GROUPS)
    assert start(folder, "calm").wait(TIMEOUT_S) == 0
    return folder


def start(scene: Path, output: str, pid_file: Path | None = None) -> subprocess.Popen[bytes]:
    command = [ROOT / "spark-submit.sh", "jobs/throttle.py", "--once", "--format", "json"]
    command += ["--input", scene / "trace", "--output", scene / output, "--conf-dir", scene / "conf"]
    environment = os.environ | ({"HEADGATE_PID_FILE": str(pid_file)} if pid_file else {})
    with (scene / f"{output}.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def kill_in_batch(scene: Path, output: str, versions: int) -> None:
    """Start, and kill the job's process group when its tables have that many commits; it may have ended before."""
    pid_file = scene / f"{output}.pid"
    pid_file.unlink(missing_ok=True)
    process = start(scene, output, pid_file)
    await_that(
        lambda: process.poll() is not None or commits(scene / output) >= versions, f"{versions} commits", TIMEOUT_S
    )
    if process.poll() is None:
        os.killpg(os.getpgid(int(pid_file.read_text())), signal.SIGKILL)
    process.wait(TIMEOUT_S)


def commits(output: Path) -> int:
    return len(list(output.glob("*/_delta_log/*.json")))


def compare_after_kills(scene: Path, output: str, points: list[int]) -> None:
    for versions in points:
        kill_in_batch(scene, output, versions)
    log = (scene / f"{output}.log").read_text
    assert start(scene, output).wait(TIMEOUT_S) == 0, log()
    assert results_of(scene / "calm") == results_of(scene / output)
    assert rows_of(scene / "calm", "dead_letters") == rows_of(scene / output, "dead_letters")
    assert sum(row["rows"] for row in rows_of(scene / output, "batches")) == SMALL.events


def test_two_kills_double_and_lose_nothing(scene) -> None:
    compare_after_kills(scene, "two", [8, 19])


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene) -> None:
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    for n in range(5):
        points = sorted(chosen.randrange(6, 34) for _ in range(4))
        compare_after_kills(scene, f"random-{seed}-{n}", points)
