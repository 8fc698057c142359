"""Runs of the throttle job on tiny traces, and their tables as comparable rows."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from headgate.conf import Conf, load_conf
from headgate.metrics import Metrics
from headgate.spark.throttle import ThrottleJob, ThrottleRun
from headgate.tables.query import query
from headgate.throttle.schemas import CONTROL
from headgate.throttle.tables import SCHEMAS, throttle_tables
from headgate.trace import TraceSpec

RESULTS = ("marks", "topic_usage", "dispatch_decisions", "subscribe_decisions", "unloads")
PATIENCE_S = 120
START = datetime(2026, 1, 5, 9, tzinfo=UTC)

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

MIXED = replace(SMALL, events=1400, dispatch_share=0.3, subscribe_share=0.06, consumers_per_topic=2, unload_share=0.03)
"""The same traffic with rows of every kind, half of them publishes."""

TOPIC_LIMIT = {"maxPublishRatePerTopicInMessages": 25}
BROKER_LIMIT = {"brokerPublisherThrottlingMaxMessageRate": 90}
MIXED_LIMITS = TOPIC_LIMIT | {
    "dispatchThrottlingRatePerTopicInMsg": 20,
    "dispatchThrottlingRatePerSubscriptionInMsg": 12,
    "dispatchThrottlingRateRelativeToPublishRate": "true",
    "statsUpdateFrequencyInSecs": 2,
    "subscribeThrottlingRatePerConsumer": 1,
    "subscribeRatePeriodPerConsumerInSecond": 5,
    "maxConcurrentUnload": 1,
    "namespaceBundleUnloadingTimeoutMs": 2000,
    "maxPendingPublishRequestsPerConnection": 1,
    "pulsarChannelPauseReceivingRequestsIfUnwritable": "true",
    "pulsarChannelPauseReceivingCooldownRateLimitPermits": 1,
    "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs": 2000,
}
"""Limits of every kind of row in MIXED."""
GROUPS = {
    "resourcegroups": {
        "gold": {"publishRateInMsgs": 60, "dispatchRateInMsgs": 25},
        "bronze": {"publishRateInMsgs": 30, "dispatchRateInMsgs": 10},
    },
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
    """A conf directory; `settings` is the text of headgate.toml.

    Unless it says something else, each broker enforces the rates of groups: shared ones follow the batches.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if "group_limits" not in settings:
        table = "[operator]\n"
        settings = settings if table in settings else f"{settings}\n{table}"
        settings = settings.replace(table, f"{table}group_limits = 'each_broker'\n")
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
        broker: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.batches: list[Any] = []
        self.stop = threading.Event()
        job = ThrottleJob(str(trace), format_, str(output), str(checkpoint or output / "checkpoint"), once, broker)
        self.run = ThrottleRun(
            spark, job, conf, lambda batch, _waiting: self.batches.append(batch), self.stop, metrics=metrics
        )

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


def at(seconds: float) -> datetime:
    """An event time of hand-made traffic."""
    return START + timedelta(seconds=seconds)


def write_publishes(file: Path, publishes: Iterable[tuple[float, str, str]], *, messages: int = 5) -> None:
    """One JSON line for each (seconds, broker, topic); `seq` is the time in ms, by which a test can name a publish."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}")
    with unfinished.open("w") as lines:
        for seconds, broker, topic in publishes:
            row = {
                "event_time": at(seconds).isoformat(),
                "seq": round(seconds * 1000),
                "broker": broker,
                "topic": topic,
            }
            row |= {
                "kind": "publish",
                "producer": f"p-{topic[-1]}",
                "connection": "c",
                "messages": messages,
                "bytes": 1,
            }
            lines.write(f"{json.dumps(row)}\n")
    unfinished.rename(file)


def in_order_of_names(trace: Path) -> None:
    """Give the files of a folder times of their own: Spark takes them by these, to the millisecond."""
    for place, file in enumerate(sorted(trace.iterdir())):
        written_s = START.timestamp() + place
        os.utime(file, (written_s, written_s))


def every_100_ms(first_s: int, last_s: int, broker: str, topic: str) -> list[tuple[float, str, str]]:
    """Publishes from `first_s` to just before `last_s`."""
    return [(tenth / 10, broker, topic) for tenth in range(10 * first_s, 10 * last_s)]


def control_row(**values: Any) -> dict[str, Any]:
    """A row as somebody else would append it to the control table: a limit, unless `values` say otherwise."""
    return dict.fromkeys(CONTROL.names) | {"kind": "limit", "source": "operator"} | values


def append_control(output: Path, *rows: dict[str, Any]) -> None:
    """With delta-rs, as another program would."""
    write_deltalake(output / "control", pa.Table.from_pylist(list(rows), CONTROL), mode="append")


def rows_of(output: Path | str, table: str, *columns: str) -> list[dict[str, Any]]:
    """A table's rows in an order that depends on them alone."""
    assert table in SCHEMAS
    return sorted(throttle_tables(output).read(table, columns or None).to_pylist(), key=repr)


def asked(output: Path, sql: str) -> list[dict[str, Any]]:
    """The rows of a query of the tables that brokers share."""
    tables = {name: DeltaTable(output / name) for name in ("rg_limits", "rg_members", "rg_usage", "control")}
    rows: list[dict[str, Any]] = query(sql, tables).to_pylist()
    return rows


def limits_in_force(output: Path, *, traffic_class: int = 0) -> list[dict[str, int]]:
    """Limits of the one group in messages by broker, after each change."""
    sql = (
        'SELECT epoch, name, "limit" FROM rg_limits JOIN (SELECT DISTINCT broker_id, name FROM rg_members) '
        f"USING (broker_id) WHERE class = {traffic_class} AND dimension = 0 ORDER BY epoch"
    )
    held: dict[str, int] = {}
    by_epoch: dict[int, dict[str, int]] = {}
    for row in asked(output, sql):
        held |= {row["name"]: row["limit"]}
        by_epoch[row["epoch"]] = dict(held)
    return list(by_epoch.values())


def results_of(output: Path | str) -> dict[str, list[dict[str, Any]]]:
    """What has to be equal, row for row, however the input was cut."""
    return {table: rows_of(output, table) for table in RESULTS}


def total(output: Path | str, column: str) -> int:
    return sum(row[column] for row in rows_of(output, "topic_usage", column))


def await_that(
    condition: Callable[[], object], what: object, patience_s: float = PATIENCE_S, pause_s: float = 0.05
) -> None:
    """Ask again and again until `condition` holds; fail with `what`, as it is by then, when patience ends."""
    pause, deadline = threading.Event(), time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"in {patience_s} s it did not come: {what}"
        pause.wait(pause_s)
