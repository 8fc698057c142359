"""A real Pulsar broker whose admin API is sick, and enforcers that are killed: limits are put back exactly (3.3)."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, Literal

import pyarrow as pa
import pytest

from admin_proxy import AdminProxy, Answer
from cluster_processes import CONF, TIMEOUT_S, Process, Tenant, offered
from headgate.cluster.ledger import PUSH, SILENT_S, Ledger, Step
from headgate.cluster.running import clock, own_name
from headgate.cluster.schemas import OF_COLLECTOR, OF_ENFORCER
from headgate.tables.delta import Tables
from integration.runs import await_that
from pulsar_standalone import Pulsar
from real_broker import free_ports

FLOOD = 60
"""Messages a second to each namespace."""
HIGHER = {"publishThrottlingRateInMsg": 5000, "publishThrottlingRateInByte": 1_000_000}
LOWER = {"publishThrottlingRateInMsg": 20, "publishThrottlingRateInByte": -1}
"""The operator's: above what the quota gives at first, and between that and what a flood leaves."""
FIRST_PUSH, BOTH_PUSHES = 2, 5
"""Changes of the cluster: without traffic the operator's lower limit stays, under a flood it is lowered as well."""
LATE_S = 10
ENDED_WITHIN_S = 30
Killed = Literal["pushing", "at SIGTERM", "releasing"]
POINTS: list[tuple[Killed, int, Literal["before", "after"]]] = [
    *(("pushing", change, when) for change in range(1, BOTH_PUSHES + 1) for when in ("before", "after")),
    *(("at SIGTERM", change, when) for change in (1, 2, 3) for when in ("before", "after")),
    *(("releasing", change, when) for change in (1, 2) for when in ("before", "after")),
]
IN_SUITE = (("pushing", 2, "after"), ("releasing", 2, "before"))


class Faulty(Tenant):
    """Three namespaces: without a limit, with the operator's higher one, with the operator's lower one. Its enforcer
    asks the broker through a proxy.
    """

    def __init__(self, broker: Pulsar, folder: Path, proxy: AdminProxy, *others: str) -> None:
        super().__init__(broker, folder, 45, namespaces=["a", "b", "c", *others], admin_url=proxy.url)
        self.file.write_text(self.file.read_text().replace("[cluster]\n", "[cluster]\ntimeout_s = 2\n"))
        for namespace, rate in zip(self.namespaces[1:3], (HIGHER, LOWER), strict=True):
            self.send("POST", f"namespaces/{namespace}/publishRate", rate)
        self.operators = self.rates()

    def rates(self) -> dict[str, Any]:
        paths = [f"{name}/{rate}" for name in self.namespaces for rate in ("publishRate", "dispatchRate")]
        return {path: self.send("GET", f"namespaces/{path}") for path in paths}

    def flood(self):
        return offered(self, **{f"{name.rpartition('/')[2]}_1": FLOOD for name in self.namespaces})

    def await_limits(self, *namespaces: str) -> None:
        """Less than the operator's, in all of these."""
        whole = {name: self.operators[f"{name}/publishRate"] or HIGHER for name in namespaces or self.namespaces[:2]}

        def are_set() -> bool:
            found = {name: self.limit(name) for name in whole}
            return all(limit and limit < whole[name]["publishThrottlingRateInMsg"] for name, limit in found.items())

        await_that(are_set, "limits", TIMEOUT_S)

    def release(self) -> None:
        released = self.enforce("--release")
        assert released.run() == 0, released.text
        assert self.rates() == self.operators

    def ledger(self, name: str) -> Ledger:
        return Ledger(Tables(self.folder / "out", OF_ENFORCER), name, clock())


@pytest.fixture(scope="module")
def counted(pulsar_standalone: Pulsar, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with tables in `out`, into which a collector writes what all tenants' topics count."""
    folder = tmp_path_factory.mktemp("counted")
    with Tenant(pulsar_standalone, folder).collect() as collect:
        collect.await_text("1 of 1 brokers")
        yield folder
        assert collect.stop() == 0


@pytest.fixture
def proxy(pulsar_standalone: Pulsar) -> Iterator[AdminProxy]:
    with AdminProxy(pulsar_standalone.admin_url) as proxy:
        yield proxy


@pytest.fixture
def tenant(pulsar_standalone: Pulsar, counted: Path, proxy: AdminProxy) -> Faulty:
    return Faulty(pulsar_standalone, counted, proxy)


@pytest.mark.parametrize(
    ("killed", "change", "when"),
    [pytest.param(*one, marks=() if one in IN_SUITE else pytest.mark.long) for one in POINTS],
)
def test_release_puts_everything_back_whenever_a_process_was_killed(
    tenant: Faulty, proxy: AdminProxy, killed: Killed, change: int, when: Literal["before", "after"]
) -> None:
    enforce, release = tenant.enforce("--apply"), tenant.enforce("--release")
    proxy.stop_at(change if killed == "pushing" else 99, when, enforce.kill)
    with enforce:
        if killed != "pushing" or change > FIRST_PUSH:
            await_that(lambda: proxy.changes >= FIRST_PUSH, "the first push", TIMEOUT_S)
        with tenant.flood():
            if killed == "pushing":
                assert enforce.process.wait(TIMEOUT_S) == -signal.SIGKILL
            else:
                await_that(lambda: proxy.changes >= BOTH_PUSHES, "the second push", TIMEOUT_S)
                proxy.stop_at(change, when, (enforce if killed == "at SIGTERM" else release).kill)
            if killed == "at SIGTERM":
                assert enforce.stop() == -signal.SIGKILL
            elif killed == "releasing":
                enforce.kill()
                assert release.run() == -signal.SIGKILL
    proxy.go_on()
    left, opened = tenant.rates(), tenant.ledger("test").open()
    assert {f"namespaces/{path}" for path, rate in left.items() if rate != tenant.operators[path]} <= opened.keys()
    if (killed, change, when) == ("pushing", 1, "before"):
        assert left == tenant.operators, "the ledger comes first"
        assert len(opened) >= FIRST_PUSH
    tenant.release()
    assert tenant.ledger("test").open() == {}


def test_an_api_that_fails_all_changes_gets_the_limits_once_it_is_well(tenant: Faulty, proxy: AdminProxy) -> None:
    refused = []

    def fails(method: str, path: str) -> Answer | None:
        if method == "GET":
            return None
        refused.append(path)
        return Answer(500, b'{"reason": "no metadata store"}')

    proxy.refuse = fails
    with tenant.flood(), tenant.enforce("--apply") as enforce:
        enforce.await_text("500 no metadata store")
        assert len(refused) >= FIRST_PUSH
        assert tenant.rates() == tenant.operators
        proxy.well()
        tenant.await_limits()
        assert enforce.stop() == 0
    assert "Traceback" not in enforce.text
    assert tenant.rates() == tenant.operators


def test_namespaces_that_refuse_are_told_once_and_the_others_are_limited(
    pulsar_standalone: Pulsar, counted: Path, proxy: AdminProxy
) -> None:
    tenant = Faulty(pulsar_standalone, counted, proxy, "d")
    a, b, _, d = tenant.namespaces
    refused = []

    def refuse(method: str, path: str) -> Answer | None:
        if method == "GET" or not any(f"/{name}/" in path for name in (b, d)):
            return None
        refused.append(path)
        return Answer(403, b'{"reason": "not of the administrators"}')

    proxy.refuse = refuse
    with tenant.flood(), tenant.enforce("--apply") as enforce:
        tenant.await_limits(a)
        await_that(lambda: min(sum(f"/{name}/" in path for path in refused) for name in (b, d)) > 1, "again", TIMEOUT_S)
        for name in (b, d):
            said = f"not set at namespaces/{name}/publishRate: POST {proxy.url}/admin/v2/namespaces/{name}/publishRate"
            assert enforce.text.count(f"{said}: 403 not of the administrators") == 1, enforce.text
        assert enforce.stop() == 0, enforce.text
    assert tenant.rates() == tenant.operators


@pytest.mark.long
def test_an_api_that_answers_too_late_does_not_hold_the_enforcer_up(tenant: Faulty, proxy: AdminProxy) -> None:
    ledger = Tables(tenant.folder / "out", OF_ENFORCER)
    with tenant.enforce("--apply") as enforce:
        await_that(lambda: proxy.changes >= FIRST_PUSH, "the first push", TIMEOUT_S)
        proxy.answer_late(LATE_S)
        with tenant.flood():
            enforce.await_text("no answer in time")
            before = ledger.version("enforced")
            await_that(lambda: ledger.version("enforced") > before, "the lease", SILENT_S)
        stopped_s = time.monotonic()
        assert enforce.stop() == 1
        assert time.monotonic() - stopped_s < ENDED_WITHIN_S
        assert "run headgate enforce --release when the cluster answers" in enforce.text
    proxy.well()
    tenant.release()


@pytest.mark.parametrize("command", ["collect", "enforce", "release"])
def test_without_the_admin_api_nothing_starts(tenant: Faulty, command: str) -> None:
    (port,) = free_ports(1)
    tenant.file.write_text(CONF.format(f"http://127.0.0.1:{port}", tenant.name, 1))
    process = started(tenant, command)
    assert process.run() == 2
    assert f"http://127.0.0.1:{port}/admin/v2/brokers/configuration/runtime: Connection refused" in process.text
    assert "Traceback" not in process.text


@pytest.mark.parametrize("command", ["collect", "enforce", "release", "check"])
def test_the_output_of_another_cluster_is_refused(
    pulsar_standalone: Pulsar, tmp_path: Path, proxy: AdminProxy, command: str
) -> None:
    tenant = Faulty(pulsar_standalone, tmp_path, proxy)
    look = dict.fromkeys(OF_COLLECTOR["broker_looks"].names)
    look |= {"at_us": 1, "cluster": "elsewhere", "broker": "b", "seq": 1, "collector": "c", "took_ms": 1, "topics": 1}
    Tables(tmp_path / "out", OF_COLLECTOR).extend(
        "broker_looks", pa.Table.from_pylist([look], OF_COLLECTOR["broker_looks"])
    )
    ledger = tenant.ledger("elsewhere:1")
    assert ledger.take(Event(), str)
    ledger.write([Step("tenant acme", "namespaces/acme/a/publishRate", PUSH, None, "{}")])
    ledger.end()
    process = started(tenant, command)
    assert process.run() == 2
    assert "--output has counters of the cluster elsewhere, and " in process.text
    assert tenant.rates() == tenant.operators
    assert list(ledger.open()) == ["namespaces/acme/a/publishRate"]


def started(tenant: Tenant, command: str) -> Process:
    if command in {"collect", "check"}:
        return tenant.collect() if command == "collect" else tenant.check()
    return tenant.enforce("--apply" if command == "enforce" else "--release")


def test_a_signal_ends_the_wait_for_a_lease_and_nothing_is_changed(
    pulsar_standalone: Pulsar, tmp_path: Path, proxy: AdminProxy
) -> None:
    tenant = Faulty(pulsar_standalone, tmp_path, proxy)
    holder = tenant.ledger("elsewhere:1")
    assert holder.take(Event(), print)
    with tenant.enforce("--apply") as enforce:
        enforce.await_text(f"elsewhere:1 had limits set here; waiting {SILENT_S} s")
        signalled_s = time.monotonic()
        assert enforce.stop() == 0
        assert time.monotonic() - signalled_s < SILENT_S / 2
    assert tenant.rates() == tenant.operators
    assert [row["by"] for row in tenant.rows("enforced", "SELECT by FROM t")] == ["elsewhere:1"]


def test_a_namespace_that_is_deleted_or_made_anew_is_no_obstacle(tenant: Faulty) -> None:
    a, b, _ = tenant.namespaces
    with tenant.enforce("--apply") as enforce:
        tenant.await_limits()
        tenant.send("DELETE", f"namespaces/{a}")
        tenant.send("DELETE", f"namespaces/{b}")
        tenant.send("PUT", f"namespaces/{b}", {})
        assert enforce.stop() == 0, enforce.text
    assert tenant.limit(b) is None
    assert tenant.ledger("test").open() == {}
    assert a not in tenant.send("GET", f"namespaces/{tenant.name}")


@pytest.mark.long
def test_limits_that_cannot_be_put_back_without_counters_are_put_back_later(
    pulsar_standalone: Pulsar, tmp_path: Path, proxy: AdminProxy
) -> None:
    tenant = Faulty(pulsar_standalone, tmp_path, proxy)
    with tenant.enforce("--apply") as enforce:
        with tenant.collect() as collect:
            tenant.await_limits()
            collect.kill()
        proxy.refuse = lambda method, _path: None if method == "GET" else Answer(500)
        enforce.await_text("not put back at")
        proxy.well()
        await_that(lambda: tenant.rates() == tenant.operators, "put back", TIMEOUT_S)
        assert enforce.text.count("not put back at") == len(tenant.namespaces) - 1
        assert enforce.stop() == 0


@pytest.mark.long
def test_a_process_that_lost_the_lease_while_it_stood_still_touches_nothing(tenant: Faulty) -> None:
    with tenant.enforce("--apply") as old:
        tenant.await_limits()
        old.process.send_signal(signal.SIGSTOP)
        set_ = tenant.rates()
        with tenant.enforce("--apply") as new:
            name = f"{own_name().rpartition(':')[0]}:{new.process.pid}"
            has_lease = f"SELECT 1 FROM t WHERE by = '{name}' AND action = 'lease'"
            await_that(lambda: tenant.rows("enforced", has_lease), "the lease", 2 * SILENT_S)
            old.process.send_signal(signal.SIGTERM)
            old.process.send_signal(signal.SIGCONT)
            assert old.process.wait(TIMEOUT_S) == 2
            assert f"{name} has taken the lease" in old.text
            assert tenant.rates() == set_
            assert new.stop() == 0
    assert tenant.rates() == tenant.operators
