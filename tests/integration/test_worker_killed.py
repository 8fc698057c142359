"""Kill -9 of a Python worker while it computes: the job says so and ends, a restart leaves the tables of a calm run.

On one machine Spark tries no task again, so the batch fails and with it the query; the driver itself ends in order.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.trace import write_trace
from integration.processes import TIMEOUT_S, commits, options, python_workers, run_job, started
from integration.runs import GROUPS, SMALL, await_that, conf_in, results_of, rows_of, run_once

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="finds Spark's workers in /proc, which Linux has"),
]

TRACE = replace(SMALL, events=3 * SMALL.events)
# The readable form of the rules keeps workers busy for longer: there is always one to be met at work.
TEXT = '[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\nkernel = "python"\n'
COMMITS = 12  # some batches are in the tables, some are not


def kill_workers_until_the_end(process: subprocess.Popen[bytes]) -> None:
    """One at a time, when it computes. One that has just given its last row away is not missed, so it may take two."""

    def has_ended() -> bool:
        busy = [worker.pid for worker in python_workers(process) if worker.state == "R"]
        for pid in busy[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return process.poll() is not None

    await_that(has_ended, "the end of a job whose workers are killed", TIMEOUT_S)


def test_a_killed_worker_ends_the_job_in_words_and_a_restart_completes_it(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(TRACE, tmp_path / "trace", "json")
    calm = run_once(spark, conf_in(tmp_path / "conf", TEXT, groups=GROUPS), tmp_path / "trace", tmp_path / "calm")
    output, screen = tmp_path / "out", tmp_path / "screen"
    paths = options(input=tmp_path / "trace", output=output, conf_dir=tmp_path / "conf")
    arguments = ["--once", "--format", "json", *paths]

    with started("throttle", *arguments, log=screen) as process:
        await_that(lambda: process.poll() is not None or commits(output) >= COMMITS, "some batches", TIMEOUT_S)
        kill_workers_until_the_end(process)
        assert process.wait(TIMEOUT_S) == 1, screen.read_text()
    before = sum(row["rows"] for row in rows_of(output, "batches"))
    assert 0 < before < TRACE.events
    expected = [
        "throttle: the query failed: a Python worker of Spark was killed, by somebody or for want of memory",
        (
            "The next start on the same checkpoint goes on where the tables stand. "
            "Spark's log has more; it is in .cache/logs, or on stderr with `headgate job`."
        ),
    ]
    assert expected == screen.read_text().splitlines()[-2:]

    done = run_job("throttle", *arguments)
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert results_of(calm) == results_of(output)
    assert TRACE.events == sum(row["rows"] for row in rows_of(output, "batches"))
