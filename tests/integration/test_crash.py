"""Kill -9 of the whole process at any point, a batch that fails: a restart leaves the tables of an undisturbed run."""

import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.conf import load_conf
from headgate.metrics import Metrics
from headgate.tables.delta import Tables
from headgate.throttle.tables import OF_CONNECTIONS, SCHEMAS
from headgate.trace import write_trace
from integration import processes
from integration.processes import commits, kill_at_commits, kill_when, options, run_job
from integration.runs import GROUPS, MIXED, MIXED_LIMITS, SMALL, Run, conf_in, results_of, rows_of, run_once, write_conf
from prometheus_text import told

INPUT, OPERATOR = "[input]\nmax_files_per_trigger = 1\n", "[operator]\nslots = 4\nconnection_topics = true\n"
TEXT = INPUT + OPERATOR
TRACE = replace(MIXED, files=4)
FIRST, LEFT = len(SCHEMAS), 4
"""Random kills come at this commit to all tables, which is the last before the first batch, up to so many before the
last one: those of the closing batch.
"""
LATEST_S = 1.5
"""A kill up to this long after a commit may hit Spark's own commits, of state and of offsets."""


class Kill(NamedTuple):
    """commits: to all tables, or one more than at the start of the job, if it has them by then. delay_s: after it."""

    commits: int
    delay_s: float = 0.0


WAITS = """
import os, pathlib, signal, sys
os.setpgid(0, 0)
pathlib.Path(sys.argv[1], "marks", "_delta_log", "next.json").touch()
pathlib.Path(os.environ["HEADGATE_PID_FILE"]).write_text(str(os.getpid()))
signal.pause()
"""
"""A job that commits once and then waits for ever."""
ENDS = """
import os, pathlib
pathlib.Path(os.environ["HEADGATE_PID_FILE"]).write_text(str(os.getpid()))
"""


@pytest.mark.parametrize(("program", "killed", "after"), [(WAITS, True, 4), (ENDS, False, 3)], ids=["waits", "ends"])
@pytest.mark.parametrize("point", [2, 4])
def test_a_kill_comes_at_a_later_commit_than_the_last_and_says_whether_it_came(
    program: str, killed: bool, after: int, point: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "marks" / "_delta_log"
    log.mkdir(parents=True)
    for version in range(3):
        (log / f"{version}.json").touch()
    monkeypatch.setattr(processes, "command", lambda *words: [sys.executable, "-c", program, words[1]])
    seen = kill_at_commits(tmp_path, point, "throttle", str(tmp_path), log=tmp_path / "screen")
    assert (killed, after) == (seen, commits(tmp_path))


@pytest.fixture(scope="module")
def scene(spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calm_scene(spark_of_all_tests, tmp_path_factory.mktemp("crash"), TEXT, groups=GROUPS)


OTHER_SCENES = {
    "topics are keys": (f'{TEXT}state_key = "topic"\n', {}),  # so no limiter is shared
    "rows held back and withheld": (f'{INPUT}hold_back_ms = 2000\n{OPERATOR}traffic = "offered"\n', {"groups": GROUPS}),
}


@pytest.fixture(scope="module", params=OTHER_SCENES.values(), ids=OTHER_SCENES.keys())
def other_scene(
    request: pytest.FixtureRequest, spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    text, limits = request.param
    return calm_scene(spark_of_all_tests, tmp_path_factory.mktemp("crash"), text, **limits)


def calm_scene(spark: SparkSession, folder: Path, text: str, **limits: Any) -> Path:
    """A trace of all kinds of rows in four files, limits, and the tables of an undisturbed run in `calm`."""
    write_trace(TRACE, folder / "trace", "json")
    conf = load_conf(write_conf(folder / "conf", text, broker=MIXED_LIMITS, **limits))
    run_once(spark, conf, folder / "trace", folder / "calm")
    return folder


def once(scene: Path, output: str) -> list[str]:
    paths = options(input=scene / "trace", output=scene / output, conf_dir=scene / "conf")
    return ["--once", "--format", "json", *paths]


def finish(scene: Path, output: str) -> None:
    done = run_job("throttle", *once(scene, output))
    assert (0, "") == (done.returncode, done.stderr), done.stdout


def compare_after_kills(scene: Path, output: str, kills: list[Kill]) -> None:
    for commits_before, delay_s in kills:
        assert kill_at_commits(
            scene / output, commits_before, "throttle", *once(scene, output), log=log_of(scene, output), delay_s=delay_s
        )
    compare_after_finish(scene, output)


def compare_after_finish(scene: Path, output: str) -> None:
    finish(scene, output)
    assert results_of(scene / "calm") == results_of(scene / output)
    assert rows_of(scene / "calm", "dead_letters") == rows_of(scene / output, "dead_letters")
    assert sum(row["rows"] for row in rows_of(scene / output, "batches")) == TRACE.events


def log_of(scene: Path, output: str) -> Path:
    return scene / f"{output}.log"


@pytest.mark.parametrize("state_key", ["auto", pytest.param("topic", marks=pytest.mark.long)])
def test_a_first_batch_that_broke_off_between_two_tables_is_done_by_the_next_start(
    state_key: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = conf_in(tmp_path / "conf", f'[operator]\nslots = 4\nstate_key = "{state_key}"\n')
    write_trace(SMALL, tmp_path / "trace", "json")
    append, metrics, out = Tables.append, Metrics(), tmp_path / "out"

    def until_the_disk_is_full(tables: Tables, name: str, *rows: Any) -> bool:
        if name == "topic_usage":
            raise OSError("no space left")
        return append(tables, name, *rows)

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "append", until_the_disk_is_full)
        with pytest.raises(StreamingQueryException, match="no space left"):
            Run(spark, conf, tmp_path / "trace", out, metrics=metrics).to_end()
    assert (True, []) == (bool(rows_of(out, "marks")), rows_of(out, "batches"))
    assert {(): 0} == told(metrics)["headgate_batches_total"]
    calm = run_once(spark, conf, tmp_path / "trace", tmp_path / "calm")
    Run(spark, conf, tmp_path / "trace", out, metrics=metrics).to_end()
    assert results_of(calm) == results_of(out)
    assert len(rows_of(out, "batches")) == sum(told(metrics)["headgate_batches_total"].values())
    assert len(rows_of(out, "marks")) == sum(told(metrics)["headgate_marks_total"].values())


BEFORE, AFTER = 1_000_000, 1
EDITED = {
    "a topic's rate": ("", lambda rate: {"broker": {"maxPublishRatePerTopicInMessages": rate}}),
    "a group's": (
        "group_limits = 'shared'\n",
        lambda rate: {
            "broker": {},
            "groups": {"resourcegroups": {"gold": {"publishRateInMsgs": rate}}, "tenants": {"acme": "gold"}},
        },
    ),
}


@pytest.mark.parametrize(("text", "said"), EDITED.values(), ids=EDITED)
def test_limits_that_were_edited_hold_after_the_batch_that_was_broken_off(
    text: str,
    said: Callable[[int], dict[str, Any]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And from then on: what was still to be taken in obeys them."""
    write_trace(SMALL, tmp_path / "trace", "json")
    before, after = (load_conf(write_conf(tmp_path / str(rate), TEXT + text, **said(rate))) for rate in (BEFORE, AFTER))

    def no_space(tables: Tables, name: str, rows: pa.Table, application: str, version: int) -> bool:
        if name == "topic_usage" and version == 3:
            raise OSError("no space left")
        return append(tables, name, rows, application, version)

    append = Tables.append
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "append", no_space)
        with pytest.raises(StreamingQueryException, match="no space left"):
            Run(spark, before, tmp_path / "trace", tmp_path / "out").to_end()
    Run(spark, after, tmp_path / "trace", tmp_path / "out").to_end()

    ends = {row["batch_id"]: row["event_time"] for row in rows_of(tmp_path / "out", "batches")}
    limits = [row for row in rows_of(tmp_path / "out", "control") if row["kind"] == "limit" and row["messages_per_s"]]
    edited_at = min(row["effective_time"] for row in limits if row["messages_per_s"] <= AFTER)
    marks = [row["event_time"] for row in rows_of(tmp_path / "out", "marks") if row["action"] == "mark"]
    assert ends[3] - edited_at < timedelta(milliseconds=1)  # shares of quotas hold from whole milliseconds on
    assert ends[3] < min(marks) < ends[6]


def test_a_kill_doubles_and_loses_nothing(scene) -> None:
    compare_after_kills(scene, "one", [Kill(FIRST + 9)])


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene) -> None:
    seed = random.randrange(2**32)
    for n in range(5):
        compare_after_kills(scene, f"random-{seed}-{n}", random_kills(f"{seed}-{n}", 4, scene))


@pytest.mark.long
def test_kills_at_random_points_double_and_lose_nothing_in_other_scenes(other_scene) -> None:
    seed = random.randrange(2**32)
    compare_after_kills(other_scene, f"random-{seed}", random_kills(f"{seed}", 5, other_scene))


@pytest.mark.long
def test_kills_between_the_last_batch_and_the_closing_one_double_and_lose_nothing(scene) -> None:
    """Two that come when all rows are in and the closing tick is not, or is in `control` alone."""
    seed = random.randrange(2**32)
    output, chosen = f"closing-{seed}", random.Random(seed)
    job = ("throttle", *once(scene, output))
    batches = scene / output / "batches" / "_delta_log"
    assert kill_when(
        lambda: len(list(batches.glob("*.json"))) > TRACE.files,  # the first creates the table
        "all rows in",
        *job,
        log=log_of(scene, output),
        delay_s=chosen.uniform(0, LATEST_S),
    )
    closing = commits(scene / output) + 2  # the tick of a start, then the closing one
    assert kill_at_commits(
        scene / output, closing, *job, log=log_of(scene, output), delay_s=chosen.uniform(0, LATEST_S)
    )
    compare_after_finish(scene, output)


@pytest.mark.long
def test_kills_of_the_connections_job_double_and_lose_nothing(scene, tmp_path) -> None:
    """It follows the marks of an undisturbed run, killed at each commit of its own tables and a moment later."""
    for name in ("calm", "killed"):
        shutil.copytree(scene / "calm", tmp_path / name)
    assert 0 == run_job("connections", "--once", "--output", str(tmp_path / "calm")).returncode
    job = ("connections", "--once", "--output", str(tmp_path / "killed"))
    for delay_s in (0.0, 0.3, 1.0):
        kill_at_commits(tmp_path / "killed", 0, *job, log=tmp_path / "screen", delay_s=delay_s)
    assert 0 == run_job(*job).returncode
    calm, killed = (Tables(tmp_path / name, OF_CONNECTIONS) for name in ("calm", "killed"))
    for name in OF_CONNECTIONS:
        rows = sorted(calm.read(name).to_pylist(), key=repr)
        assert rows
        assert rows == sorted(killed.read(name).to_pylist(), key=repr)


def random_kills(seed: str, count: int, scene: Path) -> list[Kill]:
    """Every other one a moment after its commit. They are two commits apart: the first of a start is no batch's."""
    chosen = random.Random(seed)
    first, end = FIRST + chosen.randrange(2), commits(scene / "calm") - LEFT
    points = sorted(chosen.sample(range(first, end, 2), count))
    return [Kill(point, chosen.uniform(0, LATEST_S) if n % 2 else 0.0) for n, point in enumerate(points)]
