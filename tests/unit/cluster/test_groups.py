"""Quotas of resource groups: which topics share one, where their limits are, and changes while it runs."""

import pytest

from headgate.cluster.groups import Groups
from headgate.cluster.shadow import Shadow
from headgate.conf.cluster import Rate
from headgate.core.clusters.demand import SECOND_US
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import ClusterError, TableError
from headgate.quota.tables.opened import opened_config
from unit.cluster.enforced_cluster import DEAD, EnforcedCluster, text

TENANT, NAMESPACE, TOPIC = AttachedTo.TENANT, AttachedTo.NAMESPACE, AttachedTo.TOPIC
ALONE = "persistent://acme/a/alone"
A, B, C = (f"acme/{name}/in" for name in "abc")


class Config:
    """What `headgate groups` writes."""

    def __init__(self, output):
        Groups(output, 0)  # creates the tables
        self.store, self.version = opened_config(output, QuotaSettings()), 0

    def write(self, *rows):
        read = self.store.read().version
        self.version = read + 1
        assert self.store.write([row(self.version) for row in rows], read)
        return self


def group(number, name, *rates, deleted=False):
    """rates: publish messages and bytes, dispatch messages and bytes."""
    rates = (*rates, *[None] * (4 - len(rates)))
    return lambda version: ResourceGroup(number, name, rates, deleted=deleted, version=version)


def attach(scope, resource, name):
    return lambda version: Attachment(scope, resource, name, version)


@pytest.fixture
def config(tmp_path):
    """gold: the tenant acme, without its namespace b, which is silver's, and one topic, which is lead's."""
    rows = [
        *(group(1, "gold", 100), group(2, "silver", 60, 6000, 30), group(3, "lead", 20), group(4, "idle", 1)),
        *(attach(TENANT, "acme", "gold"), attach(NAMESPACE, "acme/b", "silver"), attach(TOPIC, ALONE, "lead")),
        attach(TENANT, "gone", "nobody"),
    ]
    return Config(tmp_path).write(*rows)


class GroupCluster(EnforcedCluster):
    """Its resources are groups, which it looks at once a second."""

    def __init__(self, folder, offered):
        self.groups = Groups(folder, 1000 * SECOND_US)
        super().__init__(folder, self.groups.resources(), offered, ["acme/a", "acme/b", "acme/c"])

    def run(self, seconds):
        for _ in range(seconds):
            changed = self.groups.changed(self.now_us + SECOND_US, self.tell)
            if changed is not None:
                self.resources = changed
                self.enforcer.change(changed, self.now_us + SECOND_US)
            super().run(1)
        return self

    def of(self, name):
        return next(one for one in self.enforcer.enforced if one.name == name)


@pytest.fixture
def cluster(tmp_path, config):
    return GroupCluster(tmp_path, {"acme/a/1": (300, 10), "acme/a/alone": (300, 10), "acme/b/1": (300, 10)})


def test_resources_are_groups_that_are_attached_with_their_rates(tmp_path, config):
    found = {str(one): one for one in Groups(tmp_path, 0).resources()}
    assert {name: one.quotas for name, one in found.items()} == {
        "group gold": {Rate("in", "messages"): 100},
        "group silver": {Rate("in", "messages"): 60, Rate("in", "bytes"): 6000, Rate("out", "messages"): 30},
        "group lead": {Rate("in", "messages"): 20},
    }
    gold, silver, lead = found.values()
    assert (gold.tenants(), silver.tenants(), lead.tenants()) == (["acme"], ["acme"], [])


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("persistent://acme/a/1", "gold"),
        ("persistent://acme/b/1", "silver"),
        (ALONE, "lead"),
        (f"{ALONE}-partition-3", "lead"),
        ("persistent://other/a/1", None),
        ("persistent://gone/a/1", None),
        ("no topic", None),
    ],
)
def test_a_topic_is_charged_to_the_group_of_the_topic_or_namespace_or_tenant(tmp_path, config, topic, name):
    assert [one.name for one in Groups(tmp_path, 0).resources() if one.has(topic)] == ([name] if name else [])


def test_each_group_has_its_limit_on_its_namespaces_and_on_topics_by_themselves(cluster):
    cluster.start().run(2)
    assert cluster.limits.set == {
        A: text(100),
        C: text(100),
        B: text(60, 6000),
        "acme/b/out": text(30),
        f"{ALONE}/in": text(20),
    }
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == {}


def test_a_rate_that_changes_is_in_force_within_10_seconds(cluster, config):
    cluster.start().run(20)
    config.write(group(1, "gold", 40))
    cluster.run(10)
    limit = cluster.limits.limit(A, cluster.limits.set[A])
    assert limit.messages == pytest.approx(40, abs=2)
    assert cluster.limits.limit(B, cluster.limits.set[B]).messages == pytest.approx(60, abs=2)


def test_a_namespace_that_moves_gets_the_limit_of_its_new_group_and_never_none(cluster, config):
    cluster.start().run(20)
    config.write(attach(NAMESPACE, "acme/a", "silver"))
    for _ in range(10):
        cluster.run(1)
        assert A in cluster.limits.set
    messages, of_bytes = cluster.limits.limit(A, cluster.limits.set[A])
    assert messages == cluster.limits.limit(B, cluster.limits.set[B]).messages
    assert of_bytes is not None
    cluster.enforcer.release("released")
    assert cluster.limits.set == {}


def test_what_is_detached_is_put_back(cluster, config):
    cluster.limits.set[f"{ALONE}/in"] = text(9000)
    cluster.start().run(20)
    assert cluster.limits.limit("", cluster.limits.set[f"{ALONE}/in"]).messages < 9000
    cluster.offered["acme/a/alone"] = (5, 10)
    config.write(attach(TOPIC, ALONE, None), attach(NAMESPACE, "acme/b", None))
    cluster.run(10)
    assert cluster.limits.set[f"{ALONE}/in"] == text(9000)
    assert cluster.limits.set[B] == cluster.limits.set[A]
    assert [one.name for one in cluster.enforcer.enforced] == ["group gold publish"]


def test_what_is_detached_while_the_cluster_does_not_answer_is_put_back_when_it_does(cluster, config):
    cluster.start().run(20)
    config.write(attach(TENANT, "acme", None))
    cluster.limits.refused = {A, C}
    cluster.run(10)
    assert {A, C} <= cluster.limits.set.keys()
    assert cluster.lines("not put back") == [f"not put back at {path}: {path}: no answer in time" for path in (A, C)]
    cluster.limits.refused = set()
    cluster.run(1)
    assert not {A, C} & cluster.limits.set.keys()
    assert B in cluster.limits.set


def test_what_is_moved_while_namespaces_are_not_told_is_put_right_when_they_are(cluster, config):
    cluster.start().run(20)
    paths = cluster.limits.paths

    def fails(resource, direction):
        raise ClusterError("no answer in time")

    cluster.limits.paths = fails
    config.write(
        attach(NAMESPACE, "acme/c", "idle"), attach(NAMESPACE, "acme/b", None), group(4, "idle", None, None, 5)
    )
    cluster.run(10)
    assert C in cluster.limits.set
    cluster.limits.paths = paths
    cluster.run(10)
    assert C not in cluster.limits.set
    assert cluster.limits.set["acme/c/out"] == text(5)
    assert cluster.limits.set[B] == cluster.limits.set[A]


def test_a_group_that_is_deleted_leaves_its_topics_to_the_next_wider_one(cluster, config):
    cluster.start().run(20)
    config.write(group(2, "silver", deleted=True))
    cluster.run(10)
    assert cluster.limits.set[B] == cluster.limits.set[A]
    assert cluster.of("group gold publish").decision.used_per_s.messages <= 101


def test_a_topic_that_is_attached_later_gets_a_limit_of_its_own(cluster, config):
    cluster.start().run(20)
    config.write(attach(TOPIC, "persistent://acme/a/1", "lead"))
    cluster.run(10)
    both = ("persistent://acme/a/1/in", f"{ALONE}/in")
    assert [cluster.limits.limit("", cluster.limits.set[path]).messages for path in both] == pytest.approx(
        [10] * 2, abs=1
    )


def test_without_a_change_nothing_begins_anew(cluster):
    cluster.start().run(30)
    before = cluster.enforcer.enforced
    cluster.run(20)
    assert cluster.enforcer.enforced is before


def test_a_successor_keeps_limits_of_topics_by_themselves(cluster):
    cluster.start().run(20)
    before = dict(cluster.limits.set)
    cluster.start().run(1)
    assert cluster.limits.set.keys() == before.keys()
    assert cluster.rows("released") == []


def test_tables_that_cannot_be_read_are_told_once_and_groups_stay(cluster, config):
    cluster.start().run(3)
    before = cluster.enforcer.enforced

    def read():
        raise TableError("rg_groups has a row that is wrong")

    cluster.groups._store.read = read
    cluster.run(20)
    assert cluster.enforcer.enforced is before
    assert cluster.lines("groups stay") == ["groups stay as they are: rg_groups has a row that is wrong"]


def test_a_shadow_tells_of_groups(cluster):
    cluster.dry()
    found = Shadow(None, DEAD, cluster.now_us, cluster.tell)
    cluster.run(2)
    found.take(cluster.enforcer.enforced, list(cluster.take()), cluster.now_us)
    assert {line.partition(":")[0] for line in found.lines()} >= {"group gold publish", "group silver publish"}
    assert cluster.limits.writes == []
