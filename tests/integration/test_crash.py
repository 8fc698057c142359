"""Kill -9 of the whole process at any point, a batch that fails: a restart leaves the tables of an undisturbed run."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.throttle.tables import Tables
from headgate.trace import write_trace
from integration.processes import kill_at_commits, options, run_job
from integration.runs import GROUPS, SMALL, conf_in, results_of, rows_of, run_once, write_conf

TEXT = "[input]\nmax_files_per_trigger = 1\n[operator]\nslots = 4\n"
FIRST, LAST = 6, 34
"""Commits to all tables between which a job is killed: from its first batch to its last."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calm_scene(tmp_path_factory.mktemp("crash"), TEXT, groups=GROUPS)


@pytest.fixture(scope="module")
def scene_of_topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topics are keys, so no limiter is shared."""
    return calm_scene(tmp_path_factory.mktemp("crash-topics"), TEXT + 'state_key = "topic"\n')


def calm_scene(folder: Path, text: str, **limits: Any) -> Path:
    """A trace in seven files, limits, and the tables of an undisturbed run in `calm`."""
    write_trace(SMALL, folder / "trace", "json")
    write_conf(folder / "conf", text, **limits)
    finish(folder, "calm")
    return folder


def once(scene: Path, output: str) -> list[str]:
    paths = options(input=scene / "trace", output=scene / output, conf_dir=scene / "conf")
    return ["--once", "--format", "json", *paths]


def finish(scene: Path, output: str) -> None:
    done = run_job("throttle", *once(scene, output))
    assert (0, "") == (done.returncode, done.stderr)


def compare_after_kills(scene: Path, output: str, points: list[int]) -> None:
    for versions in points:
        kill_at_commits(scene / output, versions, "throttle", *once(scene, output), log=scene / f"{output}.log")
    finish(scene, output)
    assert results_of(scene / "calm") == results_of(scene / output)
    assert rows_of(scene / "calm", "dead_letters") == rows_of(scene / output, "dead_letters")
    assert sum(row["rows"] for row in rows_of(scene / output, "batches")) == SMALL.events


@pytest.mark.parametrize("state_key", ["auto", "topic"])
def test_a_first_batch_that_broke_off_between_two_tables_is_done_by_the_next_start(
    state_key: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = conf_in(tmp_path / "conf", f'[operator]\nslots = 4\nstate_key = "{state_key}"\n')
    write_trace(SMALL, tmp_path / "trace", "json")
    append = Tables.append

    def until_the_disk_is_full(tables: Tables, name: str, *rows: Any) -> bool:
        if name == "topic_usage":
            raise OSError("no space left")
        return append(tables, name, *rows)

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "append", until_the_disk_is_full)
        with pytest.raises(StreamingQueryException, match="no space left"):
            run_once(spark, conf, tmp_path / "trace", tmp_path / "out")
    assert (True, []) == (bool(rows_of(tmp_path / "out", "marks")), rows_of(tmp_path / "out", "batches"))
    calm = run_once(spark, conf, tmp_path / "trace", tmp_path / "calm")
    assert results_of(calm) == results_of(run_once(spark, conf, tmp_path / "trace", tmp_path / "out"))


def test_two_kills_double_and_lose_nothing(scene) -> None:
    compare_after_kills(scene, "two", [8, 19])


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene) -> None:
    seed = random.randrange(2**32)
    for n in range(5):
        compare_after_kills(scene, f"random-{seed}-{n}", random_points(f"{seed}-{n}", 4))


@pytest.mark.long
def test_kills_at_random_points_double_and_lose_nothing_where_topics_are_keys(scene_of_topics) -> None:
    seed = random.randrange(2**32)
    compare_after_kills(scene_of_topics, f"random-{seed}", random_points(f"{seed}", 5))


def random_points(seed: str, count: int) -> list[int]:
    chosen = random.Random(seed)
    return sorted(chosen.randrange(FIRST, LAST) for _ in range(count))
