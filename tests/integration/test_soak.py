"""Everything together on real brokers, and a fault every so often: nothing is lost, nothing doubled, every fault named.

The short form has one fault of the throttle job; the long form, two hours, all parts and all faults again and again.
SOAK_MINUTES says how long another one is, from when all parts run: with 0 each fault of the throttle job comes once,
with 1 each fault of any part; where it is less than an hour, faults come one right after the other, and memory is not
looked at.
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
from typing import Any
from uuid import uuid4

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
from soak_memory import SHARES, slopes_mb_per_h, windows

MINUTES = int(os.environ.get("SOAK_MINUTES", "120"))
PARTS = ("headgate", "connections", "serve", "collect", "enforce", "gate")
"""As Prometheus knows them; the first is the throttle job."""
FAULT_S, SCRAPED_BEFORE_S = 20, 5
A_REAL_ONE = 60
EVERY_S = 120 if MINUTES >= A_REAL_ONE else 0
MOST_SLOPE_MB_PER_H, SETTLING_S, SAMPLED_EVERY_S = 1.0, 900, 2
PATIENCE_S = 900
SETTINGS = "[operator]\nslots = 2\n[tables]\nkept_hours = 0\n[input.kafka]\nstarting_offsets = 'earliest'\n"
LIMITS = {"maxPublishRatePerTopicInMessages": 10}
SPARK = (*SMALL_SPARK, "--conf", "spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB=1")
"""RocksDB's cache takes half an hour to reach its bound, 8 MB for each part of the state: this is soon full."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small disk, and fills it up")


def job(name: str, *options: str) -> list[str]:
    return [str(ROOT / "spark-submit.sh"), *SPARK, f"jobs/{name}.py", *options]


def throttle(topic: str, disk: Path, servers: str, folder: Path, metrics_port: int) -> list[str]:
    settings = f"bootstrap_servers = '{servers}'\n"
    conf = write_conf(folder / "conf", SETTINGS + settings, broker=LIMITS)
    places = ("--input", topic, "--output", f"{disk}/out", "--conf-dir", str(conf))
    return job("throttle", "--format", "kafka", *places, "--metrics-port", str(metrics_port))


def asked(output: Path, table: str, sql: str) -> list[dict[str, Any]]:
    if not (output / table / "_delta_log").is_dir():
        return []
    return query(sql, {"t": DeltaTable(output / table)}).to_pylist()


def counted(output: Path) -> dict[str, dict[str, int]]:
    """What topic_usage has of each topic."""
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("publishes", "messages", "bytes"))
    rows = asked(output, "topic_usage", f"SELECT topic, {sums} FROM t GROUP BY topic")
    return {row.pop("topic"): row for row in rows}


def batches(output: Path) -> int:
    rows = asked(output, "batches", "SELECT count(*) AS n FROM t")
    return int(rows[0]["n"]) if rows else 0


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


def clock_off(traffic: Traffic, brokers: Iterator[int], seconds: int) -> None:
    """The next of the brokers has a wrong clock."""
    broker = next(brokers)
    traffic.off_s[broker] = seconds
    time.sleep(FAULT_S)
    traffic.off_s[broker] = 0


def down(name: str) -> str:
    return f'min_over_time(up{{job="{name}"}}[SINCE]) == 0'


def restarted(name: str) -> str:
    return f'changes(process_start_time_seconds{{job="{name}"}}[SINCE]) > 0'


def faults_of_the_job(part: Part, disk: Disk, traffic: Traffic) -> list[Fault]:
    output, is_down = disk.folder / "out", down(part.name)
    ahead_s = "max(max_over_time((headgate_event_timestamp_seconds - time())[SINCE:1s]))"

    def spoilt(name: str, how: Callable[[], AbstractContextManager[object]], words: str) -> Fault:
        return Fault(name, part, partial(while_held, part, how, words), words, is_down)

    late, fast = cycle([0]), iter(range(BROKERS - 1, 0, -1))  # a broker that was ahead is late for an hour
    return [
        Fault("kill -9", part, part.kill, None, restarted(part.name)),
        Fault("disk full", part, partial(for_a_while, disk.full), r"(?i)no space|MiB free", is_down),
        Fault("read-only disk", part, partial(for_a_while, disk.read_only), r"(?i)read-only", is_down),
        Fault(
            "clock an hour back",
            part,
            partial(clock_off, traffic, late, -3600),
            r"broker-0: \d+ of \d+ rows .* late",
            'increase(headgate_late_rows_total{broker="broker-0"}[SINCE]) > 0',
        ),
        Fault(
            "clock an hour forth",
            part,
            partial(clock_off, traffic, fast, 3600),
            r"broker-\d is 3,\d{3} s ahead",
            f"{ahead_s} > 3500",
        ),
        spoilt("torn checkpoint file", partial(torn, output / "checkpoint" / "offsets"), r"(?i)checkpoint|offset"),
        spoilt("missing entry of a Delta log", partial(missing, output / "topic_usage" / "_delta_log"), "topic_usage"),
    ]


def befall(fault: Fault, prometheus: Prometheus | None) -> None:
    """Carry it out once its metric has forgotten the one before; the screen of its part has to name it, and the metric
    to show it.
    """
    if prometheus is not None:
        before = fault.metric.replace("SINCE", f"{SCRAPED_BEFORE_S}s")
        await_that(lambda: not prometheus.rows(before), f"not yet {fault.name}: {before}", PATIENCE_S, pause_s=1)
    position, begun_s = fault.part.position, time.monotonic()

    def is_named() -> str | None:
        said = fault.part.said_since(position)
        return next((line.strip() for line in said.splitlines() if fault.words and re.search(fault.words, line)), None)

    def is_shown() -> bool:
        since = f"{time.monotonic() - begun_s + SCRAPED_BEFORE_S:.0f}s"
        return prometheus is not None and bool(prometheus.rows(fault.metric.replace("SINCE", since)))

    fault.befall()
    if fault.words is not None:
        await_that(is_named, f"{fault.name}: {fault.words}", PATIENCE_S, pause_s=1)
    if prometheus is not None:
        await_that(is_shown, f"{fault.name}: {fault.metric}", PATIENCE_S, pause_s=1)
    report(f"{fault.name}: {(is_named() or '-')[:200]} | {fault.metric}")


def settled(part: Part, traffic: Traffic, output: Path) -> None:
    """Traffic stops, the job uses it up, and all of it is in the tables, once."""
    traffic.stop()
    with part.held():
        once = [*part.command, "--once"]
        done = subprocess.run(once, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    of_marks = "SELECT count(*) AS marks, count(DISTINCT seq) AS publishes FROM t WHERE action = 'mark'"
    ((marks, of_publishes),) = (row.values() for row in asked(output, "marks", of_marks))

    assert {topic: dict(amounts) for topic, amounts in traffic.sent.items()} == counted(output)
    assert [{"n": traffic.malformed}] == asked(output, "dead_letters", "SELECT count(*) AS n FROM t")
    assert marks == of_publishes > 0


@contextmanager
def a_job(kafka: str, folder: Path, metrics_port: int) -> Iterator[tuple[ExitStack, Part, Disk, Traffic]]:
    admin = AdminClient({"bootstrap.servers": kafka})
    topic = str(uuid4())
    admin.create_topics([NewTopic(topic, 1)])[topic].result()
    with ExitStack() as stack:
        disk = stack.enter_context(Disk(folder / "disk"))
        traffic = stack.enter_context(Traffic(kafka, topic))
        command = throttle(topic, disk.folder, kafka, folder, metrics_port)
        part = stack.enter_context(Part("headgate", command, folder))
        await_that(lambda: batches(disk.folder / "out") > 1, "a batch", PATIENCE_S, pause_s=1)
        yield stack, part, disk, traffic


def test_a_full_disk_loses_and_doubles_nothing_and_is_named(kafka_broker: str, tmp_path: Path) -> None:
    with a_job(kafka_broker, tmp_path, 0) as (_, part, disk, traffic):
        (fault,) = (one for one in faults_of_the_job(part, disk, traffic) if one.name == "disk full")
        befall(fault, None)
        settled(part, traffic, disk.folder / "out")


@pytest.mark.long
def test_nothing_is_lost_or_doubled_and_every_fault_is_named(
    kafka_broker: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """Each fault once at least; in the last third of the time there is none, and memory is looked at."""
    prometheus_port, *ports = free_ports(1 + len(PARTS))
    prometheus = Prometheus(prometheus_port, dict(zip(PARTS, ports, strict=True)))
    with a_job(kafka_broker, tmp_path, prometheus.target_port) as (stack, part, disk, traffic):
        stack.enter_context(prometheus.started(tmp_path_factory.mktemp("prometheus")))
        output, faults, parts, clients = disk.folder / "out", faults_of_the_job(part, disk, traffic), [part], None
        if MINUTES:
            pulsar = request.getfixturevalue("pulsar_standalone")
            parts += others(stack, pulsar, disk, tmp_path, prometheus.target_ports)
            clients = stack.enter_context(Clients(pulsar, *ports_of_gate(parts[-1])))
            base = tmp_path_factory.getbasetemp()
            faults += faults_of_others(parts, {name: pid_file(base, name) for name in ("kafka", "pulsar")})
            await_all(parts, prometheus)
        begun_s = time.monotonic()
        for done, fault in enumerate(cycle(faults)):
            if done >= len(faults) and time.monotonic() > begun_s + MINUTES * 40:
                break
            next_s = time.monotonic() + EVERY_S
            befall(fault, prometheus)
            reached = batches(output)
            await_that(lambda reached=reached: batches(output) > reached, "a batch", PATIENCE_S, pause_s=1)
            time.sleep(max(next_s - time.monotonic(), SCRAPED_BEFORE_S))
        await_all(parts, prometheus)
        if MINUTES >= A_REAL_ONE:
            calm(parts, max(begun_s + MINUTES * 60, time.monotonic() + 2.5 * SETTLING_S))
        settled(part, traffic, output)
        if clients is not None:
            report(f"client of the gate: {clients.check()}")
            tables = {"connections": output, "counters": disk.folder / "cluster", "enforced": disk.folder / "cluster"}
            assert all(asked(place, name, "SELECT 1 FROM t LIMIT 1") for name, place in tables.items())
    publishes = sum(amounts["publishes"] for amounts in traffic.sent.values())
    report(f"{publishes:,} publishes, {traffic.malformed:,} malformed rows")
    measured = parts if MINUTES >= A_REAL_ONE else []
    slopes = {one.name: slopes_mb_per_h(one.samples, SETTLING_S) for one in measured}
    for one in measured:
        for when, share in SHARES.items():
            seen = [str(window.held) for window in windows(one.samples, 0, share)]
            slope = (slopes[one.name] or {}).get(when)
            report(f"memory of {one.name} {when}: {slope}; MB in each window: {'; '.join(seen)}")

    assert all(slopes.values()), slopes
    growing = {
        (name, when): str(slope)
        for name, of_part in slopes.items()
        for when, slope in (of_part or {}).items()
        if slope.is_above(MOST_SLOPE_MB_PER_H)
    }
    assert not growing


def await_all(parts: Sequence[Part], prometheus: Prometheus) -> None:
    """Each has been up for a while."""
    up = [f'time() - process_start_time_seconds{{job="{part.name}"}} > {2 * FAULT_S} and up == 1' for part in parts]
    await_that(lambda: all(map(prometheus.rows, up)), up, PATIENCE_S, pause_s=1)


def report(line: str) -> None:
    """At once: it takes hours."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.__stdout__, flush=True)


def calm(parts: Sequence[Part], until_s: float) -> None:
    """Time without a fault, in which memory is looked at."""
    while time.monotonic() < until_s:
        for part in parts:
            part.sample()
        time.sleep(SAMPLED_EVERY_S)


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
        "kafka": ("headgate", r"has not answered|no batch has ended", f"{silent_s} > {FAULT_S}"),
        "pulsar": (
            "collect",
            r"(?i)refused|not answer",
            'increase(headgate_collect_looks_total{outcome="failed"}[SINCE]) > 0',
        ),
    }
    kills = [Fault(f"kill -9 of {part.name}", part, part.kill, None, restarted(part.name)) for part in parts[1:]]
    for broker, (name, words, metric) in shown.items():
        restart = partial(killed_and_restarted, brokers[broker], 2 * FAULT_S)
        kills.append(Fault(f"{broker} restarts", by_name[name], restart, words, metric))
    return kills
