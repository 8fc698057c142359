"""headgate's wheel in a virtual environment, without the checkout: its jobs on one machine and on a cluster."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sysconfig import get_path

import pytest

from headgate.trace import write_trace
from integration.processes import FOR_FEW_ROWS, commits, options
from integration.runs import GROUPS, SMALL, await_that, results_of, rows_of, write_conf
from real_broker import free_ports

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="the loopback cluster is tested on Linux"),
]

PATIENCE_S = 900
ROOT = Path(__file__).parents[2]
SETTINGS = [part for name, value in FOR_FEW_ROWS.items() for part in ("--conf", f"{name}={value}")]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual environment. The packages that headgate needs are this one's; jars are where an image has them."""
    folder = tmp_path_factory.mktemp("wheel")
    source, environment = folder / "source", folder / "venv"
    for name in ("lib", "jobs", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ran(sys.executable, "-m", "venv", "--without-pip", environment)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(get_path("purelib"))
    pip, offline = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps", "--no-build-isolation"]
    ran(*pip, "--python", environment / "bin" / "python", "install", *offline, source)
    shutil.rmtree(source)
    (environment / "share" / "headgate" / "jars").symlink_to(ROOT / ".cache" / "jars" / "delta")
    return environment


def ran(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def throttle(installed: Path, traffic: Path, output: Path, *spark: str) -> list[str]:
    settings = ["--conf", "spark.driver.memory=1g", *SETTINGS]
    paths = options(input=traffic / "trace", output=output, conf_dir=traffic / "conf")
    return [str(installed / "bin" / "headgate"), "job", *settings, *spark, "throttle", "--once", *paths]


@contextmanager
def cluster(installed: Path, folder: Path) -> Iterator[str]:
    """Two workers with a core each, by the script."""
    port, web_port = map(str, free_ports(2))
    script = (str(installed / "bin" / "python"), str(ROOT / "scripts" / "standalone_cluster.py"))
    place = ("--folder", str(folder), "--port", port, "--web-port", web_port)
    try:
        url = ran(*script, "start", *place).strip()
        assert url == f"spark://127.0.0.1:{port}"
        assert url == ran(*script, "start", *place).strip()
        yield url
    finally:
        ran(*script, "stop", *place)
    assert not list(folder.glob("*.pid"))


def test_the_job_on_a_cluster_that_loses_a_machine_writes_the_tables_of_one_machine(installed, tmp_path) -> None:
    """The second worker is killed with its executor and their Python when half of the batches are through."""
    write_trace(SMALL, tmp_path / "trace", "json")
    write_conf(tmp_path / "conf", "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\n", groups=GROUPS)
    one, two, machines, screen = (tmp_path / name for name in ("one", "two", "machines", "screen"))
    ran(*throttle(installed, tmp_path, one, "--master", "local[2]"), cwd=tmp_path)
    expected = results_of(one)
    assert expected["marks"]
    with cluster(installed, machines) as master, screen.open("wb") as sink:
        command = throttle(installed, tmp_path, two, "--master", master, "--conf", "spark.executor.memory=512m")
        with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=sink, stderr=sink) as job:
            half = commits(one) // 2
            await_that(lambda: job.poll() is not None or commits(two) >= half, "half of it", PATIENCE_S)
            assert len(list(machines.glob("worker-?/app-*/*"))) == 2, "both have an executor"
            os.killpg(int((machines / "worker-2.pid").read_text()), signal.SIGKILL)
            assert job.wait(PATIENCE_S) == 0, screen.read_text()
    assert "Lost executor" in screen.read_text()
    assert expected == results_of(two)
    assert rows_of(one, "batches", "rows") == rows_of(two, "batches", "rows")
