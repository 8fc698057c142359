"""The feed of control rows under a real query: it stays small, and may be emptied while no query runs."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.errors import StateError
from headgate.tables.delta import Tables
from headgate.trace import write_trace
from integration.runs import SMALL, Run, conf_in, results_of, run_once, settings


def test_a_batch_that_is_run_again_has_its_control_rows_though_the_feed_was_emptied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closing batches have ticks, the first has limits: both are run again on an empty folder."""
    conf = conf_in(tmp_path / "conf", "[operator]\nslots = 4\n", broker={"maxPublishRatePerTopicInMessages": 20})
    write_trace(SMALL, tmp_path / "trace", "json")
    run_once(spark, conf, tmp_path / "trace", tmp_path / "calm")
    append, out = Tables.append, tmp_path / "out"
    for failing in (0, 1):

        def until_the_disk_is_full(tables: Tables, name: str, *rows: Any, failing: int = failing) -> bool:
            if name == "topic_usage" and rows[-1] == failing:
                raise OSError("no space left")
            return append(tables, name, *rows)

        with monkeypatch.context() as patch:
            patch.setattr(Tables, "append", until_the_disk_is_full)
            with pytest.raises(StreamingQueryException, match="no space left"):
                Run(spark, conf, tmp_path / "trace", out).to_end()
        shutil.rmtree(out / "checkpoint" / "feed")
    run_once(spark, conf, tmp_path / "trace", out)
    assert results_of(tmp_path / "calm") == results_of(out)
    left = list((out / "checkpoint" / "feed" / "control").iterdir())
    assert len(left) < len(list((out / "control").glob("*.parquet")))


@pytest.mark.long
def test_spark_goes_on_with_a_log_that_a_start_has_shortened(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start closes what is open, which is one more file of the feed."""
    conf = conf_in(tmp_path / "conf", "[operator]\nslots = 4\n", broker={"maxPublishRatePerTopicInMessages": 20})
    write_trace(SMALL, tmp_path / "trace", "json")
    files = sorted((tmp_path / "trace").iterdir())
    outputs = {name: tmp_path / name / "out" for name in ("whole", "shortened")}
    for name, output in outputs.items():
        (tmp_path / name / "in").mkdir(parents=True)
        if name == "shortened":
            monkeypatch.setattr("headgate.spark.feed.NAMES_LEFT", 1)
        with settings(spark, spark__sql__streaming__fileSource__log__compactInterval="3"):
            for start in range(5):
                for file in files[start::5]:
                    shutil.copy(file, tmp_path / name / "in")
                run_once(spark, conf, tmp_path / name / "in", output)
    logs = {
        name: len((output / "checkpoint" / "sources" / "1" / "5.compact").read_text().splitlines())
        for name, output in outputs.items()
    }
    assert {"whole": 7, "shortened": 2} == logs
    assert results_of(outputs["whole"]) == results_of(outputs["shortened"])


def test_a_checkpoint_whose_query_never_read_a_feed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    conf = conf_in(tmp_path / "conf", "[operator]\nslots = 4\n")
    write_trace(SMALL, tmp_path / "trace", "json")
    output = run_once(spark, conf, tmp_path / "trace", tmp_path / "out")
    before = results_of(output)
    shutil.rmtree(output / "checkpoint" / "sources" / "1")
    with pytest.raises(StateError, match="start with a new --checkpoint and a new --output"):
        Run(spark, conf, tmp_path / "trace", output)
    assert before == results_of(output)
