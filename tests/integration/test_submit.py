"""spark-submit.sh as a user meets it: real processes, real signals, a real cluster."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from headgate.trace import write_trace
from integration.processes import SMALL_SPARK, options
from integration.runs import GROUPS, SMALL, results_of, rows_of, write_conf
from real_broker import free_ports

ROOT = Path(__file__).parents[2]
SUBMIT = ROOT / "spark-submit.sh"
PROBE = "tests/integration/submit_probe.py"
TIMEOUT_S = 300
UNAVAILABLE = 69  # set-up could not fetch something


def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [SUBMIT, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def test_version_names_every_part() -> None:
    lines = submit("--version").stdout.splitlines()
    expected = ["headgate", "python", "java", "pyspark", "delta-spark", "deltalake", "pyarrow"]
    assert expected == [line.split()[0] for line in lines]
    assert f"pyspark      {pyspark.__version__}" in lines


def test_options_before_the_job_go_to_spark_and_those_after_it_to_the_job() -> None:
    done = submit("--conf", "spark.driver.memory=512m", "--name", "x.py", PROBE, "args", "--conf", "a", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    expected = ["--conf", "a", "--version"]
    assert (expected, str(ROOT), "127.0.0.1") == (seen["arguments"], seen["HEADGATE_HOME"], seen["SPARK_LOCAL_IP"])
    assert not seen["HEADGATE_TERMINAL"]


@pytest.mark.parametrize(
    ("what", "status", "printed"), [(["exit", "3"], 3, "ending with 3\n"), (["fail"], 1, "the job's own message")]
)
def test_the_exit_status_is_the_jobs_and_its_message_stands_alone(what, status, printed) -> None:
    done = submit(PROBE, *what)
    assert (status, "") == (done.returncode, done.stderr)
    assert printed in done.stdout


def test_if_spark_refuses_to_start_the_screen_says_why() -> None:
    done = submit("--deploy-mode", "nonsense", PROBE, "args")
    assert (done.returncode, done.stdout) == (1, "")
    assert '--deploy-mode must be either "client" or "cluster"' in done.stderr
    assert "/.cache/logs/submit_probe-" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_the_job_with_status_0(number) -> None:
    with subprocess.Popen([SUBMIT, PROBE, "wait"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "waiting\n"
        job.send_signal(number)
        assert job.wait(TIMEOUT_S) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_killing_the_wrapper_leaves_no_job_behind(tmp_path) -> None:
    pid_file = tmp_path / "pid"
    environment = {**os.environ, "HEADGATE_PID_FILE": str(pid_file)}
    with subprocess.Popen([SUBMIT, PROBE, "wait"], cwd=ROOT, stdout=subprocess.PIPE, env=environment) as job:
        assert job.stdout.readline() == b"waiting\n"
        watched = os.pidfd_open(int(pid_file.read_text()))
        job.kill()
        # The descriptor of a process becomes readable when the process ends.
        readable, _, _ = select.select([watched], [], [], TIMEOUT_S)
        os.close(watched)
        assert [watched] == readable


@pytest.mark.long
def test_a_delta_table_is_written_and_read_with_the_settings_of_the_conf_folder(tmp_path) -> None:
    done = submit("--driver-memory", "1g", PROBE, "delta", str(tmp_path / "table"))
    expected = {"rows": 3, "spark.driver.memory": "1g", "spark.sql.session.timeZone": "UTC"}
    assert expected.items() <= json.loads(done.stdout).items()


@pytest.mark.long
def test_a_properties_file_of_the_users_own_wins_over_the_conf_folder_and_conf_over_both(tmp_path) -> None:
    own = tmp_path / "own.conf"
    own.write_text("spark.driver.memory 1g\nspark.sql.session.timeZone CET\n")
    options = ("--properties-file", str(own), "--conf", "spark.driver.memory=768m")
    done = submit(*options, PROBE, "delta", str(tmp_path / "table"))
    expected = {"rows": 3, "spark.driver.memory": "768m", "spark.sql.session.timeZone": "CET"}
    assert expected.items() <= json.loads(done.stdout).items()


@pytest.mark.long
@pytest.mark.kafka
def test_a_job_that_asks_for_kafka_reads_a_real_topic(kafka_broker: str) -> None:
    done = submit(PROBE, "kafka", "--format", "kafka", "--servers", kafka_broker, "--topic", "submit-probe")
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"no Kafka connector: {done.stderr.strip()}")
    expected = ["throttled"]
    assert expected == json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the loopback cluster is tested on Linux")
def test_workers_of_a_cluster_import_headgate_from_the_shipped_zip(tmp_path) -> None:
    """A master and two workers with one core each; a barrier puts one task on each."""
    with cluster(tmp_path) as master:
        done = submit("--master", master, "--executor-memory", "512m", PROBE, "workers")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    (archive,) = {str(Path(row["module"]).parents[1]) for row in seen["workers"]}
    assert re.fullmatch(r"headgate-[0-9a-f]{12}\.zip", Path(archive).name)
    assert all(Path(archive, "headgate/core/numbers.py") == Path(row["core"]) for row in seen["workers"])
    expected = {"0", "1"}
    assert expected == {row["executor"] for row in seen["workers"]}


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the loopback cluster is tested on Linux")
def test_the_throttle_job_writes_on_a_cluster_what_it_writes_on_one_machine(tmp_path) -> None:
    """State and blocks travel between two executors, bad rows and shared limits among them."""
    trace = replace(SMALL, bad_share=0.05)
    write_trace(trace, tmp_path / "trace", "json")
    conf = write_conf(tmp_path / "conf", "[input]\nmax_files_per_trigger = 3\n[operator]\nslots = 4\n", groups=GROUPS)

    def run(output: str, *where: str) -> Path:
        paths = options(input=tmp_path / "trace", output=tmp_path / output, conf_dir=conf)
        done = submit(*SMALL_SPARK, *where, "jobs/throttle.py", "--once", "--format", "json", *paths)
        assert (0, "") == (done.returncode, done.stderr), done.stdout
        return tmp_path / output

    one_machine = run("one")
    with cluster(tmp_path) as master:
        two_executors = run("two", "--master", master, "--executor-memory", "512m")
    expected = results_of(one_machine)
    assert expected["marks"]
    assert expected == results_of(two_executors)
    assert rows_of(one_machine, "dead_letters") == rows_of(two_executors, "dead_letters")
    assert trace.events == sum(row["rows"] + row["dead_letters"] for row in rows_of(two_executors, "batches"))
    assert {"0", "1"} == {folder.name for worker in ("a", "b") for folder in (tmp_path / worker).glob("app-*/*")}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Spark's own standalone cluster on loopback; yields its master's address when both workers are registered."""
    (port,) = free_ports(1)
    url = f"spark://127.0.0.1:{port}"
    with daemon("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0") as master:
        await_line(master, "New state: ALIVE")
        for name in ("a", "b"):
            (folder / name).mkdir()
        size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", "127.0.0.1")
        with (
            daemon("worker.Worker", *size, "--work-dir", str(folder / "a"), url) as first,
            daemon("worker.Worker", *size, "--work-dir", str(folder / "b"), url) as second,
        ):
            for worker in (first, second):
                await_line(worker, "Successfully registered with master")
            yield url


@contextmanager
def daemon(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """One process of the cluster, ended when the block ends. Its log is its stderr."""
    home = Path(pyspark.__file__).parent
    conf = ROOT / "tests" / "integration"  # no spark-defaults.conf, Spark's own log settings
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def await_line(process: subprocess.Popen[str], text: str) -> None:
    """Read a daemon's log up to a line with the text. What it logs later fits into the pipe: it says little."""
    assert any(text in line for line in process.stderr), f"the log ended without {text!r}"
