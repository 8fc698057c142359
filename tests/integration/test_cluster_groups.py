"""Quotas of resource groups on a real Pulsar broker, and what a shadow records there."""

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError

import pytest

from cluster_processes import ENVIRONMENT, TIMEOUT_S, Tenant, offered
from integration.runs import await_that
from prometheus_text import scraped
from pulsar_standalone import Pulsar
from real_broker import free_ports


@pytest.fixture
def tenant(pulsar_standalone: Pulsar, tmp_path: Path) -> Tenant:
    return Tenant(pulsar_standalone, tmp_path)


def groups(tenant: Tenant, *arguments: str) -> str:
    """The screen of `headgate groups`."""
    action, *rest = arguments
    command = [sys.executable, "-m", "headgate", "groups", action, str(tenant.folder / "out"), *rest]
    return subprocess.run(command, env=ENVIRONMENT, check=True, timeout=TIMEOUT_S, capture_output=True).stdout.decode()


def own_limit(tenant: Tenant, topic: str) -> int | None:
    try:
        found = tenant.send("GET", f"persistent/{topic}/publishRate")
    except HTTPError:
        return None
    return found and found["publishThrottlingRateInMsg"]


def test_groups_are_kept_on_namespaces_and_topics_and_changes_take_effect(tenant: Tenant) -> None:
    a, b = tenant.namespaces
    text = tenant.file.read_text()
    tenant.file.write_text(text.partition("[[resource]]")[0] + "groups = true\n")
    with (
        tenant.enforce("--apply") as enforce,
        tenant.collect() as collect,
        # Each on a connection of its own: a broker reads no more from one while any topic on it is above its limit.
        offered(tenant, a_1=300),
        offered(tenant, a_2=300),
        offered(tenant, b_1=300),
    ):
        collect.await_text("1 of 1 brokers")
        await_that((tenant.folder / "out" / "rg_attachments" / "_delta_log").exists, "tables", TIMEOUT_S)
        for name, rate in {"gold": "90", "silver": "60", "lead": "30"}.items():
            groups(tenant, "set", name, "--msg-publish-rate", rate)
        # The tenant comes last: else it may have all three topics until the others are read, and its cap rises slowly.
        for name, resource in {"lead": f"{a}/2", "silver": b, "gold": tenant.name}.items():
            groups(tenant, "attach", name, resource, "--unseen")

        def limits() -> list[int | None]:
            return [*tenant.limits(), own_limit(tenant, f"{a}/2")]

        await_that(lambda: limits() == pytest.approx([90, 60, 30], abs=2), enforce, TIMEOUT_S)
        groups(tenant, "detach", b)
        await_that(lambda: tenant.limit(b) == tenant.limit(a) != 90, enforce, TIMEOUT_S)
        assert enforce.stop() == 0
        assert limits() == [None, None, None]


def test_a_shadow_records_what_would_be_pushed_and_who_would_have_been_held(tenant: Tenant) -> None:
    sql = "SELECT action, epoch, after FROM t ORDER BY at_us"

    def pushed() -> int:
        """The last limit that would have been."""
        limit: int = json.loads(tenant.rows("enforced", sql)[-1]["after"])["messages"]
        return limit

    (port,) = free_ports(1)

    def round_s() -> float:
        """When the last one was decided on."""
        return scraped(f"http://127.0.0.1:{port}/metrics")["headgate_enforce_last_round_timestamp_seconds"][()]

    shadow = tenant.enforce("--shadow", "--metrics-port", str(port))
    with tenant.collect() as collect, offered(tenant, a_1=10, b_2=200), shadow as enforce:
        collect.await_text("1 of 1 brokers")
        enforce.await_text(f"tenant {tenant.name} publish: would push ")
        await_that(lambda: pushed() == pytest.approx(90, abs=4), "the level", TIMEOUT_S)
        looks = f"SELECT at_us FROM t WHERE at_us > {time.time_ns() // 1000}"  # it has begun, so they count
        await_that(lambda: len(tenant.rows("broker_looks", looks)) > 1, "looks", TIMEOUT_S)
        looked_s = round_s()
        await_that(lambda: round_s() > looked_s, "a round that has them", TIMEOUT_S)
        assert tenant.limits() == [None, None]
        assert enforce.stop() == 0
    assert f"tenant {tenant.name} publish: would have been held " in enforce.text
    assert f"persistent://{tenant.name}/b/2" in enforce.text
    assert {(row["action"], row["epoch"]) for row in tenant.rows("enforced", sql)} == {("shadow", 0)}
    released = tenant.enforce("--release")
    assert released.run() == 0, released.text
