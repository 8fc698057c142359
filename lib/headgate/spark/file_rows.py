"""How many rows a file has, found on the driver: a damaged file raises here and fails no task of Spark."""

from pathlib import PurePath
from typing import Any

from pyspark.sql import SparkSession

_BYTES_FOR_BYTES = "ISO-8859-1"
"""A charset in which any bytes are text."""


def parquet_rows(spark: SparkSession, path: str) -> int:
    """What the footer says, on any file system that Spark knows. Raises one of SPARK_ERRORS for one that is damaged."""
    jvm = _jvm(spark)
    parquet = jvm.org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(_path(spark, path), _hadoop(spark))
    reader = parquet.ParquetFileReader.open(file)
    try:
        rows: int = reader.getRecordCount()
    finally:
        reader.close()
    return rows


class TextLines:
    """Lines of files of text, as Spark's reader splits them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = _jvm(spark)
        self._configuration = _hadoop(spark)
        self._codecs = self._jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(self._configuration)
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
            java = self._jvm.java.io
            lines: int = java.BufferedReader(java.InputStreamReader(content, _BYTES_FOR_BYTES)).lines().count()
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
    jvm = _jvm(spark)
    path: str = jvm.org.apache.spark.paths.SparkPath.fromUrlString(url).toPath().toString()
    return path


def _path(spark: SparkSession, path: str) -> Any:
    jvm = _jvm(spark)
    return jvm.org.apache.hadoop.fs.Path(path)


def _hadoop(spark: SparkSession) -> Any:
    """The configuration of file systems."""
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
