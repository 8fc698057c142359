"""A job a broker, real processes on one set of tables, live traffic: shares are those of one job for all, and what a
killed one had goes to the others until it is back. Jobs that start one after another share from the start.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from headgate.quota.outbox import Pending
from headgate.quota.tables.delta import opened
from headgate.quota.tables.loop_state import LoopStateStore
from headgate.quota.tables.schemas import QUOTA_STATE
from headgate.tables.query import query
from headgate.throttle.tables import throttle_tables
from integration.processes import await_line, options, run_job, started, stopped
from integration.runs import START, await_that, write_conf, write_publishes
from s3_server import Store

QUOTA = 100
WANTED = {"b1": 20, "b2": 90, "b3": 10}
"""Messages a second; a publish has 5."""
SHARES = {"b1": 20, "b2": 70, "b3": 10}
WITHOUT_B1 = {"b2": 90, "b3": 10}
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": QUOTA}}, "tenants": {"acme": "gold"}}
TEXT = "[operator]\nslots = 2\ngroup_limits = 'shared'\ntraffic = 'offered'\n[live]\nlive_lag_ms = 4000\n"
EPOCH_MS, STORE_EPOCH_MS = 4000, 10_000
QUICK = {"resourceGroupEpochMillis": EPOCH_MS, "resourceGroupSilentRounds": 3}
"""Batches of three jobs on two cores take seconds, and a quarter of an epoch holds whole publishes of everybody:
demand is exact. A broker is lost after fifteen epochs without a heartbeat.
"""
PATIENCE_S = 300
LOOK_S = 0.5
MOST = QUOTA * 1.05
APART = 137
"""One broker still has its 70, the others their safe shares already."""
"""The quota and the floors."""
BUSY = "SELECT broker_id FROM rg_usage WHERE group_id > 0 GROUP BY broker_id"
APART_S = 1.5
SENT = "SELECT DISTINCT broker_id, incarnation, seq FROM rg_usage"
OUTAGE_EPOCHS = 30
LATE_EPOCHS = 4
"""Event time is behind by the lag of live traffic and by batches, more or less where the outage begins and ends."""
RECOVERY_EPOCHS = 4
"""A report is as old as a batch and resourceGroupMaxStalenessRounds at most."""


@contextmanager
def traffic(trace: Path, ahead_s: Mapping[str, int], everybody_wants: Mapping[str, int] = WANTED) -> Iterator[None]:
    """A file for each second, at its end, with as many publishes as each broker is wanted to take, evenly spread.

    ahead_s: by how much the clocks of brokers are ahead just then.
    """
    over = threading.Event()

    def write() -> None:
        second = int((datetime.now(UTC) - START).total_seconds())
        while not over.is_set():
            rows = [
                (second + ahead_s.get(broker, 0) + (i + 0.5) * 5 / wanted, broker, f"persistent://acme/shop/{broker}")
                for broker, wanted in everybody_wants.items()
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
    """Folders of the jobs, by how many seconds the clocks of brokers are ahead, and where the tables are."""

    folder: Path
    ahead_s: dict[str, int]
    output: str

    def job(self, broker: str) -> list[str]:
        folder = self.folder
        paths = options(input=folder / "trace", output=self.output, conf_dir=folder / "conf", broker=broker)
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
        state = LoopStateStore(opened(f"{self.output}/brokers/{broker}/quota_state", QUOTA_STATE, None)).load()
        assert state is not None
        waiting = map(Pending.of_plain, state["pending"])
        return {(one.sender.broker_id, one.sender.incarnation, one.cut.seq) for one in waiting}

    def asked(self, sql: str) -> list[dict[str, Any]]:
        names = [name for name in ("rg_limits", "rg_members", "rg_usage") if name in sql]
        if not all(DeltaTable.is_deltatable(f"{self.output}/{name}") for name in names):
            return []
        return query(sql, {name: DeltaTable(f"{self.output}/{name}") for name in names}).to_pylist()

    def limits(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of rg_limits about messages of each broker that is not lost, the newest last."""
        limits = self.asked("SELECT * FROM rg_limits WHERE class = 0 AND dimension = 0 ORDER BY epoch")
        members = self.asked("SELECT broker_id, name, state FROM rg_members ORDER BY version")
        newest = {row["broker_id"]: row for row in members}
        names = {id_: row["name"] for id_, row in newest.items() if row["state"] != "lost"}
        found: dict[str, list[dict[str, Any]]] = {}
        for row in limits:
            if row["broker_id"] in names:
                found.setdefault(names[row["broker_id"]], []).append(row)
        return found

    def limits_by_epoch(self) -> dict[int, dict[str, int]]:
        """What each broker had at the end of every epoch, up to the newest report."""
        changes: dict[int, dict[str, int]] = {}
        for broker, rows in self.limits().items():
            for row in rows:
                changes.setdefault(row["epoch"], {})[broker] = row["limit"]
        held = changes.pop(0, {})  # what a job had before its first batch
        found = {}
        for epoch in range(min(changes), self.epoch() + 1):
            held |= changes.get(epoch, {})
            found[epoch] = dict(held)
        return found

    def epoch(self) -> int:
        """The newest in which anything was reported."""
        newest: int = self.asked("SELECT max(epoch) AS newest FROM rg_usage")[0]["newest"]
        return newest

    def reported(self) -> int:
        """The newest epoch of which every broker has said something."""
        newest = self.asked("SELECT max(epoch) AS newest FROM rg_usage GROUP BY broker_id")
        return min(row["newest"] for row in newest)

    def await_steady(self, shares: dict[str, int], epochs: int) -> range:
        """So many epochs from now on in which every broker reported, and had its share."""
        since, steady = self.epoch(), range(0)

        def is_steady() -> bool:
            nonlocal steady
            steady = range(self.reported() - epochs, self.reported())
            limits = self.limits_by_epoch()
            return steady.start > since and all(limits[epoch] == shares for epoch in steady)

        await_that(is_steady, f"{epochs} epochs with shares of {shares}", PATIENCE_S, LOOK_S)
        return steady

    def shares(self) -> dict[str, int]:
        """The newest limit of each broker that is not lost, in messages a second."""
        return {broker: rows[-1]["limit"] for broker, rows in self.limits().items()}

    def life(self, broker: str) -> int:
        """Of the broker's newest report."""
        lives = "SELECT max(rg_usage.incarnation) AS life FROM rg_usage JOIN rg_members USING (broker_id)"
        life: int = self.asked(f"{lives} WHERE name = '{broker}'")[0]["life"]
        return life

    def has_begun_after(self, broker: str, life: int) -> bool:
        return self.life(broker) > life

    @contextmanager
    def without(self, table: str) -> Iterator[None]:
        """A table that nobody can read or write: a file is in its place."""
        place, away = Path(self.output) / table, self.folder / f"{table}.away"
        place.rename(away)
        place.write_text("")
        try:
            yield
        finally:
            place.unlink()
            away.rename(place)

    def await_shares(self, shares: dict[str, int]) -> None:
        last: list[dict[str, int]] = []

        def are_there() -> bool:
            last[:] = [self.shares()]
            return last == [shares]

        try:
            await_that(are_there, f"shares of {shares}", PATIENCE_S, LOOK_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; there were {last}") from None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    write_conf(tmp_path / "conf", TEXT, broker=QUICK, groups=GROUPS)
    made = Cluster(tmp_path, {}, f"{tmp_path}/out")
    with traffic(tmp_path / "trace", made.ahead_s):
        yield made


@pytest.mark.long
def test_jobs_that_start_one_after_another_have_the_quota_among_them_from_the_epoch_in_which_all_are_up(
    tmp_path: Path,
) -> None:
    """Everybody wants more than its part, so no limit moves but for who is up. tests/unit/quota_loop/test_starts.py has
    this in one process.
    """
    write_conf(tmp_path / "conf", TEXT, broker=QUICK, groups=GROUPS)
    cluster = Cluster(tmp_path, {}, f"{tmp_path}/out")
    with traffic(tmp_path / "trace", {}, dict.fromkeys(WANTED, QUOTA)), ExitStack() as stack:
        jobs = {}
        for broker in WANTED:
            jobs[broker] = cluster.start(stack, broker)
            threading.Event().wait(APART_S)
        await_that(lambda: len(cluster.asked(BUSY)) == len(WANTED), "traffic of everybody", PATIENCE_S, LOOK_S)
        since = cluster.epoch()
        await_that(lambda: cluster.reported() >= since + 2, "reports of everybody", PATIENCE_S, LOOK_S)
        limits = cluster.limits_by_epoch()
        for broker, job in jobs.items():
            assert stopped(job) == 0, cluster.log(broker).read_text()
    lives = cluster.asked("SELECT name, incarnation FROM rg_members WHERE state = 'up'")
    assert sorted(WANTED) == sorted(row["name"] for row in lives)
    all_up = max(row["incarnation"] for row in lives) // EPOCH_MS
    assert {} == {epoch: held for epoch, held in limits.items() if epoch >= all_up and sum(held.values()) > MOST}
    assert "quotas are shared by 3 members: b1 (this job), b2, b3" in cluster.log("b1").read_text()


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
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    control = query(
        "SELECT broker, messages_per_s FROM (SELECT broker, messages_per_s, row_number() OVER (PARTITION BY broker "
        "ORDER BY effective_time DESC, seq DESC) AS place FROM control WHERE source = 'quota') WHERE place = 1",
        {"control": DeltaTable(alone / "out" / "control")},
    )
    return {row["broker"]: row["messages_per_s"] for row in control.to_pylist() if row["broker"] is not None}


def run_with_kills(cluster: Cluster, kills: int, wait_s: Callable[[], float]) -> None:
    """Three jobs; the one of b1 is killed so often, each time `wait_s` after its shares are right.

    The first time, and every other after, it stays away until the others have its share; else it is started at once.
    """
    kept: set[tuple[int, int, int]] = set()
    with ExitStack() as stack:
        jobs = {broker: cluster.start(stack, broker) for broker in WANTED}
        cluster.await_shares(SHARES)
        since = cluster.epoch()
        for number in range(kills):
            threading.Event().wait(wait_s())
            life = cluster.life("b1")
            kept |= cluster.kill("b1")
            if number % 2 == 0:
                cluster.await_shares(WITHOUT_B1)
            jobs["b1"] = cluster.start(stack, "b1")
            await_that(partial(cluster.has_begun_after, "b1", life), "a new life of b1", PATIENCE_S, LOOK_S)
            cluster.await_shares(SHARES)
        for broker, job in jobs.items():
            assert stopped(job) == 0, cluster.log(broker).read_text()
            await_line(cluster.log(broker), "rows in ")
    check_reports(cluster)
    assert kept <= {tuple(row.values()) for row in cluster.asked(SENT)}
    limits = cluster.limits_by_epoch()
    sums = [held["b2"] + held["b3"] for epoch, held in limits.items() if epoch > since]
    assert sum(limit > MOST for limit in sums) <= 2 * kills  # whoever comes or goes is noticed an epoch apart


@pytest.mark.long
def test_brokers_with_a_job_each_share_as_one_job_for_all_and_take_over_what_a_killed_one_had(cluster) -> None:
    run_with_kills(cluster, 1, lambda: 0.0)
    assert SHARES == one_job_for_all(cluster)


@pytest.mark.long
def test_jobs_whose_tables_are_on_a_store_share_there_and_take_over_what_a_killed_one_had(
    at_store: Store, tmp_path: Path
) -> None:
    """Batches there take 4 s and more, so an epoch is longer."""
    write_conf(tmp_path / "conf", TEXT, broker=QUICK | {"resourceGroupEpochMillis": STORE_EPOCH_MS}, groups=GROUPS)
    cluster = Cluster(tmp_path, {}, at_store.address("brokers"))
    with traffic(tmp_path / "trace", cluster.ahead_s):
        run_with_kills(cluster, 1, lambda: 0.0)


@pytest.mark.long
def test_twenty_kills_of_one_of_three_at_random_points_lose_and_double_no_report(cluster) -> None:
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    run_with_kills(cluster, 20, lambda: chosen.uniform(0, 2 * EPOCH_MS / 1000))


@contextmanager
def three_jobs(cluster: Cluster) -> Iterator[None]:
    """Three jobs at the shares that they should have before the block and after it; each report is there once."""
    with ExitStack() as stack:
        jobs = {broker: cluster.start(stack, broker) for broker in WANTED}
        cluster.await_shares(SHARES)
        yield
        stable = cluster.await_steady(SHARES, 5)
        for broker, job in jobs.items():
            assert stopped(job) == 0, cluster.log(broker).read_text()
    check_reports(cluster)
    check_enforced(cluster, stable)


def check_enforced(cluster: Cluster, epochs: range) -> None:
    """In these epochs, whose limits did not change, each broker let in what they say: b2 wants more."""
    seconds = range(epochs.start * EPOCH_MS // 1000, epochs.stop * EPOCH_MS // 1000)
    for broker, share in SHARES.items():
        usage = throttle_tables(f"{cluster.output}/brokers/{broker}").read("topic_usage").to_pylist()
        let_in = sum(row["admitted_messages"] for row in usage if row["event_time"].timestamp() in seconds)
        assert abs(let_in / len(seconds) - share) <= share / 10


def epoch_now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000) // EPOCH_MS


@pytest.mark.long
def test_while_nobody_can_read_the_usage_table_limits_sum_to_the_quota_and_the_floors(cluster) -> None:
    """But for one epoch: who read last a moment before a broker's last report takes it for silent before it does."""
    with three_jobs(cluster):
        with cluster.without("rg_usage"):
            away = epoch_now()
            await_that(lambda: epoch_now() > away + OUTAGE_EPOCHS, "the end of the outage", PATIENCE_S, LOOK_S)
        back = epoch_now()
    limits = cluster.limits_by_epoch()
    beyond = [epoch for epoch, held in limits.items() if away <= epoch < back and sum(held.values()) > MOST]
    safe = [epoch for epoch, held in limits.items() if sorted(held.values()) == [33, 33, 34]]
    assert list(range(safe[0], safe[-1] + 1)) == safe
    assert OUTAGE_EPOCHS - QUICK["resourceGroupSilentRounds"] - LATE_EPOCHS <= len(safe)
    assert len(beyond) <= 1
    assert all(sum(limits[epoch].values()) <= APART for epoch in beyond)
    assert back + RECOVERY_EPOCHS >= min(epoch for epoch, held in limits.items() if epoch >= back and held == SHARES)


@pytest.mark.long
def test_brokers_that_are_all_killed_and_started_again_come_back_to_their_shares(cluster) -> None:
    with ExitStack() as stack:
        for broker in WANTED:
            cluster.start(stack, broker)
        cluster.await_shares(SHARES)
        lives = {broker: cluster.life(broker) for broker in WANTED}
        kept = set().union(*(cluster.kill(broker) for broker in WANTED))
    with three_jobs(cluster):
        await_that(lambda: all(map(cluster.has_begun_after, lives, lives.values())), "new lives", PATIENCE_S, LOOK_S)
    assert kept <= {tuple(row.values()) for row in cluster.asked(SENT)}


@pytest.mark.long
def test_who_is_less_than_an_epoch_off_shares_and_who_is_further_off_is_silent_until_its_clock_is_right(
    cluster,
) -> None:
    write_conf(cluster.folder / "conf", TEXT, broker=QUICK | {"resourceGroupSilentRounds": 6}, groups=GROUPS)
    cluster.ahead_s["b3"] = EPOCH_MS // 2000

    def are_silent() -> bool:
        limits = cluster.limits()
        return [limits.get(broker, [{}])[-1].get("silent") for broker in ("b2", "b3")] == [1, 2]

    with three_jobs(cluster):
        cluster.ahead_s["b3"] = 6 * EPOCH_MS // 1000
        await_that(are_silent, "silence", PATIENCE_S, LOOK_S)
        shares = cluster.shares()
        del cluster.ahead_s["b3"]
    assert MOST >= sum(shares.values())
