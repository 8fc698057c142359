"""A real Pulsar broker: its counters in, a tenant's quota out, and everything put back, whoever is killed when."""

import json
import time
from pathlib import Path

import pytest

from cluster_processes import CONF, TIMEOUT_S, Tenant, again_and_again, offered
from headgate.cluster.http import Http
from headgate.cluster.ledger import SILENT_S
from headgate.cluster.pulsar_brokers import PulsarBrokers
from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.conf.cluster import load_cluster
from headgate.core.clusters.counters import Reading
from headgate.core.clusters.pushes import Limit
from integration.runs import await_that
from pulsar_standalone import Pulsar


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


@pytest.mark.long
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


@pytest.mark.long
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
            await_that(lambda: tenant.send("GET", topic)["publishThrottlingRateInMsg"] < 9000, enforce, 30)
            assert enforce.stop() == 0
        assert tenant.send("GET", topic) == rate


@pytest.mark.long
def test_a_topic_whose_limit_somebody_else_raises_again_and_again_is_not_enforceable(tenant: Tenant) -> None:
    """It is named within half a minute, and the others get what it leaves of the quota."""
    topic = f"persistent://{tenant.name}/a/1"
    rate = {"publishThrottlingRateInMsg": 9000, "publishThrottlingRateInByte": -1}
    with tenant.collect() as collect, offered(tenant, a_1=80), offered(tenant, b_2=200):
        collect.await_text("1 of 1 brokers")
        path = f"persistent/{tenant.name}/a/1/publishRate"
        tenant.send("POST", path, rate)
        with again_and_again(lambda: tenant.send("POST", path, rate)), tenant.enforce("--apply") as enforce:
            enforce.await_text(f"{topic} is above the limit; it is set once more")
            began_s = time.monotonic()
            enforce.await_text(f"{topic} is not enforceable: it goes on above its limit")
            assert time.monotonic() - began_s < 30
            await_that(lambda: 10 <= (tenant.limit(tenant.namespaces[1]) or 0) <= 25, enforce, TIMEOUT_S)
        assert tenant.enforce("--release").run() == 0
    assert tenant.limits() == [None, None]
    assert tenant.send("GET", path) == rate
    named = tenant.rows("enforced", "SELECT path FROM t WHERE action = 'not_enforceable'")
    assert named == [{"path": topic}]


@pytest.mark.long
def test_pulsar_does_not_count_what_is_published_over_rest(tenant: Tenant) -> None:
    """Nor limit it (#24229): docs/clusters.md says so as long as this holds."""
    tenant.send("PUT", f"persistent/{tenant.name}/a/1")
    schema = json.dumps({"name": "", "schema": "", "type": "STRING", "properties": {}})
    body = {"valueSchema": schema, "producerName": "rest", "messages": [{"payload": "x"}] * 20}
    for _ in range(5):
        answer = tenant.send("POST", f"topics/persistent/{tenant.name}/a/1", body, api="")
        assert len(answer["messagePublishResults"]) == 20
    brokers = PulsarBrokers(load_cluster(tenant.file))
    readings = brokers.look(brokers.brokers()[0]).readings
    assert readings[f"persistent://{tenant.name}/a/1", "in"] == Reading(0, 0, 0)


def test_what_cannot_be_connected_is_said(tenant: Tenant, pulsar_standalone: Pulsar) -> None:
    check = tenant.check()
    assert check.run() == 0
    assert f"namespaces/{tenant.name}/a/publishRate: no limit" in check.text
    assert ": version 4.0.8, " in check.text
    assert "out has no table enforced: no limits were set from there" in check.text
    tenant.set_limit(tenant.namespaces[0], 50)
    assert check.run() == 0
    assert "a/publishRate: 50 msg/s, the operator's, or headgate's: --output tells" in check.text
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
    after = limits.lowered(path, before, None, limit)
    limits.write(path, after)
    assert limits.read(path) == after
    assert json.loads(after).items() >= new.items()
    limits.write(path, before)
    assert limits.read(path) == before
    assert Http(conf).get(f"{conf.settings.admin_url}/admin/v2/{path}") == (old and json.loads(before))


def test_a_topic_without_a_limit_of_its_own_gets_no_more_than_its_namespace(tenant: Tenant) -> None:
    limits = PulsarLimits(load_cluster(tenant.file))
    wider = json.dumps({"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": 900}, sort_keys=True)
    own = limits.own_path(f"persistent://{tenant.name}/a/1", "in")

    assert limits.wider_path(own) == f"namespaces/{tenant.name}/a/publishRate"
    assert limits.wider_path(f"namespaces/{tenant.name}/a/publishRate") is None
    assert limits.lowered(own, None, wider, Limit(300)) is None
    assert json.loads(limits.lowered(own, None, wider, Limit(7))) == json.loads(wider) | {
        "publishThrottlingRateInMsg": 7
    }
