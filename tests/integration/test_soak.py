"""Everything together on real brokers, and a fault every so often: nothing is lost, nothing doubled, every fault named.

The short form has one fault of the throttle job; the long form, two hours, all parts and all faults again and again.
SOAK_MINUTES says how long another one is: with 0 each fault of the throttle job comes once.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
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
from pulsar_standalone import Pulsar
from real_broker import free_ports
from soak import ROOT, Disk, Fault, Part, Traffic, headgate, killed_and_restarted, missing, torn

TOPIC, SHORT = "soak", "disk full"
FAULT_S, MOST_SLOPE_MB_PER_H, SETTLING_S = 20, 1.0, 900
PATIENCE_S = 900
SETTINGS = "[operator]\nslots = 2\n[tables]\nkept_hours = 0\n[input.kafka]\nstarting_offsets = 'earliest'\n"
LIMITS = {"maxPublishRatePerTopicInMessages": 10}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small disk, and fills it up")


def job(name: str, *options: str) -> list[str]:
    return [str(ROOT / "spark-submit.sh"), *SMALL_SPARK, f"jobs/{name}.py", *options]


def throttle(disk: Path, servers: str, folder: Path) -> list[str]:
    settings = f"bootstrap_servers = '{servers}'\n"
    conf = write_conf(folder / "conf", SETTINGS + settings, broker=LIMITS)
    places = ("--input", TOPIC, "--output", f"{disk}/out", "--conf-dir", str(conf))
    return job("throttle", "--format", "kafka", *places)


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


def faults_of_the_job(part: Part, disk: Disk, traffic: Traffic) -> list[Fault]:
    output = disk.folder / "out"
    return [
        Fault("kill -9", part, part.kill, None),
        Fault("disk full", part, partial(for_a_while, disk.full), r"(?i)no space|disk"),
        Fault("read-only disk", part, partial(for_a_while, disk.read_only), r"(?i)read-only"),
        Fault("clock an hour forth", part, partial(clock_off, traffic, 3600), None),
        Fault("clock an hour back", part, partial(clock_off, traffic, -3600), None),
        Fault(
            "torn checkpoint file",
            part,
            partial(while_held, part, partial(torn, output / "checkpoint" / "offsets"), r"(?i)checkpoint|offset"),
            r"(?i)checkpoint|offset",
        ),
        Fault(
            "missing entry of a Delta log",
            part,
            partial(while_held, part, partial(missing, output / "topic_usage" / "_delta_log"), r"(?i)topic_usage"),
            r"(?i)topic_usage",
        ),
    ]


def befall(fault: Fault, told: list[str]) -> None:
    """Carry it out; the screen of its part has to name it."""
    position = fault.part.position
    fault.befall()
    said = fault.part.said_since(position)
    named = next((line.strip() for line in said.splitlines() if fault.words and re.search(fault.words, line)), "")
    told.append(f"{fault.name}: {named[:200] or '-'}")
    assert named or fault.words is None, f"{fault.name} is not named:\n{said[-4000:]}"


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
def a_job(kafka: str, folder: Path) -> Iterator[tuple[ExitStack, Part, Disk, Traffic]]:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result()
    with ExitStack() as stack:
        disk = stack.enter_context(Disk(folder / "disk"))
        traffic = stack.enter_context(Traffic(kafka, TOPIC))
        part = stack.enter_context(Part("throttle", throttle(disk.folder, kafka, folder), folder))
        await_that(lambda: batches(disk.folder / "out") > 1, "a batch", PATIENCE_S, pause_s=1)
        yield stack, part, disk, traffic


@pytest.mark.parametrize(
    "minutes", [None, pytest.param(int(os.environ.get("SOAK_MINUTES", "120")), marks=pytest.mark.long)]
)
def test_nothing_is_lost_or_doubled_and_every_fault_is_named(
    minutes: int | None,
    request: pytest.FixtureRequest,
    kafka_broker: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[str] = []
    until_s = time.monotonic() + (minutes or 0) * 60
    with a_job(kafka_broker, tmp_path) as (stack, part, disk, traffic):
        faults, parts = faults_of_the_job(part, disk, traffic), [part]
        if minutes:
            parts += others(stack, request.getfixturevalue("pulsar_standalone"), disk, tmp_path)
            faults += faults_of_others(parts[1:], part)
        faults = [fault for fault in faults if minutes is not None or fault.name == SHORT]
        for done, fault in enumerate(cycle(faults)):
            if done >= len(faults) and time.monotonic() > until_s:
                break
            reached = batches(disk.folder / "out")
            befall(fault, told)
            await_that(lambda reached=reached: batches(disk.folder / "out") > reached, "a batch", PATIENCE_S, pause_s=1)
            rest(parts, 2 * 60 if minutes else 0)
        settled(part, traffic, disk.folder / "out")
    slopes = {one.name: one.slope_mb_per_h(SETTLING_S) for one in parts}
    told += [f"memory of {name}: {slope:.2f} MB/h" for name, slope in slopes.items() if slope is not None]
    with capsys.disabled():
        sent = f"{sum(traffic.sent.values()):,} publishes, {traffic.malformed:,} malformed rows"
        sys.stdout.write("\n".join(["", sent, *told, ""]))

    assert all(slope < MOST_SLOPE_MB_PER_H for slope in slopes.values() if slope is not None), slopes


def rest(parts: Sequence[Part], seconds: float) -> None:
    """Time without a fault, in which memory is looked at."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for part in parts:
            part.sample()
        time.sleep(5)


def others(stack: ExitStack, pulsar: Pulsar, disk: Disk, folder: Path) -> list[Part]:
    """The other parts, and traffic for those that follow a cluster."""
    tenant = Tenant(pulsar, folder, 100)
    stack.enter_context(offered(tenant, a_1=50, a_2=200))
    (port,) = free_ports(1)
    output, cluster = f"{disk.folder}/out", ("--cluster", str(tenant.file), "--output", f"{disk.folder}/cluster")
    commands = {
        "connections": job("connections", "--output", output),
        "serve": headgate("serve", output, "--port", str(port)),
        "collect": headgate("collect", *cluster),
        "enforce": headgate("enforce", *cluster, "--apply"),
    }
    return [stack.enter_context(Part(name, command, folder)) for name, command in commands.items()]


def faults_of_others(parts: Sequence[Part], throttle_job: Part) -> list[Fault]:
    brokers = {"Kafka": (r"kafka\.Kafka ", throttle_job), "Pulsar": (r"PulsarStandalone", parts[2])}
    return [
        *(Fault(f"kill -9 of {part.name}", part, part.kill, None) for part in parts),
        *(
            Fault(f"{name} restarts", part, partial(killed_and_restarted, pattern, FAULT_S), None)
            for name, (pattern, part) in brokers.items()
        ),
    ]
