"""The tables are the same rows for Spark, delta-rs and DuckDB."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.spark.input.sources import appended_rows
from headgate.throttle.tables import SCHEMAS, throttle_tables
from headgate.trace import write_trace
from integration.runs import GROUPS, SMALL, conf_in


@pytest.fixture(scope="module")
def output(engine, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("readers")
    write_trace(SMALL, folder / "trace", "json")
    conf = conf_in(folder / "conf", groups=GROUPS)
    return engine.throttle(conf, folder / "trace", folder / "output").output


@pytest.fixture(scope="module")
def duck():
    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("table", SCHEMAS)
def test_three_engines_read_the_same_rows(spark, duck, output, table) -> None:
    by_delta_rs = in_order(throttle_tables(output).read(table).to_pylist())
    by_spark = in_order(spark.read.format("delta").load(f"{output}/{table}").toArrow().to_pylist())
    by_duckdb = in_order(duck.execute(f"SELECT * FROM delta_scan('{output}/{table}')").to_arrow_table().to_pylist())
    assert by_delta_rs == by_spark == by_duckdb


def test_a_stream_that_follows_a_table_hears_each_row_once_while_its_files_are_joined(
    spark, tmp_path, monkeypatch
) -> None:
    """The log is cleaned meanwhile, but not of what the stream has not read."""
    for name, commits in (("upkeep.COMPACTED_EVERY", 5), ("query.CLEANED_EVERY", 10), ("upkeep.VACUUMED_EVERY", 10)):
        monkeypatch.setattr(f"headgate.tables.{name}", commits)
    tables, heard = throttle_tables(tmp_path / "out"), []

    def follow() -> None:
        heard.extend(row["reason"] for row in news(spark, tmp_path, "dead_letters"))

    for first in (0, 3, 25):
        for number in range(first, first + 20):
            letters = pa.Table.from_pylist([{"reason": f"{first} {number}"}], SCHEMAS["dead_letters"])
            tables.append("dead_letters", letters, f"query {first}", number)
        follow()
    assert len(DeltaTable(tmp_path / "out" / "dead_letters").file_uris()) < 10
    assert sorted(tables.read("dead_letters")["reason"].to_pylist()) == sorted(heard)
    assert 60 == len(heard)


def test_a_stream_that_follows_a_table_hears_of_rows_that_are_deleted_meanwhile(spark, tmp_path, monkeypatch) -> None:
    """A row an hour, of which those of the last 5 hours stay."""
    monkeypatch.setattr("headgate.tables.upkeep.COMPACTED_EVERY", 5)
    tables, heard = throttle_tables(tmp_path / "out", kept_hours=5), []
    for hours in (range(3), range(3, 40)):
        for hour in hours:
            row = {"event_time": datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=hour), "topic": str(hour)}
            tables.append("marks", pa.Table.from_pylist([row], SCHEMAS["marks"]), "query", hour)
        heard += [int(row["topic"]) for row in news(spark, tmp_path, "marks")]
    assert list(range(40)) == sorted(heard)
    assert len(tables.read("marks")) < 15


def news(spark, folder, table):
    """The rows of a table that a stream with a checkpoint has not had yet."""
    found = []
    rows = appended_rows(spark, f"{folder}/out/{table}").writeStream
    rows.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(
        lambda batch, _: found.extend(batch.collect())
    ).trigger(availableNow=True).start().awaitTermination()
    return found


def in_order(rows):
    """Rows as text of their values, sorted; time zones by another name are the same zone."""
    return sorted(
        str([value.isoformat() if hasattr(value, "isoformat") else value for value in row.values()]) for row in rows
    )
