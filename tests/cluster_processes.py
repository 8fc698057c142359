"""A tenant on a real broker, `headgate collect` and `headgate enforce` as processes, and traffic for its topics."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import pulsar
from deltalake import DeltaTable

from headgate.tables.query import query
from integration.runs import await_that
from pulsar_standalone import Pulsar

LIB = Path(__file__).parents[1] / "lib"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(LIB)}
TIMEOUT_S = 60
NUMBERS = count(1)
CONF = '[cluster]\nadmin_url = "{}"\nperiod_s = 1\nhold_s = 10\n[[resource]]\ntenant = "{}"\npublishRateInMsgs = {}\n'


class Followed:
    """A cluster.toml, and the folder whose out/ has its tables."""

    file: Path
    folder: Path

    def rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        return query(sql, {"t": DeltaTable(self.folder / "out" / table)}).to_pylist()


class Tenant(Followed):
    """A tenant of its own with namespaces, and a cluster.toml for it. Its tables are in `folder`/out.

    admin_url: what cluster.toml names; that of the broker if it is not given.
    """

    def __init__(
        self,
        broker: Pulsar,
        folder: Path,
        quota: int = 100,
        *,
        namespaces: Sequence[str] = ("a", "b"),
        admin_url: str | None = None,
    ) -> None:
        self.name, self.folder, self.service_url = f"tenant-{next(NUMBERS)}", folder, broker.service_url
        self._broker = broker
        self.send("PUT", f"tenants/{self.name}", {"allowedClusters": ["standalone"]})
        self.namespaces = [f"{self.name}/{one}" for one in namespaces]
        for namespace in self.namespaces:
            self.send("PUT", f"namespaces/{namespace}", {})
        self.file = folder / f"{self.name}.toml"
        self.file.write_text(CONF.format(admin_url or broker.admin_url, self.name, quota))

    def send(self, method: str, path: str, body: Any = None, api: str = "admin/v2/") -> Any:
        return self._broker.send(method, path, body, api)

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

    def check(self) -> "Process":
        return Process("cluster check", self)


class Process:
    """A command of headgate on a cluster, such as "collect", killed where the block leaves it running."""

    def __init__(self, command: str, followed: Followed, *arguments: str) -> None:
        self._screen = followed.folder / f"{command}-{next(NUMBERS)}.log"
        given = ["--cluster", str(followed.file), "--output", str(followed.folder / "out"), *arguments]
        self._command = [sys.executable, "-m", "headgate", *command.split(), *given]

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

    def __str__(self) -> str:
        return self.text

    def await_text(self, text: str) -> None:
        await_that(lambda: text in self.text or self.process.poll() is not None, text, TIMEOUT_S)
        assert text in self.text


@contextmanager
def again_and_again(act: Callable[[], object], every_s: float = 0.1) -> Iterator[None]:
    """So often while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_s):
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


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
