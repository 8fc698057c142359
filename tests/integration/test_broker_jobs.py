"""A job a broker, real processes on one set of tables, live traffic: shares are those of one job for all, and what a
killed one had goes to the others until it is back.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from headgate.delta_query import query
from headgate.quota.delta import opened
from headgate.quota.loop_state import LoopStateStore
from headgate.quota.outbox import Pending
from headgate.quota.schemas import QUOTA_STATE
from integration.processes import await_line, options, run_job, started, stopped
from integration.runs import START, await_that, write_conf, write_publishes

QUOTA = 100
WANTED = {"b1": 20, "b2": 90, "b3": 10}
"""Messages a second; a publish has 5."""
SHARES = {"b1": 20, "b2": 70, "b3": 10}
WITHOUT_B1 = {"b2": 90, "b3": 10}
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": QUOTA}}, "tenants": {"acme": "gold"}}
TEXT = "[operator]\nslots = 2\ngroup_limits = 'shared'\ntraffic = 'offered'\n[live]\nlive_lag_ms = 4000\n"
EPOCH_MS = 4000
QUICK = {"resourceGroupEpochMillis": EPOCH_MS, "resourceGroupSilentRounds": 3}
"""Batches of three jobs on two cores take seconds, and a quarter of an epoch holds whole publishes of everybody:
demand is exact. A broker is lost after fifteen epochs without a heartbeat.
"""
PATIENCE_S = 240
FLOOR = 1.05


@contextmanager
def traffic(trace: Path) -> Iterator[None]:
    """A file for each second, at its end, with as many publishes as each broker is wanted to take, evenly spread."""
    over = threading.Event()

    def write() -> None:
        second = int((datetime.now(UTC) - START).total_seconds())
        while not over.is_set():
            rows = [
                (second + (i + 0.5) * 5 / wanted, broker, f"persistent://acme/shop/{broker}")
                for broker, wanted in WANTED.items()
                for i in range(wanted // 5)
            ]
            second += 1
            over.wait((START.timestamp() + second) - datetime.now(UTC).timestamp())
            write_publishes(trace / f"{second}.json", sorted(rows))

    writer = threading.Thread(target=write)
    trace.mkdir()
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


class Cluster(NamedTuple):
    """Folders of the jobs."""

    folder: Path

    def job(self, broker: str) -> list[str]:
        folder = self.folder
        paths = options(input=folder / "trace", output=folder / "out", conf_dir=folder / "conf", broker=broker)
        return ["throttle", "--format", "json", *paths]

    def log(self, broker: str) -> Path:
        return self.folder / f"{broker}.log"

    def pid_file(self, broker: str) -> Path:
        return self.folder / f"{broker}.pid"

    def start(self, stack: ExitStack, broker: str) -> Any:
        environment = {"HEADGATE_PID_FILE": str(self.pid_file(broker))}
        return stack.enter_context(started(*self.job(broker), log=self.log(broker), **environment))

    def kill(self, broker: str) -> set[tuple[int, int, int]]:
        """The cuts that it had kept to send, by broker, life and number."""
        os.killpg(os.getpgid(int(self.pid_file(broker).read_text())), signal.SIGKILL)
        state = LoopStateStore(opened(f"{self.folder}/out/brokers/{broker}/quota_state", QUOTA_STATE, None)).load()
        assert state is not None
        waiting = map(Pending.of_plain, state["pending"])
        return {(one.sender.broker_id, one.sender.incarnation, one.cut.seq) for one in waiting}

    def asked(self, sql: str) -> list[dict[str, Any]]:
        names = ("rg_limits", "rg_members", "rg_usage")
        if not all((self.folder / "out" / name / "_delta_log").exists() for name in names):
            return []
        return query(sql, {name: DeltaTable(self.folder / "out" / name) for name in names}).to_pylist()

    def shares(self) -> dict[str, int]:
        """The newest limit of each broker that is up, in messages a second."""
        limits = self.asked('SELECT broker_id, "limit" FROM rg_limits WHERE class = 0 AND dimension = 0 ORDER BY epoch')
        members = self.asked("SELECT broker_id, name, state FROM rg_members ORDER BY version")
        newest = {row["broker_id"]: row["limit"] for row in limits}
        states = {row["broker_id"]: row for row in members}
        return {row["name"]: newest[id_] for id_, row in states.items() if row["state"] == "up" and id_ in newest}

    def await_shares(self, shares: dict[str, int]) -> None:
        last: list[dict[str, int]] = []

        def are_there() -> bool:
            last[:] = [self.shares()]
            return last == [shares]

        try:
            await_that(are_there, f"shares of {shares}", PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; there were {last}") from None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    write_conf(tmp_path / "conf", TEXT, broker=QUICK, groups=GROUPS)
    with traffic(tmp_path / "trace"):
        yield Cluster(tmp_path)


def check_reports(cluster: Cluster) -> None:
    """Of each life of a broker every cut is there, and once."""
    cuts = cluster.asked(
        "SELECT count(*) AS cuts, count(DISTINCT seq) AS numbers, min(seq) AS first, max(seq) AS last FROM "
        "(SELECT DISTINCT broker_id, incarnation, seq, publish_time FROM rg_usage) GROUP BY broker_id, incarnation"
    )
    twice = cluster.asked(
        "SELECT broker_id, incarnation, seq, group_id, class, kind FROM rg_usage "
        "GROUP BY broker_id, incarnation, seq, group_id, class, kind HAVING count(*) > 1"
    )
    assert [] == twice
    assert {1} == {life["first"] for life in cuts}
    assert [(life["last"],) * 2 for life in cuts] == [(life["cuts"], life["numbers"]) for life in cuts]


def one_job_for_all(cluster: Cluster) -> dict[str, int]:
    """The last shares of a job that takes the same trace in, once."""
    alone = cluster.folder / "alone"
    paths = options(input=cluster.folder / "trace", output=alone / "out", conf_dir=alone / "conf")
    write_conf(alone / "conf", f"[input]\nmax_files_per_trigger = 10\n{TEXT}", broker=QUICK, groups=GROUPS)
    done = run_job("throttle", "--once", "--format", "json", *paths)
    assert (0, "") == (done.returncode, done.stderr)
    control = query(
        "SELECT broker, messages_per_s FROM (SELECT broker, messages_per_s, row_number() OVER (PARTITION BY broker "
        "ORDER BY effective_time DESC, seq DESC) AS place FROM control WHERE source = 'quota') WHERE place = 1",
        {"control": DeltaTable(alone / "out" / "control")},
    )
    return {row["broker"]: row["messages_per_s"] for row in control.to_pylist() if row["broker"] is not None}


def run_with_kills(cluster: Cluster, kills: int, wait_s: Callable[[], float]) -> None:
    """Three jobs; the one of b1 is killed so often, each time `wait_s` after its shares are right."""
    kept: set[tuple[int, int, int]] = set()
    with ExitStack() as stack:
        jobs = {broker: cluster.start(stack, broker) for broker in WANTED}
        cluster.await_shares(SHARES)
        for _ in range(kills):
            threading.Event().wait(wait_s())
            kept |= cluster.kill("b1")
            cluster.await_shares(WITHOUT_B1)
            jobs["b1"] = cluster.start(stack, "b1")
            cluster.await_shares(SHARES)
        for broker, job in jobs.items():
            assert stopped(job) == 0, cluster.log(broker).read_text()
            await_line(cluster.log(broker), "rows in ")
    check_reports(cluster)
    sent = cluster.asked("SELECT DISTINCT broker_id, incarnation, seq FROM rg_usage")
    assert kept <= {tuple(row.values()) for row in sent}


@pytest.mark.long
def test_brokers_with_a_job_each_share_as_one_job_for_all_and_take_over_what_a_killed_one_had(cluster) -> None:
    run_with_kills(cluster, 1, lambda: 0.0)
    assert SHARES == one_job_for_all(cluster)


@pytest.mark.long
def test_twenty_kills_of_one_of_three_at_random_points_lose_and_double_no_report(cluster) -> None:
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    run_with_kills(cluster, 20, lambda: chosen.uniform(0, 2 * EPOCH_MS / 1000))
