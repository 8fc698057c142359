"""Streams of the protocol's inputs: Delta tables with the columns of docs/tables.md, or JSON objects from Kafka."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.protocol.parse import other_types
from headgate.spark.input.sources import path_exists, read_raw

FORMATS = ("delta", "kafka")


def read_inputs(spark: SparkSession, settings: InputSettings, place: str, format_: str) -> DataFrame:
    """As `read_raw`. Raises InputError also for a Delta table whose columns have other types."""
    if format_ == "delta" and not path_exists(spark, f"{place}/_delta_log"):
        raise InputError(f"--input: no Delta table is at {place}; give the folder of one, or --format kafka")
    rows = read_raw(spark, settings, place, format_)
    if format_ == "delta":
        _check_columns(rows, place)
    return rows


def _check_columns(rows: DataFrame, place: str) -> None:
    mistakes = [
        f"{got.name}: got {from_arrow_type(got.type).simpleString()}, "
        f"allowed {from_arrow_type(wanted.type).simpleString()}"
        for got, wanted in other_types(to_arrow_schema(rows.select("row.*").schema))
    ]
    if mistakes:
        raise InputError(f"--input: columns of {place} have other types; write them anew: {'; '.join(mistakes)}")
