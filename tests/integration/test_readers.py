"""The tables are the same rows for Spark, delta-rs and DuckDB."""

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
    for name, commits in (("COMPACTED_EVERY", 5), ("CLEANED_EVERY", 10), ("VACUUMED_EVERY", 10)):
        monkeypatch.setattr(f"headgate.tables.query.{name}", commits)
    tables, heard = throttle_tables(tmp_path / "out"), []

    def follow() -> None:
        rows = appended_rows(spark, f"{tmp_path}/out/dead_letters").writeStream.option(
            "checkpointLocation", f"{tmp_path}/checkpoint"
        )
        rows.foreachBatch(lambda batch, _: heard.extend(row["reason"] for row in batch.collect())).trigger(
            availableNow=True
        ).start().awaitTermination()

    for first in (0, 3, 25):
        for number in range(first, first + 20):
            letters = pa.Table.from_pylist([{"reason": f"{first} {number}"}], SCHEMAS["dead_letters"])
            tables.append("dead_letters", letters, f"query {first}", number)
        follow()
    assert len(DeltaTable(tmp_path / "out" / "dead_letters").file_uris()) < 10
    assert sorted(tables.read("dead_letters")["reason"].to_pylist()) == sorted(heard)
    assert 60 == len(heard)


def in_order(rows):
    """Rows as text of their values, sorted; time zones by another name are the same zone."""
    return sorted(
        str([value.isoformat() if hasattr(value, "isoformat") else value for value in row.values()]) for row in rows
    )
