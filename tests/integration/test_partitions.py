"""jobs/state.py --partitions: the job goes on, with the tables that it would have had."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.places import sole_use
from headgate.spark.state import read_state
from headgate.trace import write_trace
from integration.processes import run_job
from integration.runs import GROUPS, SMALL, conf_in, results_of, run_once
from unit.jobs import run_here

SETTINGS = "[input]\nmax_files_per_trigger = 2\n[operator]\nslots = 4\n"
PARTS = 5


def parts_of(checkpoint: Path) -> int:
    return len([folder for folder in (checkpoint / "state" / "0").iterdir() if folder.name.isdecimal()])


@contextmanager
def gone(file: Path) -> Iterator[None]:
    """A file is not there while the block runs."""
    content = file.read_bytes()
    file.unlink()
    try:
        yield
    finally:
        file.write_bytes(content)


@pytest.mark.long
def test_a_job_goes_on_with_more_parts_as_with_those_that_it_had(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = conf_in(tmp_path / "conf", SETTINGS, groups=GROUPS)
    write_trace(SMALL, tmp_path / "whole", "json")
    files = sorted((tmp_path / "whole").iterdir())

    def run(name: str, part: list[Path]) -> Path:
        (tmp_path / f"{name}-input").mkdir(exist_ok=True)
        for file in part:
            shutil.copy2(file, tmp_path / f"{name}-input")
        return run_once(spark, conf, tmp_path / f"{name}-input", tmp_path / name)

    run("calm", files[:4])
    expected = results_of(run("calm", files[4:]))
    checkpoint = run("split", files[:4]) / "checkpoint"
    state = read_state(spark, str(checkpoint))
    assert parts_of(checkpoint) == 2

    split = ("--checkpoint", checkpoint, "--partitions", PARTS)
    with sole_use(str(checkpoint)):
        assert run_here(capsys, "state", *split).returncode == 2, "a job that runs is left alone"
    with gone(max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))):
        refused = run_here(capsys, "state", *split)
    assert (2, True) == (refused.returncode, "Start the job once more, stop it with SIGTERM" in refused.stderr)
    done = run_job("state", *map(str, split))  # with a session that ran no query
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert run_here(capsys, "state", *split).returncode == 0, "what is done already is done"
    assert state.to_pylist() == read_state(spark, str(checkpoint)).to_pylist()

    assert expected == results_of(run("split", files[4:]))
    assert parts_of(checkpoint) == PARTS
