"""A real Pulsar broker: its counters in, a tenant's quota out, and everything put back, whoever is killed when."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import pulsar
import pytest
from deltalake import DeltaTable

from headgate.cluster.http import Http
from headgate.cluster.ledger import SILENT_S
from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.conf.cluster import load_cluster
from headgate.core.clusters.pushes import Limit
from headgate.tables.query import query
from integration.runs import await_that
from pulsar_standalone import Pulsar

LIB = Path(__file__).parents[2] / "lib"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(LIB)}
TIMEOUT_S = 60
NUMBERS = count(1)
CONF = '[cluster]\nadmin_url = "{}"\nperiod_s = 1\nhold_s = 10\n[[resource]]\ntenant = "{}"\npublishRateInMsgs = {}\n'


class Tenant:
    """A tenant of its own with two namespaces, and a cluster.toml for it."""

    def __init__(self, broker: Pulsar, folder: Path, quota: int = 100) -> None:
        self.name, self.folder, self.service_url = f"tenant-{next(NUMBERS)}", folder, broker.service_url
        self._admin = f"{broker.admin_url}/admin/v2"
        self.send("PUT", f"tenants/{self.name}", {"allowedClusters": ["standalone"]})
        self.namespaces = [f"{self.name}/{one}" for one in ("a", "b")]
        for namespace in self.namespaces:
            self.send("PUT", f"namespaces/{namespace}", {})
        self.file = folder / "cluster.toml"
        self.file.write_text(CONF.format(broker.admin_url, self.name, quota))

    def send(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._admin}/{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            text = response.read()
        return json.loads(text) if text else None

    def limit(self, namespace: str) -> int | None:
        found = self.send("GET", f"namespaces/{namespace}/publishRate")
        return found and found["publishThrottlingRateInMsg"]

    def limits(self) -> list[int | None]:
        return [self.limit(namespace) for namespace in self.namespaces]

    def set_limit(self, namespace: str, messages: int) -> None:
        rate = {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": -1}
        self.send("POST", f"namespaces/{namespace}/publishRate", rate)

    def enforce(self, *arguments: str) -> "Process":
        return Process("enforce", self, *arguments)

    def collect(self) -> "Process":
        return Process("collect", self)

    def rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        return query(sql, {"t": DeltaTable(self.folder / "out" / table)}).to_pylist()


class Process:
    """`headgate collect` or `headgate enforce`, killed where the block leaves it running."""

    def __init__(self, command: str, tenant: Tenant, *arguments: str) -> None:
        self._screen = tenant.folder / f"{command}-{next(NUMBERS)}.log"
        given = ["--cluster", str(tenant.file), "--output", str(tenant.folder / "out"), *arguments]
        self._command = [sys.executable, "-m", "headgate", command, *given]

    def __enter__(self) -> Self:
        with self._screen.open("wb") as screen:
            self.process = subprocess.Popen(self._command, env=ENVIRONMENT, stdout=screen, stderr=screen)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    def run(self) -> int:
        """To its end; the exit status."""
        with self:
            return self.process.wait(TIMEOUT_S)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    @property
    def text(self) -> str:
        return self._screen.read_text()

    def await_text(self, text: str) -> None:
        await_that(lambda: text in self.text or self.process.poll() is not None, text, TIMEOUT_S)
        assert text in self.text


@contextmanager
def offered(tenant: Tenant, **rates: int) -> Iterator[None]:
    """Messages a second to each topic of the tenant's namespaces, named like a_1, while the block runs."""
    stop = threading.Event()
    client = pulsar.Client(tenant.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def publish(topic: str, per_s: int) -> None:
        producer = client.create_producer(
            topic, batching_enabled=False, block_if_queue_full=True, max_pending_messages=20, send_timeout_millis=0
        )
        due_s = time.monotonic()
        while not stop.wait(max(due_s - time.monotonic(), 0)):
            producer.send_async(b"x" * 100, lambda *_: None)
            due_s = max(due_s + 1 / per_s, time.monotonic() - 0.5)

    topics = {f"persistent://{tenant.name}/{name.replace('_', '/')}": per_s for name, per_s in rates.items()}
    threads = [threading.Thread(target=publish, args=one) for one in topics.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
        client.close()


@pytest.fixture
def tenant(pulsar_standalone: Pulsar, tmp_path: Path) -> Tenant:
    return Tenant(pulsar_standalone, tmp_path)


def test_a_tenant_gets_its_quota_over_two_namespaces_and_everything_is_put_back(tenant: Tenant) -> None:
    tenant.set_limit(tenant.namespaces[1], 5000)  # the operator's
    with tenant.collect() as collect, offered(tenant, a_1=10, a_2=200, b_3=200):
        collect.await_text("1 of 1 brokers")
        with tenant.enforce("--apply") as enforce:
            enforce.await_text("held: ")
            await_that(lambda: len(tenant.rows("broker_looks", "SELECT * FROM t")) > 20, "20 looks", TIMEOUT_S)
            assert tenant.limits() == pytest.approx([45, 45], abs=4)
            assert enforce.stop() == 0
        assert tenant.limits() == [None, 5000]
        assert collect.stop() == 0
    since = (
        "SELECT sum(messages) * 1e6 / (max(at_us) - min(from_us)) AS per_s FROM t WHERE tenant = "
        f"'{tenant.name}' AND direction = 'in' AND seq BETWEEN 12 AND 20"
    )
    assert tenant.rows("counters", since)[0]["per_s"] == pytest.approx(100, rel=0.1)


def test_what_a_killed_enforcer_left_is_put_back_by_release_and_by_the_next_one(tenant: Tenant) -> None:
    a, b = tenant.namespaces
    tenant.set_limit(b, 5000)
    with tenant.collect() as collect, offered(tenant, a_1=300, b_2=300):
        collect.await_text("1 of 1 brokers")
        with tenant.enforce("--apply") as enforce:
            enforce.await_text("push ")
            await_that(lambda: None not in tenant.limits() and tenant.limit(b) != 5000, "limits", TIMEOUT_S)
            enforce.kill()
        set_ = tenant.limits()
        tenant.set_limit(b, 4000)  # the operator again
        with tenant.enforce("--apply") as enforce:
            enforce.await_text("uses ")
            assert tenant.limit(a) == set_[0]
            enforce.kill()
    released = tenant.enforce("--release")
    assert released.run() == 0, released.text
    assert tenant.limits() == [None, 4000]
    assert tenant.enforce("--release").run() == 0
    assert tenant.limits() == [None, 4000]


def test_two_enforcers_of_one_output_do_not_work_at_once(tenant: Tenant) -> None:
    with tenant.collect() as collect, tenant.enforce("--apply") as first:
        collect.await_text("1 of 1 brokers")
        first.await_text("push ")
        with tenant.enforce("--release") as second:
            second.await_text(f"waiting {SILENT_S} s")
            assert second.process.wait(TIMEOUT_S) == 2
            assert "enforces limits with this --output, and is alive" in second.text
        assert tenant.limits() == [100, 100]
        assert first.stop() == 0
    assert tenant.limits() == [None, None]


def test_without_counters_limits_are_put_back_and_set_again_when_there_are(tenant: Tenant) -> None:
    with tenant.enforce("--apply") as enforce:
        with tenant.collect() as collect:
            enforce.await_text("push ")
            collect.kill()
        enforce.await_text("no counters for 10 s: limits are put back until there are")
        await_that(lambda: tenant.limits() == [None, None], "no limits", TIMEOUT_S)
        with tenant.collect():
            await_that(lambda: tenant.limits() == [100, 100], "limits", TIMEOUT_S)
        assert enforce.stop() == 0


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(tenant: Tenant) -> None:
    with tenant.collect() as collect, tenant.enforce() as enforce:
        collect.await_text("1 of 1 brokers")
        enforce.await_text(f"tenant {tenant.name} publish: would push 100 msg/s; the first limit")
        assert enforce.stop() == 0
    assert tenant.limits() == [None, None]
    assert not (tenant.folder / "out" / "enforced").exists()


def test_a_topic_with_a_higher_limit_of_its_own_is_found_by_its_counters_and_held(tenant: Tenant) -> None:
    topic = f"persistent/{tenant.name}/a/1/publishRate"
    with tenant.collect() as collect, offered(tenant, a_1=300):
        collect.await_text("1 of 1 brokers")
        rate = {"publishThrottlingRateInMsg": 9000, "publishThrottlingRateInByte": -1}
        tenant.send("POST", topic, rate)
        with tenant.enforce("--apply") as enforce:
            enforce.await_text("above the limit; it is set once more")
            await_that(lambda: tenant.send("GET", topic)["publishThrottlingRateInMsg"] < 9000, enforce.text, 30)
            assert enforce.stop() == 0
        assert tenant.send("GET", topic) == rate


def test_what_cannot_be_connected_is_said(tenant: Tenant, pulsar_standalone: Pulsar) -> None:
    check = Process("cluster", tenant)
    check._command = [sys.executable, "-m", "headgate", "cluster", "check", "--cluster", str(tenant.file)]
    assert check.run() == 0
    assert f"namespaces/{tenant.name}/a/publishRate: no limit" in check.text
    tenant.file.write_text(CONF.format(pulsar_standalone.admin_url, "nobody", 1))
    assert check.run() == 1
    assert "tenant nobody: is not there; allowed: " in check.text
    refused = tenant.enforce("--apply")
    assert refused.run() == 2
    assert "tenant nobody: is not there; allowed: " in refused.text
    tenant.file.write_text(CONF.format(pulsar_standalone.service_url.replace("pulsar", "http"), tenant.name, 1))
    assert check.run() == 2


@pytest.mark.parametrize(
    ("direction", "old", "limit", "new"),
    [
        ("in", None, Limit(7), {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": -1}),
        (
            "in",
            {"publishThrottlingRateInMsg": 9, "publishThrottlingRateInByte": 3},
            Limit(7, 5),
            {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": 3},
        ),
        ("out", None, Limit(None, 70), {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": 70}),
        (
            "out",
            {"dispatchThrottlingRateInMsg": 90, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 10},
            Limit(7),
            {"dispatchThrottlingRateInMsg": 70, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 10},
        ),
    ],
)
def test_a_limit_is_read_back_as_it_was_written(tenant: Tenant, direction: str, old, limit: Limit, new) -> None:
    limits, conf = PulsarLimits(load_cluster(tenant.file)), load_cluster(tenant.file)
    path = limits.paths(conf.resources[0], direction)[0]
    if old:
        tenant.send("POST", path, old)
    before = limits.read(path)
    after = limits.lowered(path, before, limit)
    limits.write(path, after)
    assert limits.read(path) == after
    assert json.loads(after).items() >= new.items()
    limits.write(path, before)
    assert limits.read(path) == before
    assert Http(conf).get(f"{conf.settings.admin_url}/admin/v2/{path}") == (old and json.loads(before))
