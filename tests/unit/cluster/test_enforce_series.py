"""What Prometheus scrapes of an enforcer."""

from prometheus_client import generate_latest

from headgate.cluster.enforce_series import EnforceSeries
from unit.cluster.enforced_cluster import EnforcedCluster, tenant

ACME = 'direction="in",resource="tenant acme"'


def scraped(series):
    """Values by name and labels."""
    lines = generate_latest(series.registry).decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_a_resource_is_told_with_all_that_was_decided_and_set(tmp_path):
    resources = [tenant(publishRateInMsgs=100, publishRateInBytes=100_000)]
    cluster = EnforcedCluster(tmp_path, resources, {"acme/a/1": (10, 10), "acme/b/2": (300, 10)}).start()
    cluster.limits.refused = {"acme/a/in"}
    series = EnforceSeries()
    series.take(cluster.enforcer.enforced)
    before = scraped(series)
    cluster.run(3)
    series.take(cluster.enforcer.enforced, cluster.now_us)

    assert before[f'headgate_enforce_quota_per_second{{{ACME},unit="messages"}}'] == 100
    assert not [name for name in before if "level" in name or "limit" in name or "timestamp" in name]
    now = scraped(series)
    messages, of_bytes = (
        {
            name: now[f'headgate_enforce_{name}_per_second{{{ACME},unit="{unit}"}}']
            for name in ("used", "quota", "level")
        }
        for unit in ("messages", "bytes")
    )
    assert messages == {"used": 100, "quota": 100, "level": 90}
    assert of_bytes == {"used": 1000, "quota": 100_000, "level": 100_000}
    assert now[f'headgate_enforce_limit_per_second{{{ACME},unit="messages"}}'] == 90
    counts = ("topics_held", "topics_not_enforceable", "places", "places_not_set", "pushes_total")
    assert [now[f"headgate_enforce_{name}{{{ACME}}}"] for name in counts] == [1, 0, 2, 1, 1]
    assert now["headgate_enforce_last_round_timestamp_seconds"] == 1003


def test_what_is_no_more_has_no_series(tmp_path):
    cluster = EnforcedCluster(tmp_path, [tenant(publishRateInMsgs=100)], {"acme/a/1": (300, 10)}).start().run(3)
    series = EnforceSeries()
    series.take(cluster.enforcer.enforced, cluster.now_us)
    cluster.enforcer.release("no counters")
    series.take(cluster.enforcer.enforced)

    told = scraped(series)
    assert not [name for name in told if "limit" in name or "used" in name]
    assert told["headgate_enforce_last_round_timestamp_seconds"] == 1003
    assert told[f"headgate_enforce_pushes_total{{{ACME}}}"] == 1

    series.take([])
    assert list(scraped(series)) == ["headgate_enforce_last_round_timestamp_seconds"]
