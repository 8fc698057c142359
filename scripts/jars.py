"""The jars that are not in the Python packages: Delta, Spark's Kafka connector, S3, and servers for tests.

Each set is resolved once by Spark's own `--packages` (Ivy), which needs Java and Python only, into .cache/jars/NAME of
this checkout. Later starts take the files from there: no network, no resolution (2 s a start), and nothing that another
project does to the user's Ivy folder can break them.

    .venv/bin/python scripts/jars.py NAME      fetches the set if it is not there and prints its folder
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import steps
from command_line import properties
from steps import CACHE, ROOT, VENV, SetupError

SPARK_CONF = ROOT / "conf" / "spark-defaults.conf"
KAFKA_BROKER_VERSION = "4.2.1"
SPARK_VERSION = "4.2.0"
HADOOP_VERSION = "3.5.0"
"""Of the hadoop-client in Spark."""
AWS_SDK_VERSION = "2.35.4"
"""That hadoop-aws of this version was built with."""
_AWS_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client")
S3 = ",".join(
    [
        f"org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
        "org.apache.spark:spark-hadoop-cloud_2.13:4.1.2",  # one class of it; of 4.2.0 there is none
        *(f"software.amazon.awssdk:{module}:{AWS_SDK_VERSION}" for module in _AWS_MODULES),
    ]
)
S3_EXCLUDES = (
    # The SDK as a whole, 640 MB, of which four modules do.
    "software.amazon.awssdk:bundle,"
    # What Spark brings itself, and other clouds.
    "org.apache.spark:spark-core_2.13,org.apache.hadoop:hadoop-client-*,org.apache.hadoop:hadoop-cloud-storage,"
    "org.apache.hadoop:hadoop-azure*,org.apache.hadoop:hadoop-huaweicloud,org.apache.hadoop:hadoop-common,"
    "com.google.cloud.bigdataoss:*,io.netty:*,org.apache.httpcomponents:*,commons-codec:*,joda-time:*,"
    "com.fasterxml.jackson.core:*,com.fasterxml.jackson.dataformat:*,org.eclipse.jetty:*,org.scala-lang.modules:*,org.wildfly.openssl:*,"
    "com.huaweicloud:*,com.squareup.okhttp3:*,com.squareup.okio:*,com.jamesmurty.utils:*"
)
S3_SERVER = "org.gaul:s3proxy:4.1.0"
S3_SERVER_EXCLUDES = (  # it stands before other clouds, too
    "com.azure:*,com.google.cloud:*,com.github.openstack4j.core:*,com.github.openstack4j.core.connectors:*,"
    "software.amazon.awssdk:*,io.grpc:*,io.prometheus:*,com.squareup.okhttp3:*,com.squareup.okio:*,com.github.fge:*"
)
KAFKA_CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"


@dataclass(frozen=True)
class Resolution:
    """One `--packages` run: Maven coordinates, and which dependencies to leave out (group:artifact, * allowed)."""

    packages: str
    excludes: str


def conf_value(key: str) -> str:
    """The value of one key in conf/spark-defaults.conf."""
    try:
        return properties(SPARK_CONF)[key]
    except KeyError:
        raise SetupError(f"{SPARK_CONF}: no line {key}; restore the file") from None


def resolution_of(name: str) -> Resolution:
    """What the jar set `name` consists of: delta, kafka, s3, kafka-broker or s3-server."""
    spark_has = conf_value("spark.jars.excludes")
    match name:
        case "delta":
            return Resolution(conf_value("spark.jars.packages"), spark_has)
        case "kafka":
            return Resolution(KAFKA_CONNECTOR, spark_has)
        case "s3":
            return Resolution(S3, f"{S3_EXCLUDES},{spark_has.removeprefix('org.apache.hadoop:*,')}")
        case "s3-server":
            return Resolution(S3_SERVER, S3_SERVER_EXCLUDES)
        case "kafka-broker":
            # slf4j-simple is there so that the broker's warnings reach its log.
            return Resolution(f"org.apache.kafka:kafka_2.13:{KAFKA_BROKER_VERSION},org.slf4j:slf4j-simple:1.7.36", "")
        case _:
            raise SetupError(f"no jar set {name!r}; there are delta, kafka, s3, kafka-broker, s3-server")


def spark_home() -> Path:
    """The Spark inside the virtual environment's pyspark."""
    return next(VENV.glob("lib/python3.*/site-packages/pyspark"))


def fetch(name: str) -> list[Path]:
    """The jars of a set, resolved first if they are not in .cache/jars or if what the set consists of has changed.

    A set is complete or absent: it is filled beside its place and renamed. Raises SetupError.
    """
    wanted = resolution_of(name)
    if not is_fetched(name, wanted):
        with steps.locked():
            if not is_fetched(name, wanted):
                with steps.step(f"fetching {wanted.packages.split(',')[0]} and what it needs"):
                    resolve(name, wanted)
    return sorted(folder(name).glob("*.jar"))


def folder(name: str) -> Path:
    return CACHE / "jars" / name


def is_fetched(name: str, wanted: Resolution) -> bool:
    stamp = folder(name) / "resolved"
    return stamp.is_file() and stamp.read_text() == repr(wanted)


def resolve(name: str, wanted: Resolution) -> None:
    """Fill .cache/jars/NAME anew."""
    building = folder(f"{name}.part")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    spark_packages(wanted, building / "ivy")
    for jar in (building / "ivy" / "jars").glob("*.jar"):
        jar.rename(building / jar.name)
    shutil.rmtree(building / "ivy")
    (building / "resolved").write_text(repr(wanted))
    shutil.rmtree(folder(name), ignore_errors=True)
    building.rename(folder(name))


def spark_packages(resolution: Resolution, ivy: Path) -> None:
    """Let spark-submit put packages into ivy/jars. It does so before it starts a job's Python, which here is `true`."""
    empty = ivy / "no-conf"
    empty.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        spark_home() / "bin" / "spark-submit",
        *("--master", "local", "--packages", resolution.packages),
        *(("--exclude-packages", resolution.excludes) if resolution.excludes else ()),
        *("--conf", f"spark.jars.ivy={ivy}"),
        __file__,
    ]
    env = {"SPARK_HOME": str(spark_home()), "SPARK_CONF_DIR": str(empty), "SPARK_LOCAL_IP": "127.0.0.1"}
    advice = (
        "The first start needs the network. Behind a mirror set DEFAULT_ARTIFACT_REPOSITORY, see docs/operations.md."
    )
    steps.run(command, advice, {**env, "PYSPARK_PYTHON": "true", "PYSPARK_DRIVER_PYTHON": "true"})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} delta|kafka|s3|kafka-broker|s3-server")
    try:
        fetch(sys.argv[1])
    except SetupError as error:
        steps.say(f"headgate: {error}")
        sys.exit(steps.UNAVAILABLE)
    sys.stdout.write(f"{folder(sys.argv[1])}{os.linesep}")
