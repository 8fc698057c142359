"""The tables are the same rows for Spark, delta-rs and DuckDB."""

from pathlib import Path

import duckdb
import duckdb_extension_delta
import pytest

from headgate.throttle.tables import SCHEMAS, Tables
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
    by_delta_rs = in_order(Tables(output).read(table).to_pylist())
    by_spark = in_order(spark.read.format("delta").load(f"{output}/{table}").toArrow().to_pylist())
    by_duckdb = in_order(duck.execute(f"SELECT * FROM delta_scan('{output}/{table}')").to_arrow_table().to_pylist())
    assert by_delta_rs == by_spark == by_duckdb


def in_order(rows):
    """Rows as text of their values, sorted; time zones by another name are the same zone."""
    return sorted(
        str([value.isoformat() if hasattr(value, "isoformat") else value for value in row.values()]) for row in rows
    )
