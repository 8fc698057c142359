"""The Spark session of a job: the one that spark-submit.sh configured, else one with the same settings."""

import os
import re
import sys

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.jobs import home
from headgate.stores import checkpoint_settings, hadoop_settings

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
PARTITIONS = "spark.sql.shuffle.partitions"
FEWEST_PARTITIONS, MOST_PARTITIONS = 2, 8
_CLUSTER = re.compile(r"--master (?!local)")


def spark_session(app_name: str) -> SparkSession:
    """The session that a job runs in: Delta is loaded, the log holds warnings and errors, the partition count is set.

    Under spark-submit its settings hold; in a plain Python process the session is made by `local_builder`. An active
    session is used as it is. `app_name` is what Spark's pages and log call the job. Raises HeadgateError if Delta is
    not loaded; the message says how to start the job instead.
    """
    spark = SparkSession.getActiveSession()
    if spark is None:
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        builder = SparkSession.builder.appName(app_name) if submitted else local_builder(app_name)
        spark = builder.getOrCreate()
    settings = spark.sparkContext.getConf()
    if not settings.contains("spark.log.level"):
        spark.sparkContext.setLogLevel("WARN")
    check_delta(spark)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in hadoop_settings(os.environ).items():
        if not settings.contains(f"spark.hadoop.{name}"):
            hadoop.set(name, value)
    if not settings.contains(PARTITIONS):
        count = shuffle_partitions(settings.get("spark.master") or "", spark.sparkContext.defaultParallelism)
        spark.conf.set(PARTITIONS, count)
    return spark


def prepare_checkpoint(spark: SparkSession, place: str) -> None:
    """Let the session read and write a checkpoint at a place. What Spark's settings say wins."""
    for name, value in checkpoint_settings(place).items():
        if not spark.sparkContext.getConf().contains(name):
            spark.conf.set(name, value)


def local_builder(app_name: str) -> SparkSession.Builder:
    """A builder for a session in this process, without spark-submit.sh but with the settings of its conf folder.

    It has to be used before the process starts a JVM, since the settings reach Spark through the environment, as do
    those of `headgate job`. What the caller adds with `.config` wins. Jars come from `jars` beside conf, else from
    .cache/jars if set-up has fetched them; else Spark fetches them now.
    """
    place = home()
    os.environ["SPARK_CONF_DIR"] = str(place / "conf")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not _CLUSTER.search(os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(app_name)
    jars = sorted((place / "jars").glob("*.jar")) or sorted((place / ".cache" / "jars" / "delta").glob("*.jar"))
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars))).config("spark.jars.packages", "")
    return builder


def shuffle_partitions(master: str, parallelism: int) -> int:
    """How many parts a new checkpoint's state is split into, where the settings do not say.

    Each part costs a commit a batch, so there are no more than cores and no more than 8; each is one core's work, so
    there are at least 2. A cluster's cores are not known yet at its start: 8. A checkpoint keeps the number that it was
    started with, whatever this says later.
    """
    cores = parallelism if master.startswith("local") else MOST_PARTITIONS
    return min(max(cores, FEWEST_PARTITIONS), MOST_PARTITIONS)


def check_delta(spark: SparkSession) -> None:
    """Raise HeadgateError if the session could not read or write a Delta table: setting or jar missing.

    Spark itself would start without the jar and fail at the first table, with another message for each kind of use.
    """
    how = "Start the job with ./spark-submit.sh JOB.py, which sets it and fetches the jar"
    extensions = spark.sparkContext.getConf().get("spark.sql.extensions") or ""
    if DELTA_EXTENSION not in extensions.split(","):
        raise HeadgateError(
            f"Delta is not loaded: spark.sql.extensions is {extensions or 'not set'} and has to name "
            f"{DELTA_EXTENSION}. {how}, or give Spark the settings of conf/spark-defaults.conf."
        )
    try:
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
        loader.loadClass(DELTA_EXTENSION)
    except Py4JJavaError as error:
        raise HeadgateError(f"Delta is not loaded: its jar is not among Spark's jars. {how}.") from error
