"""Streams of the protocol's inputs: Delta tables with the columns of docs/tables.md, or JSON objects from Kafka."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.protocol.schemas import INPUTS
from headgate.spark.failures import SPARK_ERRORS, first_line
from headgate.spark.sources import kafka_stream, path_exists

FORMATS = ("delta", "kafka")
_COLUMNS: T.StructType = from_arrow_schema(INPUTS)
_CORRUPT = "_corrupt"


def read_inputs(spark: SparkSession, settings: InputSettings, place: str, format_: str) -> DataFrame:
    """INPUTS and `raw`, the text of a row that is no JSON object; a column that the input lacks is null.

    Raises InputError for an input that is not there, that Spark cannot open, or whose columns have other types.
    """
    try:
        return _kafka(spark, settings, place) if format_ == "kafka" else _delta(spark, settings, place)
    except SPARK_ERRORS as error:
        raise InputError(f"--input: {place} cannot be read as {format_}: {first_line(error)}") from error


def _delta(spark: SparkSession, settings: InputSettings, path: str) -> DataFrame:
    if not path_exists(spark, f"{path}/_delta_log"):
        raise InputError(f"--input: no Delta table is at {path}; give the folder of one, or --format kafka")
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", settings.max_files_per_trigger).load(path)
    mistakes = [
        f"{field.name}: got {rows.schema[field.name].dataType.simpleString()}, allowed {field.dataType.simpleString()}"
        for field in _COLUMNS
        if field.name in rows.columns and not _fits(rows.schema[field.name].dataType, field.dataType)
    ]
    if mistakes:
        raise InputError(f"--input: columns of {path} have other types; write them anew: {'; '.join(mistakes)}")
    return rows.select(*(_column(rows, field) for field in _COLUMNS), F.lit(None).cast("string").alias("raw"))


def _column(rows: DataFrame, field: T.StructField) -> Column:
    if field.name not in rows.columns:
        return F.lit(None).cast(field.dataType).alias(field.name)
    return F.col(field.name).try_cast(field.dataType).alias(field.name)


def _fits(got: T.DataType, wanted: T.DataType) -> bool:
    """Whether values of one type are values of the other: integers of any width are, and null where they are too
    large; fields of structs have to have their names and their order.
    """
    if isinstance(got, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _fits(got.elementType, wanted.elementType)
    if isinstance(got, T.StructType) and isinstance(wanted, T.StructType):
        return got.names == wanted.names and all(
            _fits(one.dataType, other.dataType) for one, other in zip(got, wanted, strict=True)
        )
    if isinstance(wanted, T.IntegralType):
        return isinstance(got, T.IntegralType | T.NullType)
    return isinstance(got, type(wanted) | T.NullType)


def _kafka(spark: SparkSession, settings: InputSettings, topic: str) -> DataFrame:
    schema = T.StructType([*_COLUMNS, T.StructField(_CORRUPT, T.StringType())])
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    value = F.make_valid_utf8("value")
    parsed = F.from_json(value, schema, options)
    rows = kafka_stream(spark, settings, topic).select(value.alias("value"), parsed.alias("parsed"))
    is_bad = F.col("parsed").isNull() | F.col(f"parsed.{_CORRUPT}").isNotNull()
    return rows.select(
        *(F.col(f"parsed.{name}").alias(name) for name in INPUTS.names),
        F.when(is_bad, F.coalesce("value", F.lit(""))).alias("raw"),
    )
