"""Runs of the throttle job on tiny traces, and their tables as comparable rows."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.conf import Conf, load_conf
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.throttle.tables import SCHEMAS, Tables
from headgate.trace import TraceSpec

RESULTS = ("marks", "topic_usage")
PATIENCE_S = 120

SMALL = TraceSpec(
    events=700,
    duration_s=14.0,
    brokers=2,
    tenants=3,
    namespaces_per_tenant=1,
    topics=9,
    bursts=3,
    swing_period_s=14.0,
    files=7,
)
"""Two brokers, three tenants (acme, globex, initech, the noisy one), seven files."""

TOPIC_LIMIT = {"maxPublishRatePerTopicInMessages": 25}
BROKER_LIMIT = {"brokerPublisherThrottlingMaxMessageRate": 90}
GROUPS = {
    "resourcegroups": {"gold": {"publishRateInMsgs": 60}, "bronze": {"publishRateInMsgs": 30}},
    "tenants": {"acme": "gold", "initech": "bronze"},
}


def write_conf(
    folder: Path,
    settings: str = "",
    *,
    broker: Mapping[str, Any] = TOPIC_LIMIT,
    policies: Mapping[str, Any] | None = None,
    groups: Mapping[str, Any] | None = None,
) -> Path:
    """A conf directory; `settings` is the text of headgate.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headgate.toml").write_text(settings)
    (folder / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in broker.items()))
    (folder / "policies.json").write_text(json.dumps(policies or {}))
    (folder / "resource-groups.json").write_text(json.dumps(groups or {}))
    return folder


def conf_in(folder: Path, settings: str = "", **files: Any) -> Conf:
    return load_conf(write_conf(folder, settings, **files))


class Run:
    """One start of the job in this process. `batches` has what on_batch heard."""

    def __init__(
        self,
        spark: SparkSession,
        conf: Conf,
        trace: Path | str,
        output: Path,
        format_: str = "json",
        *,
        checkpoint: Path | None = None,
        once: bool = True,
    ) -> None:
        self.batches: list[Any] = []
        self.stop = threading.Event()
        job = ThrottleJob(str(trace), format_, str(output), str(checkpoint or output / "checkpoint"), once)
        self.run = ThrottleRun(spark, job, conf, lambda batch, _waiting: self.batches.append(batch), self.stop)

    def to_end(self) -> "Run":
        self.run.run()
        return self

    @contextmanager
    def alongside(self) -> Iterator["Run"]:
        """The run in a thread while the block runs, stopped after it; what it raised is raised here."""
        failures: list[BaseException] = []

        def target() -> None:
            try:
                self.run.run()
            except BaseException as error:  # noqa: BLE001  it belongs to the thread that asked
                failures.append(error)

        thread = threading.Thread(target=target)
        thread.start()
        try:
            yield self
        finally:
            self.stop.set()
            thread.join(PATIENCE_S)
        if failures:
            raise failures[0]


def run_once(spark: SparkSession, conf: Conf, trace: Path | str, output: Path, format_: str = "json") -> Path:
    """Use the trace up, return the output folder."""
    Run(spark, conf, trace, output, format_).to_end()
    return output


@contextmanager
def settings(spark: SparkSession, **values: Any) -> Iterator[None]:
    """Spark's settings for the block, dots written as double underscores."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def rows_of(output: Path | str, table: str, *columns: str) -> list[dict[str, Any]]:
    """A table's rows in an order that depends on them alone."""
    assert table in SCHEMAS
    return sorted(Tables(output).read(table, columns or None).to_pylist(), key=repr)


def results_of(output: Path | str) -> dict[str, list[dict[str, Any]]]:
    """What has to be equal, row for row, however the input was cut."""
    return {table: rows_of(output, table) for table in RESULTS}


def total(output: Path | str, column: str) -> int:
    return sum(row[column] for row in rows_of(output, "topic_usage", column))


def await_that(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Ask again and again until `condition` holds; fail with `what` when patience ends."""
    pause, deadline = threading.Event(), time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"in {patience_s} s it did not come: {what}"
        pause.wait(0.05)
