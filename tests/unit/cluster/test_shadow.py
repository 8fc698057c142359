"""What a dry run and a shadow say and record, where nothing is in force."""

import json
from threading import Event

import pytest

from headgate.cluster.ledger import Ledger
from headgate.cluster.schemas import OF_ENFORCER
from headgate.cluster.shadow import Shadow
from headgate.tables.delta import Tables
from unit.cluster.enforced_cluster import DEAD, EnforcedCluster, tenant, text

SMALL, LARGE = "acme/a/1", "acme/b/2"
NAMES = ("acme", "calm", "worse")


@pytest.fixture
def cluster(tmp_path):
    """Three tenants with a quota of 100 messages a second each."""
    resources = [tenant(name, publishRateInMsgs=100) for name in NAMES]
    offered = {SMALL: (10, 10), LARGE: (90, 10), "calm/a/1": (50, 10), "worse/a/1": (20, 10), "worse/a/2": (70, 10)}
    return EnforcedCluster(tmp_path, resources, offered, [f"{name}/a" for name in NAMES]).dry()


def shadow(cluster, tables=None):
    """Takes in each round of the cluster."""
    found = Shadow(tables, DEAD, cluster.now_us, cluster.tell)
    decide = cluster.enforcer.round

    def round_(feed, now_us):
        looked = decide(feed, now_us)
        found.take(cluster.enforcer.enforced, looked, now_us)
        return looked

    cluster.enforcer.round = round_
    return found


def test_resources_are_told_with_the_time_for_which_they_would_have_been_held_worst_first(cluster):
    found = shadow(cluster)
    cluster.run(20)
    assert list(found.lines()) == ["none of 3 would have been held"]
    cluster.offered |= {LARGE: (300, 10), "worse/a/2": (300, 10)}
    cluster.run(5)
    cluster.offered[LARGE] = (90, 10)
    cluster.run(5)
    cluster.offered |= {"worse/a/1": (20, 10), "worse/a/2": (70, 10)}
    cluster.run(20)

    worse, acme, rest = found.lines()
    assert worse.startswith("tenant worse publish: would have been held 1")
    assert worse.endswith(" s of 50 s: persistent://worse/a/2 (10 s)")
    assert acme == f"tenant acme publish: would have been held 5 s of 50 s: persistent://{LARGE} (5 s)"
    assert rest == "1 more would not have been held"
    assert cluster.limits.writes == []


def test_what_would_be_pushed_is_told_and_recorded_when_it_changes_without_a_lease(cluster):
    tables = Tables(cluster.folder, OF_ENFORCER)
    shadow(cluster, tables)
    cluster.run(20)
    cluster.offered[LARGE] = (300, 10)
    cluster.run(30)

    acme = [row for row in cluster.rows("shadow") if row["resource"] == "tenant acme publish"]
    limits = [json.loads(row["after"])["messages"] for row in acme]
    assert limits == [100, 90]
    assert [row["before"] for row in acme] == [None, '{"messages": 100}']
    assert {(row["by"], row["epoch"], row["path"]) for row in acme} == {(DEAD, 0, "")}
    assert cluster.lines("acme") == [
        f"tenant acme publish: would push {limit} msg/s; {row['reason']}"
        for limit, row in zip(limits, acme, strict=True)
    ]
    assert acme[0]["reason"] == "the first limit"
    assert cluster.limits.writes == []


def test_rows_of_a_shadow_are_nothing_to_the_ledger(cluster):
    tables = Tables(cluster.folder, OF_ENFORCER)
    shadow(cluster, tables)
    cluster.run(3)
    assert cluster.rows("shadow") != []

    ledger = Ledger(tables, "elsewhere:1", lambda: cluster.now_us)
    assert ledger.open() == {}
    assert ledger.take(Event(), cluster.tell)  # at once: a shadow holds nothing
    cluster.offered[LARGE] = (300, 10)
    cluster.run(10)
    ledger.renew()  # and takes nothing from a holder
    assert ledger.open() == {}


def test_it_tells_each_hour_and_at_the_end(cluster):
    found = shadow(cluster)
    cluster.run(1)
    cluster.now_us += 3598 * 1_000_000
    cluster.run(1)
    last = "none of 3 would have been held"
    assert cluster.lines(last) == [last]
    cluster.run(1)
    found.end()
    assert cluster.lines(last) == [last, last]


def test_looks_at_several_topics_at_once_count_once(tmp_path):
    offered = {SMALL: (300, 10), LARGE: (300, 10)}
    cluster = EnforcedCluster(tmp_path, [tenant(publishRateInMsgs=100)], offered).dry()
    found = shadow(cluster)
    cluster.run(7)
    assert next(found.lines()) == (
        f"tenant acme publish: would have been held 7 s of 7 s: persistent://{SMALL} (7 s) and 1 more"
    )


def test_what_a_limit_in_force_lets_in_is_all_that_is_seen(tmp_path):
    cluster = EnforcedCluster(tmp_path, [tenant(publishRateInMsgs=100)], {SMALL: (300, 10)}).dry()
    cluster.limits.set["acme/a/in"] = text(50)
    found = shadow(cluster)
    cluster.run(7)
    assert list(found.lines()) == ["none of 1 would have been held"]
