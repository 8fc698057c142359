"""Kill -9 of the whole process at any point: a restart leaves the tables of an undisturbed run."""

import random
from pathlib import Path
from typing import Any

import pytest

from headgate.trace import write_trace
from integration.processes import kill_at_commits, options, run_job
from integration.runs import GROUPS, SMALL, results_of, rows_of, write_conf

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
