"""The same trace gives the same rows in `marks` and `topic_usage`, however it is cut, keyed, split or computed."""

import dataclasses
import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.trace import write_trace
from integration.runs import GROUPS, SMALL, conf_in, results_of, run_once, settings

SHARED = {"groups": GROUPS}
ALONE = {}
DISORDER_MS = 2000

KERNELS = ("numba", "python")
BATCHES = (1, 7)
PARTITIONS = (1, 8)


def toml(batches: int, *, kernel: str = "numba", traffic: str = "admitted", key: str = "auto", hold_back_ms: int = 0):
    files = -(-SMALL.files // batches)
    return (
        f"[input]\nmax_files_per_trigger = {files}\nhold_back_ms = {hold_back_ms}\n"
        f'[operator]\nkernel = "{kernel}"\ntraffic = "{traffic}"\nstate_key = "{key}"\nslots = 4\n'
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> dict[str, Path]:
    """The trace in event-time order, and the same one with rows of all files disordered."""
    folder = tmp_path_factory.mktemp("traces")
    for name, disorder_ms in (("ordered", 0), ("disordered", DISORDER_MS)):
        write_trace(dataclasses.replace(SMALL, disorder_ms=disorder_ms), folder / name, "json")
    return {name: folder / name for name in ("ordered", "disordered")}


def run(spark: SparkSession, folder: Path, trace: Path, text: str, partitions: int, limits) -> dict:
    with settings(spark, spark__sql__shuffle__partitions=partitions):
        conf = conf_in(folder / "conf", text, **limits)
        return results_of(run_once(spark, conf, trace, folder / "output"))


@pytest.mark.parametrize("traffic", ["admitted", "offered"])
def test_batches_partitions_and_the_form_of_the_rules_change_no_row(spark, traces, tmp_path, traffic) -> None:
    expected = run(spark, tmp_path / "a", traces["ordered"], toml(1, traffic=traffic), 2, SHARED)
    assert expected["marks"]
    text = toml(7, kernel="python", traffic=traffic)
    assert expected == run(spark, tmp_path / "b", traces["ordered"], text, 8, SHARED)


def test_a_hold_back_puts_disordered_files_in_order_again(spark, traces, tmp_path) -> None:
    expected = run(spark, tmp_path / "a", traces["ordered"], toml(1), 2, SHARED)
    text = toml(7, hold_back_ms=DISORDER_MS)
    assert expected == run(spark, tmp_path / "b", traces["disordered"], text, 2, SHARED)


def test_a_key_for_each_topic_gives_the_rows_of_the_domains(spark, traces, tmp_path) -> None:
    expected = run(spark, tmp_path / "a", traces["ordered"], toml(1), 2, ALONE)
    assert expected["marks"]
    assert expected == run(spark, tmp_path / "b", traces["ordered"], toml(7, key="topic"), 2, ALONE)


@pytest.mark.long
@pytest.mark.parametrize("traffic", ["admitted", "offered"])
@pytest.mark.parametrize("limits", [SHARED, ALONE], ids=["shared", "alone"])
def test_the_whole_grid_gives_one_result(spark, traces, tmp_path, traffic, limits) -> None:
    keys = ("auto", "topic") if limits is ALONE else ("auto",)
    results = []
    for n, (batches, kernel, partitions, key) in enumerate(itertools.product((1, 3, 7), KERNELS, (1, 2, 8), keys)):
        text = toml(batches, kernel=kernel, traffic=traffic, key=key)
        results.append(run(spark, tmp_path / f"{n}", traces["ordered"], text, partitions, limits))
    assert [results[0]] * len(results) == results
