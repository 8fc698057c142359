"""The entry cache's job in mode horizon: shards that meet round by round, cut, stopped and killed, are one cache."""

import random
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.cache.tables import OF_HORIZON
from headgate.conf import load_conf
from headgate.core.cache.horizon.horizon_cache import HorizonCache
from headgate.spark.entry_cache import CacheJob, CacheResult, CacheRun
from headgate.tables.delta import Tables
from integration.cache_events import BROKERS, conf_event, events, fed, results_of, write_lines
from integration.engines import Engine
from integration.processes import commits, kill_at_commits, options, run_job
from integration.runs import conf_in, write_conf

ROWS, FILES = 250, 3
HORIZON = {
    "headgate.cache.maxBytes": 60_000,
    "headgate.cache.mode": "horizon",
    "headgate.cache.horizon.shards": 3,
    "headgate.cache.horizon.roundShare": 1.0,
}
ONE_FILE = "[input]\nmax_files_per_trigger = 1\n[operator]\n"
SAME = {"hits", "misses", "storage_bytes", "inserted", "expired", "evicted", "requeues", "size_passes", "entries"}


def some_events() -> list[dict[str, Any]]:
    """Of two brokers, of which one gets another limit in between, and a row twice."""
    rows = events(ROWS)
    rows = [*rows, conf_event(30_000, 10**6, **{"headgate.cache.maxBytes": 30_000}), rows[100]]
    return sorted(rows, key=lambda row: row["event_time"])


def run(spark: SparkSession, conf: Any, output: Path, input_: Path, stop: Event | None = None) -> list[CacheResult]:
    heard: list[CacheResult] = []
    job = CacheJob(str(input_), str(output), str(output / "checkpoint"), "json", evictions=True, once=True)
    done = CacheRun(spark, job, conf, heard.append if stop is None else lambda _: stop.set(), stop or Event()).run()
    assert done == (stop is None)
    return heard


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("horizon")
    write_lines(folder / "in", some_events(), FILES)
    write_conf(folder / "conf", broker=HORIZON)
    return folder


def results(output: Path) -> dict[str, list[Any]]:
    tables = Tables(output, OF_HORIZON)
    horizons = sorted(map(repr, tables.read("cache_horizons").to_pylist()))
    rounds = sorted(map(repr, tables.read("cache_rounds").to_pylist()))
    return results_of(output) | {"horizons": horizons, "rounds": rounds}


@pytest.fixture(scope="module")
def calm(scene: Path, spark_of_all_tests: SparkSession) -> Path:
    """The tables of an undisturbed run."""
    run(spark_of_all_tests, load_conf(scene / "conf"), scene / "calm", scene / "in")
    return scene / "calm"


def test_shards_tell_what_the_rules_count_however_rows_are_cut(
    engine: Engine, spark: SparkSession, scene: Path, tmp_path: Path
) -> None:
    """One batch of all rows; on Spark, a batch a file, stopped after its first batch."""
    engine.cache(conf_in(tmp_path / "whole", broker=HORIZON), scene / "in", tmp_path / "a")
    slow = conf_in(tmp_path / "slow", ONE_FILE, broker=HORIZON)
    run(spark, slow, tmp_path / "b", scene / "in", Event())
    run(spark, slow, tmp_path / "b", scene / "in")

    told = results(tmp_path / "a")
    for broker in BROKERS:
        cache = fed(some_events(), broker, HORIZON)
        assert isinstance(cache, HorizonCache)
        totals = cache.totals()
        last = [row for row in told["metrics"] if row["broker"] == broker and row["topic"] is None][-1]
        assert {name: totals[name] for name in SAME} == {name: last[name] for name in SAME}
        assert (cache.rounds, cache.inflow_share) == (last["horizon_rounds"], last["horizon_inflow_share"])
        assert cache.size_error == last["horizon_size_error"]
        assert totals["size_passes"] > 1
    assert ["late"] == [reason.split(":")[0] for reason, _ in told["dead_letters"]]
    assert told == results(tmp_path / "b")


def arguments(scene: Path, output: Path) -> list[str]:
    paths = options(input=scene / "in", output=output, conf_dir=scene / "conf")
    return ["--once", "--evictions", "--format", "json", *paths]


def compare_after_kills(scene: Path, calm: Path, name: str, kills: list[tuple[int, float]]) -> int:
    """How many of the kills came before the job's end."""
    killed = 0
    output = scene / name
    for commits_before, delay_s in kills:
        job = ("entry_cache", *arguments(scene, output))
        killed += kill_at_commits(output, commits_before, *job, log=scene / f"{name}.log", delay_s=delay_s)
    done = run_job("entry_cache", *arguments(scene, output))
    assert (0, "") == (done.returncode, done.stderr)
    assert results(calm) == results(output)
    return killed


@pytest.mark.long
def test_twenty_kills_at_random_points_double_and_lose_nothing(scene: Path, calm: Path) -> None:
    first, last, seed = len(OF_HORIZON) + 2, commits(calm), random.randrange(2**32)
    chosen = random.Random(seed)
    for n in range(5):
        points = sorted(chosen.randrange(first, last) for _ in range(4))
        kills = [(point, chosen.uniform(0, 1.5)) for point in points]
        assert 0 < compare_after_kills(scene, calm, f"random-{seed}-{n}", kills)
