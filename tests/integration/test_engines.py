"""Both engines give the same tables, row for row: Spark's jobs and the local engine, over the same batches."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.cache.schemas import OF_CACHE
from headgate.conf import load_conf
from headgate.engines.tables import BufferedTables
from headgate.protocol.marks import COLUMNS as MARK_COLUMNS
from headgate.protocol.parse import parse_inputs
from headgate.protocol.schemas import INPUTS, OF_PROTOCOL
from headgate.rows.files import input_files, parsed_files
from headgate.spark.protocol import ProtocolJob, ProtocolRun
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import SCHEMAS
from headgate.trace import write_trace
from integration.cache_events import conf_event, events, write_lines
from integration.engines import Engine, Local
from integration.runs import GROUPS, MIXED, MIXED_LIMITS, SMALL, in_order_of_names, write_conf
from integration.test_protocol import parts, write_inputs, write_marks
from local_jobs import LocalProtocol
from unit.protocol import traffic

ONE_FILE = "[input]\nmax_files_per_trigger = 1\nhold_back_ms = 50\n"
TWO_FILES = "[input]\nmax_files_per_trigger = 2\nhold_back_ms = 50\n"
SHARED = f'{ONE_FILE}[operator]\ngroup_limits = "shared"\ntraffic = "offered"\nconnection_topics = true\n'
OWN = {"written_at", "batch_id"}
"""Columns that say which run wrote a row, and when."""


def assert_equal(
    spark: SparkSession, one: Path, other: Path, names: Iterable[str], *, may_be_empty: bool = False
) -> None:
    for name in names:
        frames = [comparable(spark.read.format("delta").load(f"{output}/{name}")) for output in (one, other)]
        assert may_be_empty or frames[0].count(), name
        assert_df_equality(*frames, ignore_row_order=True, ignore_nullable=True)


def comparable(frame: DataFrame) -> DataFrame:
    """Without what is the run's own; maps as sorted lists, which can be put in order."""
    maps = {field.name for field in frame.schema if field.dataType.typeName() == "map"}
    columns = [name for name in frame.columns if name not in OWN]
    return frame.select(
        *(F.sort_array(F.map_entries(name)).cast("string").alias(name) if name in maps else name for name in columns)
    )


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("seed"))


def test_the_engine_that_the_switch_names_runs_and_the_report_says_which(
    engine: Engine, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A Spark job alone has a checkpoint."""
    write_trace(SMALL, tmp_path / "trace", "json")
    engine.throttle(load_conf(write_conf(tmp_path / "conf")), tmp_path / "trace", tmp_path / "out")
    named, headers = request.config.getoption("engine"), request.config.hook.pytest_report_header
    assert (named == "spark") == (tmp_path / "out" / "checkpoint").exists()
    said = str(headers(config=request.config, start_path=tmp_path))
    assert f"engine: {named} runs the tests of tables" in said


def test_the_throttle_job_with_shared_quotas(spark: SparkSession, on_spark: Engine, seed: int, tmp_path: Path) -> None:
    write_trace(replace(MIXED, files=4), tmp_path / "trace", "json")
    in_order_of_names(tmp_path / "trace")
    with (tmp_path / "trace" / "part-00002.json").open("a") as lines:
        lines.write('{"kind": "publish"}\nno JSON\n')
    in_order_of_names(tmp_path / "trace")
    conf = load_conf(write_conf(tmp_path / "conf", SHARED, groups=GROUPS, broker=MIXED_LIMITS))
    by_spark, by_local = (
        one.throttle(conf, tmp_path / "trace", tmp_path / one.name).output for one in (on_spark, Local(seed))
    )
    assert_equal(spark, by_spark, by_local, [name for name in SCHEMAS if name not in {"control", "batches"}])
    limits = [
        spark.read.format("delta").load(f"{output}/control").where("source = 'quota'").drop("written_at", "seq")
        for output in (by_spark, by_local)
    ]
    assert limits[0].count()
    assert_df_equality(*limits, ignore_row_order=True)


@pytest.mark.long
def test_parquet_files_with_other_columns_each(
    spark: SparkSession, on_spark: Engine, seed: int, tmp_path: Path
) -> None:
    """The first file by name lacks columns that rows of the others need."""
    write_trace(MIXED, tmp_path / "trace", "parquet")
    rows = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "trace").iterdir())])
    (tmp_path / "in").mkdir()
    for place, kind in enumerate(("publish", "dispatch", "subscribe", "unload")):
        of_kind = rows.filter(pc.equal(rows["kind"], kind))
        filled = [name for name in of_kind.column_names if of_kind[name].null_count < len(of_kind)]
        pq.write_table(of_kind.select(filled), tmp_path / "in" / f"{place}.parquet")
    in_order_of_names(tmp_path / "in")
    conf = load_conf(
        write_conf(tmp_path / "conf", f"{TWO_FILES}[operator]\ngroup_limits = 'each_broker'\n", broker=MIXED_LIMITS)
    )
    by_spark, by_local = (
        one.throttle(conf, tmp_path / "in", tmp_path / one.name, "parquet").output for one in (on_spark, Local(seed))
    )
    assert_equal(
        spark, by_spark, by_local, ["marks", "topic_usage", "dispatch_decisions", "subscribe_decisions", "unloads"]
    )
    assert spark.read.format("delta").load(f"{by_spark}/dead_letters").count() == 0


@pytest.mark.long
def test_the_entry_caches_job(spark: SparkSession, on_spark: Engine, seed: int, tmp_path: Path) -> None:
    small = {"headgate.cache.maxBytes": 60_000, "managedLedgerCacheEvictionTimeThresholdMillis": 200}
    rows = [*events(800), conf_event(40_000, 10**6, **{"headgate.cache.maxBytes": 30_000})]
    write_lines(tmp_path / "in", sorted(rows, key=lambda row: row["event_time"]), 2, "no JSON", '{"kind": "add"}')
    in_order_of_names(tmp_path / "in")
    conf = load_conf(write_conf(tmp_path / "conf", ONE_FILE, broker=small))
    by_spark, by_local = tmp_path / "spark", tmp_path / "local"
    on_spark.cache(conf, tmp_path / "in", by_spark)
    Local(seed).cache(conf, tmp_path / "in", by_local)
    assert_equal(spark, by_spark, by_local, [name for name in OF_CACHE if name != "cache_control"])


@pytest.mark.long
@pytest.mark.parametrize("fan_out", ["tripping", "topic"])
def test_the_protocols_job(fan_out: str, spark: SparkSession, tmp_path: Path) -> None:
    files, span_ms, connections = 2, 4000, 8
    inputs = write_inputs(tmp_path / "inputs", traffic.inputs(1, connections, 400, span_ms), files)
    marks = traffic.marks(2, connections, 80, span_ms)
    conf = load_conf(write_conf(tmp_path / "conf", f'{ONE_FILE}[protocol]\nfan_out = "{fan_out}"\n'))
    on_spark, local = write_marks(tmp_path / "spark", marks, files), tmp_path / "local"
    job = ProtocolJob(str(on_spark), str(on_spark / "protocol-checkpoint"), str(inputs), once=True)
    assert ProtocolRun(spark, job, conf, lambda _: None, Event()).run()

    run = LocalProtocol(conf, BufferedTables(local, OF_PROTOCOL), lambda _: None, has_inputs=True, follows_marks=True)
    until_ms = int(conf.settings.input.event_time_until.timestamp() * 1000)
    parsed = parsed_files(input_files(str(inputs), "delta"), "delta", INPUTS, partial(parse_inputs, until_ms=until_ms))
    for rows, some in zip(parsed, parts(marks, files), strict=True):
        run.take([rows], pa.Table.from_pylist(some, MARKS).select(MARK_COLUMNS).to_batches())
    run.end()
    assert_equal(spark, on_spark, local, [name for name in OF_PROTOCOL if name != "protocol_ticks"], may_be_empty=True)
    assert spark.read.format("delta").load(f"{local}/throttle_decisions").count() > 10
