"""What integration tests share: one Spark session, made when the first test asks for it, clean after each test."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.spark.session import local_builder
from integration.engines import Engine, Local, OnSpark
from integration.processes import FOR_FEW_ROWS
from kafka_broker import kafka_broker
from kafka_cluster import kafka_cluster
from prometheus_server import prometheus, promtool
from pulsar_standalone import pulsar_standalone
from s3_server import at_store, store

__all__ = ["at_store", "kafka_broker", "kafka_cluster", "prometheus", "promtool", "pulsar_standalone", "store"]

TESTS = Path(__file__).parents[1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses the session or a broker, so that `-m "not spark"` and `-m kafka` mean what they say."""
    markers = {"sessions": "spark", "kafka_broker": "kafka", "kafka_cluster": "kafka", "pulsar_standalone": "pulsar"}
    markers |= {"prometheus": "prometheus", "promtool": "prometheus"}
    if config.getoption("engine") == "spark":
        markers["engine"] = "spark"
    for item in items:
        for fixture in markers.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(markers[fixture])


class Sessions:
    """The Spark session of all tests. If its JVM dies, that fails one test, and the next one gets a new session."""

    def __init__(self, build: Callable[[], SparkSession]) -> None:
        self._build = build
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        if self._session is not None and not lives(self._session):
            with suppress(OSError):
                SparkContext._gateway.proc.stdin.close()
            self._session = SparkSession._instantiatedSession = None
            SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        self._session = self._session or self._build()
        return self._session

    def stop(self) -> None:
        if self._session is not None and lives(self._session):
            self._session.stop()


def lives(session: SparkSession) -> bool:
    """Whether its JVM answers."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except (OSError, Py4JError):
        return False


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The one that --engine names, for tests whose subject is tables given rows."""
    if request.config.getoption("engine") == "spark":
        return OnSpark(request.getfixturevalue("sessions").get)
    return Local(request.config.getoption("seed"))


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def each_engine(request: pytest.FixtureRequest) -> Engine:
    """Each in turn, whatever --engine says: for what an engine does on its own, such as reading files."""
    if request.param == "spark":
        return OnSpark(request.getfixturevalue("sessions").get)
    return Local(request.config.getoption("seed"))


@pytest.fixture(scope="session")
def on_spark(sessions: Sessions) -> Engine:
    """The jobs on Spark, whatever --engine says."""
    return OnSpark(sessions.get)


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """The Spark session, which is made when it is first asked for."""
    # Workers are separate processes: they import stateful functions from the sources and from test modules.
    paths = [str(TESTS.parent / "lib"), str(TESTS), str(TESTS / "integration"), os.environ.get("PYTHONPATH", "")]

    def build() -> SparkSession:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
            settings = {
                **FOR_FEW_ROWS,
                "spark.driver.memory": "2g",
                "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse"),
                "spark.local.dir": tmp_path_factory.mktemp("spark"),
            }
            builder = local_builder("headgate-tests").master("local[2]")
            for name, value in settings.items():
                builder = builder.config(name, str(value))
            return builder.getOrCreate()

    sessions = Sessions(build)
    yield sessions
    sessions.stop()


@pytest.fixture(scope="module")
def spark_of_all_tests(sessions: Sessions) -> SparkSession:
    """The session for what the tests of a module share; tests ask for `spark`."""
    return sessions.get()


@pytest.fixture
def spark(sessions: Sessions) -> Iterator[SparkSession]:
    """The one session. After each test: no running query, no temporary view, nothing cached, settings as before."""
    session = sessions.get()
    before = session.conf.getAll
    yield session
    if not lives(session):
        return
    for query in session.streams.active:
        query.stop()
    for table in session.catalog.listTables():
        if table.isTemporary:
            session.catalog.dropTempView(table.name)
    session.catalog.clearCache()
    after = session.conf.getAll
    for name in after.keys() - before.keys():
        session.conf.unset(name)
    for name, value in before.items():
        if after.get(name) != value:
            session.conf.set(name, value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, *subject, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
