"""The session of all tests and of plain Python processes: headgate's settings hold, and each test finds it clean."""

import os
import signal
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.errors import HeadgateError
from headgate.keyed.slots import slot_keys
from headgate.spark.session import check_delta, shuffle_partitions, spark_session


def test_a_session_without_the_wrapper_has_the_settings_of_the_conf_folder(spark: SparkSession) -> None:
    names = ("spark.sql.session.timeZone", "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.ui.enabled")
    expected = ["UTC", "100000", "false"]
    assert expected == [spark.conf.get(name) for name in names]


def test_what_the_builder_is_given_wins_over_the_conf_folder(spark: SparkSession) -> None:
    expected = "2g"
    assert expected == spark.conf.get("spark.driver.memory")


def test_a_job_uses_the_session_that_is_there(spark: SparkSession) -> None:
    job = spark_session("job")
    assert (spark, "2") == (job, job.conf.get("spark.sql.shuffle.partitions"))


def test_delta_tables_can_be_written_and_read(spark: SparkSession, tmp_path) -> None:
    rows = 3
    spark.range(rows).write.format("delta").save(str(tmp_path / "table"))
    assert rows == spark.read.format("delta").load(str(tmp_path / "table")).count()


def test_a_session_without_delta_is_refused_with_the_way_to_start_the_job() -> None:
    settings = {"spark.sql.extensions": "some.other.Extension"}
    without_delta = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: settings))
    with pytest.raises(HeadgateError, match=r"some\.other\.Extension .*\./spark-submit\.sh JOB\.py"):
        check_delta(without_delta)


class TestCleanUp:
    def test_leaving_things_behind(self, spark: SparkSession) -> None:
        spark.range(1).createOrReplaceTempView("left")
        spark.conf.set("spark.sql.shuffle.partitions", 7)
        spark.conf.set("headgate.left", "yes")
        rows = spark.readStream.format("rate").load()
        rows.writeStream.format("memory").queryName("left_query").start()

    def test_finding_none_of_them_in_the_next_test(self, spark: SparkSession) -> None:
        assert not spark.streams.active
        assert not spark.catalog.listTables()
        expected = ("2", None)
        assert expected == (spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("headgate.left", None))


@pytest.mark.parametrize(
    ("master", "parallelism", "partitions"),
    [("local", 1, 2), ("local[*]", 4, 4), ("local[*]", 64, 8), ("spark://host:7077", 2, 8), ("yarn", 2, 8)],
)
def test_state_is_split_by_cores_within_limits(master: str, parallelism: int, partitions: int) -> None:
    assert partitions == shuffle_partitions(master, parallelism)


@pytest.mark.parametrize("partitions", [2, 3, 5, 8])
def test_slots_lie_in_partitions_in_turn(partitions: int, spark: SparkSession) -> None:
    keys = spark.createDataFrame([(key,) for key in slot_keys(32)], "key string")
    found = keys.select(F.pmod(F.hash("key"), F.lit(partitions))).collect()
    assert [slot % partitions for slot in range(32)] == [partition for (partition,) in found]


@pytest.mark.long
def test_a_jvm_that_dies_leaves_the_next_test_a_new_session(sessions, tmp_path) -> None:
    """Also for what was asked of the one before."""
    spark = sessions.get()
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    spark.sparkContext._gateway.proc.wait()
    assert sessions.get() is not spark
    test_delta_tables_can_be_written_and_read(sessions.get(), tmp_path)
