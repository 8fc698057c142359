"""The job with --once: it ends, and everything that it took in is in its tables."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.errors import StateError
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.tables.delta import Tables
from headgate.trace import write_trace
from integration.runs import SMALL, Run, conf_in, every_100_ms, rows_of, total, write_publishes

TOPIC = "persistent://acme/shop/orders"


@pytest.mark.parametrize("state_key", ["auto", "topic"])
def test_rows_that_come_in_while_it_runs_are_closed_as_well(
    spark: SparkSession, tmp_path: Path, state_key: str
) -> None:
    """Rows that are held back, and three files of other topics during the first batch: more than one batch follows."""
    trace, output = tmp_path / "trace", tmp_path / "out"
    text = "[input]\nhold_back_ms = 2000\nmax_files_per_trigger = 1\n[operator]\nslots = 4\n"
    text += f"state_key = '{state_key}'\n"
    write_publishes(trace / "0.json", every_100_ms(0, 2, "b1", TOPIC))

    def more_comes(batch: Any, _waiting: int) -> None:
        if batch.batch_id == 0:
            for i in (1, 2, 3):
                write_publishes(trace / f"{i}.json", every_100_ms(2 * i, 2 * i + 2, "b1", f"{TOPIC}-{i}"))

    job = ThrottleJob(str(trace), "json", str(output), str(output / "checkpoint"), once=True)
    ThrottleRun(spark, job, conf_in(tmp_path / "conf", text), more_comes, threading.Event()).run()
    assert 80 == sum(row["rows"] for row in rows_of(output, "batches"))
    assert 80 == total(output, "publishes")


def test_a_run_that_is_stopped_says_that_it_did_not_come_to_the_end(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(SMALL, tmp_path / "trace", "json")
    stopped = Run(spark, conf_in(tmp_path / "conf", "[operator]\nslots = 4\n"), tmp_path / "trace", tmp_path / "out")
    stopped.stop.set()
    assert not stopped.run.run()
    to_the_end = Run(spark, conf_in(tmp_path / "conf", "[operator]\nslots = 4\n"), tmp_path / "trace", tmp_path / "out")
    assert to_the_end.run.run()
    assert SMALL.events == total(tmp_path / "out", "publishes")


def test_an_output_that_is_not_the_checkpoints_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_trace(SMALL, tmp_path / "trace", "json")
    conf = conf_in(tmp_path / "conf", "[operator]\nslots = 4\n")
    Run(spark, conf, tmp_path / "trace", tmp_path / "out").to_end()
    with pytest.raises(StateError, match="has begun, but not with the tables under"):
        Run(spark, conf, tmp_path / "trace", tmp_path / "mistyped", checkpoint=tmp_path / "out" / "checkpoint")
    assert not (tmp_path / "mistyped").exists()


def test_a_new_checkpoint_on_the_tables_of_a_first_batch_that_broke_off_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(SMALL, tmp_path / "trace", "json")
    conf, output = conf_in(tmp_path / "conf", "[operator]\nslots = 4\n"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "append", _until_the_batch_is_written(Tables.append))
        with pytest.raises(StreamingQueryException, match="broken off"):
            Run(spark, conf, tmp_path / "trace", output).to_end()
    assert rows_of(output, "marks")
    assert not rows_of(output, "batches")
    with pytest.raises(StateError, match="of another checkpoint"):
        Run(spark, conf, tmp_path / "trace", output, checkpoint=tmp_path / "new")


def _until_the_batch_is_written(append: Any) -> Any:
    def append_until(tables: Tables, name: str, *rows: Any) -> bool:
        if name == "batches":
            raise OSError("broken off")
        return bool(append(tables, name, *rows))

    return append_until
