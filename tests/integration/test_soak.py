"""Everything together on real brokers, and a fault every so often: nothing is lost, nothing doubled, every fault named.

The short form has one fault of the throttle job; the long form, two hours, all parts and all faults again and again.
SOAK_MINUTES says how long another one is, from when all parts run: with 0 each fault of the throttle job comes once,
with 1 each fault of any part; where it is less than an hour, faults come one right after the other.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from cluster_processes import Tenant, offered
from headgate.tables.query import query
from integration.processes import SMALL_SPARK
from integration.runs import await_that, write_conf
from prometheus_server import Prometheus
from pulsar_standalone import Pulsar
from real_broker import free_ports
from soak import BROKERS, ROOT, Disk, Fault, Part, Traffic, headgate, killed_and_restarted, missing, torn
from soak_clients import Clients

MINUTES = int(os.environ.get("SOAK_MINUTES", "120"))
TOPIC = "soak"
PARTS = ("headgate", "connections", "serve", "collect", "enforce", "gate")
"""As Prometheus knows them; the first is the throttle job."""
FAULT_S, SCRAPED_BEFORE_S = 20, 5
EVERY_S = 120 if MINUTES >= 60 else 0
MOST_SLOPE_MB_PER_H, SETTLING_S = 1.0, 900
PATIENCE_S = 900
SETTINGS = "[operator]\nslots = 2\n[tables]\nkept_hours = 0\n[input.kafka]\nstarting_offsets = 'earliest'\n"
LIMITS = {"maxPublishRatePerTopicInMessages": 10}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small disk, and fills it up")


def job(name: str, *options: str) -> list[str]:
    return [str(ROOT / "spark-submit.sh"), *SMALL_SPARK, f"jobs/{name}.py", *options]


def throttle(disk: Path, servers: str, folder: Path, metrics_port: int) -> list[str]:
    settings = f"bootstrap_servers = '{servers}'\n"
    conf = write_conf(folder / "conf", SETTINGS + settings, broker=LIMITS)
    places = ("--input", TOPIC, "--output", f"{disk}/out", "--conf-dir", str(conf))
    return job("throttle", "--format", "kafka", *places, "--metrics-port", str(metrics_port))


def asked(output: Path, table: str, sql: str) -> list[dict[str, object]]:
    if not (output / table / "_delta_log").is_dir():
        return []
    return query(sql, {"t": DeltaTable(output / table)}).to_pylist()


def counted(output: Path) -> dict[str, int]:
    """Publishes in topic_usage, by topic."""
    rows = asked(output, "topic_usage", "SELECT topic, sum(publishes) AS n FROM t GROUP BY topic")
    return {str(row["topic"]): int(str(row["n"])) for row in rows}


def batches(output: Path) -> int:
    rows = asked(output, "batches", "SELECT count(*) AS n FROM t")
    return int(str(rows[0]["n"])) if rows else 0


def for_a_while(spoilt: Callable[[], AbstractContextManager[object]]) -> None:
    """The fault lasts so long."""
    with spoilt():
        time.sleep(FAULT_S)


def while_held(part: Part, spoilt: Callable[[], AbstractContextManager[object]], words: str) -> None:
    """The part is stopped, something is spoilt, and it starts; it is mended when the part has said so."""
    with ExitStack() as stack:
        with part.held():
            stack.enter_context(spoilt())
            position = part.position
        await_that(lambda: re.search(words, part.said_since(position)), words, PATIENCE_S, pause_s=1)
        with part.held():
            stack.close()


def clock_off(traffic: Traffic, seconds: int) -> None:
    traffic.clock_off_s = seconds
    time.sleep(FAULT_S)
    traffic.clock_off_s = 0


def down(name: str) -> str:
    return f'min_over_time(up{{job="{name}"}}[SINCE]) == 0'


def restarted(name: str) -> str:
    return f'changes(process_start_time_seconds{{job="{name}"}}[SINCE]) > 0'


def faults_of_the_job(part: Part, disk: Disk, traffic: Traffic) -> list[Fault]:
    output, is_down = disk.folder / "out", down(part.name)
    of_clock = f'{{broker="broker-{BROKERS - 1}"}}'
    ahead_s = f"max_over_time((headgate_event_timestamp_seconds{of_clock} - time())[SINCE:1s])"
    return [
        Fault("kill -9", part, part.kill, None, restarted(part.name)),
        Fault("disk full", part, partial(for_a_while, disk.full), r"(?i)no space|MiB free", is_down),
        Fault("read-only disk", part, partial(for_a_while, disk.read_only), r"(?i)read-only", is_down),
        Fault("clock an hour forth", part, partial(clock_off, traffic, 3600), None, f"{ahead_s} > 1800"),
        Fault(
            "clock an hour back",
            part,
            partial(clock_off, traffic, -3600),
            None,
            f"increase(headgate_late_rows_total{of_clock}[SINCE]) > 0",
        ),
        Fault(
            "torn checkpoint file",
            part,
            partial(while_held, part, partial(torn, output / "checkpoint" / "offsets"), r"(?i)checkpoint|offset"),
            r"(?i)checkpoint|offset",
            is_down,
        ),
        Fault(
            "missing entry of a Delta log",
            part,
            partial(while_held, part, partial(missing, output / "topic_usage" / "_delta_log"), r"(?i)topic_usage"),
            r"(?i)topic_usage",
            is_down,
        ),
    ]


def befall(fault: Fault, told: list[str], prometheus: Prometheus | None) -> None:
    """Carry it out; the screen of its part has to name it, and a metric to show it."""
    position, begun_s = fault.part.position, time.monotonic()
    fault.befall()

    def is_named() -> str | None:
        said = fault.part.said_since(position)
        return next((line.strip() for line in said.splitlines() if fault.words and re.search(fault.words, line)), None)

    def is_shown() -> bool:
        since = f"{time.monotonic() - begun_s + SCRAPED_BEFORE_S:.0f}s"
        return prometheus is None or bool(prometheus.rows(fault.metric.replace("SINCE", since)))

    if fault.words is not None:
        await_that(is_named, fault.part.said_since(position), PATIENCE_S, pause_s=1)
    await_that(is_shown, fault.metric, PATIENCE_S, pause_s=1)
    told.append(f"{fault.name}: {(is_named() or '-')[:200]} | {fault.metric}")


def settled(part: Part, traffic: Traffic, output: Path) -> None:
    """Traffic stops, the job uses it up, and all of it is in the tables, once."""
    traffic.stop()
    with part.held():
        done = subprocess.run([*part.command, "--once"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    letters = asked(output, "dead_letters", "SELECT count(*) AS n FROM t")

    assert dict(traffic.sent) == counted(output)
    assert [{"n": traffic.malformed}] == letters


@contextmanager
def a_job(kafka: str, folder: Path, metrics_port: int) -> Iterator[tuple[ExitStack, Part, Disk, Traffic]]:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result()
    with ExitStack() as stack:
        disk = stack.enter_context(Disk(folder / "disk"))
        traffic = stack.enter_context(Traffic(kafka, TOPIC))
        command = throttle(disk.folder, kafka, folder, metrics_port)
        part = stack.enter_context(Part("headgate", command, folder))
        await_that(lambda: batches(disk.folder / "out") > 1, "a batch", PATIENCE_S, pause_s=1)
        yield stack, part, disk, traffic


def test_a_full_disk_loses_and_doubles_nothing_and_is_named(kafka_broker: str, tmp_path: Path) -> None:
    with a_job(kafka_broker, tmp_path, 0) as (_, part, disk, traffic):
        (fault,) = (one for one in faults_of_the_job(part, disk, traffic) if one.name == "disk full")
        befall(fault, [], None)
        settled(part, traffic, disk.folder / "out")


@pytest.mark.long
def test_nothing_is_lost_or_doubled_and_every_fault_is_named(
    kafka_broker: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """Each fault once at least."""
    told: list[str] = []
    prometheus_port, *ports = free_ports(1 + len(PARTS))
    prometheus = Prometheus(prometheus_port, dict(zip(PARTS, ports, strict=True)))
    with a_job(kafka_broker, tmp_path, prometheus.target_port) as (stack, part, disk, traffic):
        stack.enter_context(prometheus.started(tmp_path_factory.mktemp("prometheus")))
        faults, parts = faults_of_the_job(part, disk, traffic), [part]
        if MINUTES:
            pulsar = request.getfixturevalue("pulsar_standalone")
            parts += others(stack, pulsar, disk, tmp_path, prometheus.target_ports)
            clients = stack.enter_context(Clients(pulsar, *ports_of_gate(parts[-1])))
            base = tmp_path_factory.getbasetemp()
            faults += faults_of_others(parts, {name: pid_file(base, name) for name in ("kafka", "pulsar")})
        until_s = time.monotonic() + MINUTES * 60
        for done, fault in enumerate(cycle(faults)):
            if done >= len(faults) and time.monotonic() > until_s:
                break
            reached, next_s = batches(disk.folder / "out"), time.monotonic() + EVERY_S
            befall(fault, told, prometheus)
            report(told[-1])
            await_that(lambda reached=reached: batches(disk.folder / "out") > reached, "a batch", PATIENCE_S, pause_s=1)
            sampled(parts, next_s)
        settled(part, traffic, disk.folder / "out")
        if MINUTES:
            report(f"client of the gate: {clients.check()}")
    report(f"{sum(traffic.sent.values()):,} publishes, {traffic.malformed:,} malformed rows")
    slopes = {one.name: one.slope_mb_per_h(SETTLING_S) for one in parts}
    for name, slope in slopes.items():
        report(f"memory of {name}: {'no life was long enough' if slope is None else f'{slope:.2f} MB/h'}")

    assert all(slope < MOST_SLOPE_MB_PER_H for slope in slopes.values() if slope is not None), slopes


def report(line: str) -> None:
    """At once: it takes hours."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.__stdout__, flush=True)


def sampled(parts: Sequence[Part], until_s: float) -> None:
    """Time without a fault, in which memory is looked at."""
    while time.monotonic() < until_s:
        for part in parts:
            part.sample()
        time.sleep(5)


def others(stack: ExitStack, pulsar: Pulsar, disk: Disk, folder: Path, metrics_ports: Mapping[str, int]) -> list[Part]:
    """The other parts, and traffic for those that follow a cluster."""
    tenant = Tenant(pulsar, folder, 100)
    stack.enter_context(offered(tenant, a_1=50, a_2=200))
    port, gate_port, control_port = map(str, free_ports(3))
    output, cluster = f"{disk.folder}/out", ("--cluster", str(tenant.file), "--output", f"{disk.folder}/cluster")
    commands = {
        "connections": job("connections", "--output", output),
        "serve": headgate("serve", output, "--port", port),
        "collect": headgate("collect", *cluster),
        "enforce": headgate("enforce", *cluster, "--apply"),
        "gate": headgate("gate", "machine", "--port", gate_port, "--control-port", control_port),
    }
    with_metrics = {name: [*words, "--metrics-port", str(metrics_ports[name])] for name, words in commands.items()}
    return [stack.enter_context(Part(name, words, folder)) for name, words in with_metrics.items()]


def ports_of_gate(gate: Part) -> tuple[int, int]:
    """For clients and for limiters."""
    await_that(lambda: gate.position, "the gate", PATIENCE_S)
    return tuple(int(gate.command[gate.command.index(option) + 1]) for option in ("--port", "--control-port"))


def pid_file(base: Path, broker: str) -> Path:
    """Of the broker that this run has started."""
    (found,) = base.glob(f"{broker}[0-9]*/run/pid")
    return found


def faults_of_others(parts: Sequence[Part], brokers: Mapping[str, Path]) -> list[Fault]:
    by_name = {part.name: part for part in parts}
    silent_s = 'max_over_time((time() - headgate_last_batch_timestamp_seconds{job="headgate"})[SINCE:1s])'
    shown = {
        "kafka": ("headgate", r"has not answered", f"{silent_s} > {FAULT_S - 5}"),
        "pulsar": (
            "collect",
            r"(?i)refused|not answer",
            'increase(headgate_collect_looks_total{outcome="failed"}[SINCE]) > 0',
        ),
    }
    return [
        *(Fault(f"kill -9 of {part.name}", part, part.kill, None, restarted(part.name)) for part in parts[1:]),
        *(
            Fault(f"{broker} restarts", by_name[name], partial(killed_and_restarted, file, FAULT_S), words, metric)
            for broker, file in brokers.items()
            for name, words, metric in [shown[broker]]
        ),
    ]
