"""How many rows a file has, found on the driver: a damaged file raises here and fails no task of Spark."""

from functools import cache, reduce
from pathlib import PurePath
from typing import Any

from pyspark.sql import SparkSession

_BYTES_FOR_BYTES = "ISO-8859-1"
"""A charset in which any bytes are text."""


def parquet_rows(spark: SparkSession, path: str) -> int:
    """What the footer says, on any file system that Spark knows. Raises one of SPARK_ERRORS for one that is damaged."""
    input_file = java_class(spark, "org.apache.parquet.hadoop.util.HadoopInputFile")
    file = input_file.fromPath(_path(spark, path), _hadoop(spark))
    reader = java_class(spark, "org.apache.parquet.hadoop.ParquetFileReader").open(file)
    try:
        rows: int = reader.getRecordCount()
    finally:
        reader.close()
    return rows


@cache
def text_lines(spark: SparkSession) -> "TextLines":
    """The one of a session: codecs are found once."""
    return TextLines(spark)


class TextLines:
    """Lines of files of text, as Spark's reader splits them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._configuration = _hadoop(spark)
        codecs = java_class(spark, "org.apache.hadoop.io.compress.CompressionCodecFactory")
        self._codecs = codecs(self._configuration)
        self._by_ending: dict[str, Any] = {}

    def is_compressed(self, path: str) -> bool:
        """As the end of the name says."""
        return self._codec(path) is not None

    def count(self, path: str) -> int:
        """The whole file is read. Raises one of SPARK_ERRORS where it cannot be read to its end."""
        file = _path(self._spark, path)
        stream = file.getFileSystem(self._configuration).open(file)
        try:
            codec = self._codec(path)
            content = stream if codec is None else codec.createInputStream(stream)
            reader = java_class(self._spark, "java.io.InputStreamReader")(content, _BYTES_FOR_BYTES)
            lines: int = java_class(self._spark, "java.io.BufferedReader")(reader).lines().count()
        finally:
            stream.close()
        return lines

    def _codec(self, path: str) -> Any:
        ending = PurePath(path).suffix
        if ending not in self._by_ending:
            self._by_ending[ending] = self._codecs.getCodec(_path(self._spark, f"a{ending}"))
        return self._by_ending[ending]


def path_of_url(spark: SparkSession, url: str) -> str:
    """The path behind an address of a file as Spark writes it."""
    spark_path = java_class(spark, "org.apache.spark.paths.SparkPath")
    path: str = spark_path.fromUrlString(url).toPath().toString()
    return path


def _path(spark: SparkSession, path: str) -> Any:
    return java_class(spark, "org.apache.hadoop.fs.Path")(path)


def _hadoop(spark: SparkSession) -> Any:
    """The configuration of file systems."""
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


@cache
def java_class(spark: SparkSession, name: str) -> Any:
    """Looked up once: for each part of a name Java searches its whole class path."""
    return reduce(getattr, name.split("."), spark._jvm)
