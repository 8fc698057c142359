"""What an enforcer sets, says and writes down, round by round."""

from threading import Event

import pytest

from headgate.cluster.enforce_command import lines
from headgate.cluster.ledger import SILENT_S, Ledger
from headgate.cluster.schemas import OF_ENFORCER
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import NONE
from headgate.errors import ClusterError
from headgate.tables.delta import Tables
from unit.cluster.enforced_cluster import DEAD, EnforcedCluster, tenant, text

A, B = "acme/a/in", "acme/b/in"
SMALL, LARGE = "acme/a/1", "acme/b/2"


@pytest.fixture
def cluster(tmp_path):
    """A quota of 100 messages a second; one topic wants a tenth of it, one three times as much."""
    offered = {SMALL: (10, 10), LARGE: (300, 10)}
    return EnforcedCluster(tmp_path, [tenant(publishRateInMsgs=100)], offered)


def test_the_first_round_sets_one_limit_on_all_namespaces(cluster):
    cluster.start().run(1)
    assert cluster.limits.set == {A: text(90), B: text(90)}
    assert cluster.said == [(1, "tenant acme publish: push 90 msg/s; the first limit")]
    assert [(row["path"], row["before"], row["after"]) for row in cluster.rows("push")] == [
        (A, None, text(90)),
        (B, None, text(90)),
    ]


def test_nothing_is_set_before_counters_come(cluster):
    cluster.offered.clear()
    cluster.start().run(5)
    assert cluster.limits.writes == []


def test_a_namespace_that_is_created_later_gets_the_limit_in_force(cluster):
    cluster.start().run(20)
    cluster.limits.namespaces.append("acme/c")
    in_force = cluster.enforced.quota.in_force
    cluster.run(30)
    assert cluster.limits.set["acme/c/in"] == cluster.limits.set[A] == text(*in_force)
    assert [row["before"] for row in cluster.rows("push") if row["path"] == "acme/c/in"] == [None]
    assert cluster.lines("acme/c") == []


def test_what_is_in_the_way_later_gets_the_limits_put_back_until_it_is_gone(cluster):
    cluster.start().run(5)
    cluster.limits.in_the_way = "acme"
    cluster.run(40)
    assert cluster.limits.set == {}
    there = "tenant acme: another limit is there"
    assert cluster.lines(there) == [f"tenant acme publish: {there}; until then headgate limits it no more"]
    assert cluster.lines("enforceable") == cluster.lines("once more") == []
    cluster.limits.in_the_way = None
    cluster.run(10)
    assert cluster.limits.set == {A: text(90), B: text(90)}
    assert cluster.lines("this is over") == [f"tenant acme publish: this is over: {there}"]


def test_a_lower_limit_of_the_operators_stays_and_is_told(cluster):
    cluster.limits.set[A] = text(30)
    cluster.start().run(1)
    assert cluster.limits.set == {A: text(30), B: text(90)}
    (line,) = lines(cluster.enforced)
    assert "in force 90 msg/s on 1 of 2; a lower limit of the operator's on 1; " in line


def test_a_limit_that_was_removed_while_nobody_is_above_it_is_set_again(cluster):
    cluster.offered = {SMALL: (10, 10)}
    cluster.start().run(20)
    del cluster.limits.set[B]
    cluster.run(30)
    assert cluster.limits.set == {A: text(100), B: text(100)}


def test_a_limit_that_was_removed_is_set_again_also_beside_a_place_that_fails(cluster):
    cluster.offered = {SMALL: (10, 10)}
    cluster.start().run(20)
    cluster.limits.refused = {A}
    del cluster.limits.set[B]
    cluster.run(31)
    assert cluster.limits.set[B] == text(100)


def test_what_could_not_be_read_for_a_moment_and_is_there_is_no_push(cluster):
    cluster.offered = {SMALL: (10, 10)}
    cluster.start().run(20)
    pushes, writes = list(cluster.enforced.quota._pushes), len(cluster.limits.writes)
    cluster.limits.refused = {A}
    cluster.run(31)
    cluster.limits.refused = set()
    cluster.run(10)
    assert (pushes, writes) == (cluster.enforced.quota._pushes, len(cluster.limits.writes))


def test_a_namespace_that_is_deleted_is_forgotten(cluster):
    cluster.limits.refused = {B}
    cluster.start().run(5)
    assert list(cluster.enforced.not_set) == [B]
    cluster.limits.namespaces.remove("acme/b")
    cluster.run(30)
    assert (cluster.enforced.paths, cluster.enforced.not_set) == ([A], {})


def test_a_place_that_failed_is_told_once_and_tried_again_each_5_seconds(cluster):
    cluster.limits.refused = {A}
    cluster.start().run(13)
    assert A not in cluster.limits.set
    assert cluster.lines("not set") == [f"tenant acme publish: not set at {A}: {A}: no answer in time"]
    cluster.limits.refused = set()
    cluster.run(5)
    assert cluster.limits.set[A] == cluster.limits.set[B]
    assert cluster.enforced.not_set == {}
    assert cluster.rows("push")[-1]["reason"] == "tried again"


def test_a_topic_above_its_limit_is_named_after_15_s_and_the_others_share_what_is_left(cluster):
    cluster.offered = {SMALL: (100, 10), LARGE: (100, 10)}
    cluster.start().run(5)
    assert cluster.limits.set == {A: text(50), B: text(50)}
    ignoring = f"persistent://{LARGE}"
    cluster.ignoring = {ignoring}
    cluster.offered[LARGE] = (400, 10)
    cluster.offered[SMALL] = (10, 10)
    cluster.run(40)

    named = f"tenant acme publish: {ignoring} is not enforceable: it goes on above its limit "
    above = [(second, line) for second, line in cluster.said if "above" in line]
    assert [line for _, line in above] == [
        f"tenant acme publish: {ignoring} is above the limit; it is set once more",
        f"{named}(a broker that ignores it, or somebody else who sets a higher one)",
    ]
    assert above[1][0] - above[0][0] == 15
    assert [(row["resource"], row["path"], row["reason"]) for row in cluster.rows("not_enforceable")] == [
        ("tenant acme publish", ignoring, "above its limit")
    ]
    assert cluster.enforced.not_enforceable == {ignoring}
    assert cluster.enforced.decision.level == Limit(0)
    assert list(lines(cluster.enforced))[1] == f"tenant acme publish: not enforceable: {ignoring}"

    cluster.ignoring = set()
    cluster.run(30)
    assert cluster.enforced.not_enforceable == frozenset()
    assert cluster.lines("keeps to its limit again") == [f"tenant acme publish: {ignoring} keeps to its limit again"]


def test_a_topic_with_a_limit_of_its_own_is_held_there_and_gets_it_back(cluster):
    own = f"persistent://{LARGE}/in"
    cluster.limits.set[own] = text(9000)
    cluster.start().run(20)
    assert cluster.limits.set[own] == cluster.limits.set[B]
    assert cluster.lines("once more") == [
        f"tenant acme publish: persistent://{LARGE} is above the limit; it is set once more"
    ]
    assert cluster.rows("not_enforceable") == []
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == {own: text(9000)}


def test_a_partition_is_held_by_the_limit_that_its_topic_has(cluster):
    own, partition = f"persistent://{LARGE}/in", f"{LARGE}-partition-0"
    cluster.limits.set[own] = text(9000)
    cluster.offered = {partition: (300, 10)}
    cluster.ignoring = {f"persistent://{partition}"}
    cluster.start().run(5)
    assert cluster.limits.set[own] == text(100)


def test_a_successor_goes_on_with_the_limits_of_a_killed_process_and_puts_the_operators_back(cluster):
    cluster.limits.set[B] = text(5000)
    cluster.start().run(10)
    left, written = dict(cluster.limits.set), len(cluster.limits.writes)
    cluster.start()
    assert cluster.enforced.quota.in_force == cluster.limits.limit(A, left[A])
    cluster.run(1)
    assert cluster.limits.set == left
    assert len(cluster.limits.writes) == written
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == {B: text(5000)}


def test_a_successor_puts_back_what_is_of_no_resource_of_its_own_and_finds_topics_above_anew(cluster):
    own = f"persistent://{LARGE}/in"
    cluster.limits.set[own] = text(9000)
    cluster.start().run(20)
    cluster.limits.namespaces.remove("acme/a")
    cluster.start().run(1)
    assert set(cluster.limits.set) == {own, B}
    assert cluster.limits.set[own] == text(9000)
    cluster.run(20)
    assert cluster.limits.set[own] == cluster.limits.set[B]
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == {own: text(9000)}


@pytest.mark.parametrize("is_written", [True, False])
def test_a_push_that_was_killed_between_ledger_and_cluster_is_put_back(cluster, is_written):
    cluster.limits.set[B] = text(5000)
    write = cluster.limits.write

    def killed(path, value):
        if path == A or is_written:
            write(path, value)
        raise KeyboardInterrupt

    cluster.limits.write = killed
    cluster.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(1)
    cluster.limits.write = write
    cluster.start().enforcer.release("released")
    assert cluster.limits.set == {B: text(5000)}


def test_release_begins_anew_and_the_next_round_sets_limits_again(cluster):
    cluster.start().run(5)
    assert cluster.enforcer.release("no counters") == {}
    assert cluster.limits.set == {}
    assert {row["reason"] for row in cluster.rows("released")} == {"no counters"}
    assert cluster.enforced.quota.in_force == NONE
    cluster.run(1)
    assert cluster.limits.set == {A: text(90), B: text(90)}


def test_what_cannot_be_put_back_is_returned_and_stays_open(cluster):
    cluster.start().run(5)
    cluster.limits.refused = {A}
    assert cluster.enforcer.release("released") == {A: f"{A}: no answer in time"}
    assert cluster.limits.set == {A: text(90)}
    assert list(cluster.ledger.open()) == [A]
    cluster.limits.refused = set()
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == cluster.ledger.open() == {}


def test_publish_and_dispatch_have_limits_and_lines_of_their_own(tmp_path):
    resources = [tenant(publishRateInMsgs=100, dispatchRateInMsgs=50)]
    offered = {(LARGE, "in"): (300, 10), (LARGE, "out"): (300, 10)}
    cluster = EnforcedCluster(tmp_path, resources, offered).start().run(3)
    published, dispatched = text(100), text(50)
    assert cluster.limits.set == {A: published, B: published, "acme/a/out": dispatched, "acme/b/out": dispatched}
    publish, dispatch = cluster.enforcer.enforced
    held = f"held: persistent://{LARGE}"
    assert list(lines(publish)) == [
        f"tenant acme publish: uses 100 msg/s of 100 msg/s; level 100 msg/s; in force 100 msg/s on 2 of 2; {held}"
    ]
    assert list(lines(dispatch)) == [
        f"tenant acme dispatch: uses 50 msg/s of 50 msg/s; level 50 msg/s; in force 50 msg/s on 2 of 2; {held}"
    ]


def test_messages_and_bytes_are_each_held_by_the_unit_that_binds(tmp_path):
    offered = {SMALL: (300, 10), LARGE: (40, 1000)}
    resources = [tenant(publishRateInMsgs=100, publishRateInBytes=20_000)]
    cluster = EnforcedCluster(tmp_path, resources, offered).start().run(60)
    messages, of_bytes = cluster.enforced.quota.in_force
    assert cluster.limits.set[A] == text(messages, of_bytes)
    used = cluster.enforced.decision.used_per_s
    assert 70 <= used.messages <= 101  # the mean, rounded up
    assert 17_000 <= used.bytes <= 20_000
    assert cluster.enforced.decision.held == {f"persistent://{SMALL}", f"persistent://{LARGE}"}
    line = next(lines(cluster.enforced))
    assert f"of 100 msg/s and 20,000 B/s; level {cluster.enforced.decision.level.messages:,} msg/s and " in line


class Patience:
    """A wait in which nothing happens."""

    def wait(self, seconds):
        assert seconds == SILENT_S
        return False


def test_a_process_whose_lease_was_taken_stops_and_leaves_limits_alone(cluster):
    cluster.start("elsewhere:1").run(1)
    successor = Ledger(Tables(cluster.folder, OF_ENFORCER), "elsewhere:2", lambda: cluster.now_us)
    assert successor.take(Patience(), cluster.tell)
    before = dict(cluster.limits.set)
    cluster.offered[SMALL] = (80, 10)
    with pytest.raises(ClusterError, match="elsewhere:2 has taken the lease of this --output; this process stops"):
        cluster.run(30)
    assert cluster.limits.set == before
    cluster.now_us += 10_000_000
    with pytest.raises(ClusterError, match="elsewhere:2 has taken the lease"):
        cluster.ledger.renew()


def test_a_holder_that_speaks_while_another_waits_keeps_its_lease(cluster):
    cluster.start("elsewhere:1").run(1)

    class Speaks:
        def wait(self, _):
            cluster.now_us += 11_000_000
            cluster.ledger.renew()
            return False

    second = Ledger(Tables(cluster.folder, OF_ENFORCER), DEAD, lambda: cluster.now_us)
    with pytest.raises(ClusterError, match="elsewhere:1 enforces limits with this --output, and is alive"):
        second.take(Speaks(), cluster.tell)
    cluster.ledger.end()
    assert second.take(Event(), cluster.tell)


@pytest.mark.parametrize(
    ("operators", "held_at", "put_back"),
    [
        pytest.param(text(9000), 90, text(9000), id="raised"),
        pytest.param(text(40), 40, text(40), id="lowered"),
        pytest.param(None, 90, None, id="removed"),
    ],
)
def test_a_limit_that_the_operator_changes_meanwhile_bounds_ours_and_stays_at_the_end(
    cluster, operators, held_at, put_back
):
    cluster.limits.set[B] = text(5000)
    cluster.start().run(10)
    cluster.limits.set.pop(B)
    if operators is not None:
        cluster.limits.set[B] = operators
    cluster.run(30)
    assert cluster.limits.limit(B, cluster.limits.set[B]).messages == pytest.approx(held_at, abs=4)
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set.get(B) == put_back


def test_a_limit_of_the_operator_below_the_level_is_never_raised(cluster):
    cluster.limits.set[B] = text(20)
    cluster.start().run(30)
    assert cluster.limits.set[B] == text(20)
    assert [row["path"] for row in cluster.rows("push") if row["path"] == B] == []
    assert cluster.enforcer.release("released") == {}
    assert cluster.limits.set == {B: text(20)}


def test_a_resource_that_is_not_there_is_refused_at_the_start_and_told_later(cluster):
    def gone(resource, direction):
        raise ClusterError("tenant acme: is not there")

    paths, cluster.limits.paths = cluster.limits.paths, gone
    with pytest.raises(ClusterError, match="is not there"):
        cluster.start()
    cluster.limits.paths = paths
    cluster.start().run(1)
    cluster.limits.paths = gone
    cluster.run(30)
    assert cluster.lines("is not there") == ["tenant acme publish: tenant acme: is not there"]
    assert cluster.limits.set == {A: text(*cluster.enforced.quota.in_force), B: text(*cluster.enforced.quota.in_force)}
