"""What each view finds in tables, that its SQL gives the same to anybody, and what it says where there is nothing."""

import dataclasses
import json
import socket
import subprocess

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.core.quota.admin.api import AdminParameters
from headgate.core.quota.admin.request import Request
from headgate.core.quota.settings import QuotaSettings
from headgate.core.reasons import HeldReason
from headgate.errors import PageError, TableError
from headgate.quota.groups.command import apply
from headgate.quota.groups.presence import EVERYWHERE
from headgate.report.sql import query
from headgate.service.pages import output as of_pages
from headgate.service.pages.output import Output
from headgate.service.pages.read import Read
from headgate.service.pages.rendered import as_json, page
from headgate.service.pages.span import Asked
from headgate.service.pages.views import REASONS, VIEWS
from headgate.service.pages.why import Reasons
from headgate.stores import BRIEF
from headgate.throttle.schemas import TOPIC_USAGE
from headgate.why import tables as of_why
from headgate.why.as_json import as_json as as_json_of_why
from headgate.why.tables import OutputTables
from headgate.why.topics import why
from page_outputs import (
    CLICKS,
    HOSTILE,
    LONG,
    ORDERS,
    START_US,
    cached,
    collected,
    conditions,
    replayed,
    throttled,
    usage,
    write,
)
from stub_store import waits
from unit.quota.places import EPOCH, SHARDS, cut, tables

BY_NAME = {view.template: view for view in VIEWS}
GIVEN = {"topic": ORDERS, "tenant": "acme", "group": "gold", "q": "SHOP"}
GIVEN |= {"subscription": "<b>s", "connection": "b1/c"}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Every kind of table. The group gold has a quota of 50 messages a second, and the tenant acme."""
    folder = tmp_path_factory.mktemp("page")
    for fill in (throttled, cached, collected, replayed):
        fill(folder)
    of_groups = tables(folder)
    with_gold(of_groups)
    of_groups.usage.append([cut(1, 1)], SHARDS | {1: of_groups.config.read().groups["gold"].shard})
    return folder


def with_gold(of_groups):
    parameters = AdminParameters(frozenset({"t"}))
    for method, path, body in (
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 50}),
        ("POST", "tenants/acme/resourcegroup/gold", None),
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 40}),
        ("PUT", "resourcegroups/idle", {"dispatchRateInBytes": 5}),
    ):
        request = (
            Request(method, f"/admin/v2/{path}", "t", "", body) if body else Request(method, f"/admin/v2/{path}", "t")
        )
        assert apply(of_groups.config, request, EVERYWHERE, parameters).response.status == 204


NEWEST = Asked()


def seen(output, name, asked=NEWEST, **given):
    read = Read(Output(str(output), QuotaSettings()).look(), QuotaSettings())
    return BY_NAME[name].view(read, asked, GIVEN | given), read


def test_now_shows_who_is_held_by_what_and_shares_of_allowed_plus_held(output):
    now, _ = seen(output, "now")
    held = [(one.topic, str(one.reason), one.limiter, one.flow.held_messages) for one in now.topics]
    assert held == [(ORDERS, "GROUP_QUOTA_MESSAGES", "gold", 200), (HOSTILE, "TOPIC_PUBLISH_RATE_BYTES", HOSTILE, 10)]
    (acme, globex) = now.tenants
    assert (acme.tenant, acme.group, acme.topics) == ("acme", "gold", 3)
    assert (acme.allowed_share, acme.share) == (42 / 40, 63 / 40)
    assert (globex.tenant, globex.group, globex.share) == ("globex", None, None)
    assert (now.tenants_over, now.topics_held, now.subscriptions_held) == (1, 2, 1)
    assert [(one.subscription, str(one.reason), one.held) for one in now.subscriptions] == [
        ("<b>s", "SUBSCRIPTION_DISPATCH_RATE", 4)
    ]
    assert now.charts[0].areas[0].values[0] == 52


def test_in_admitted_traffic_what_was_held_does_not_show(tmp_path):
    write(
        tmp_path,
        "topic_usage",
        TOPIC_USAGE,
        [usage(0, ORDERS, 60, None, throttled_publishes=20, throttled_by_topic=20)],
    )
    now, _ = seen(tmp_path, "now")
    assert (now.tenants[0].is_admitted, now.flow.allowed_messages, now.flow.held_messages) == (True, 60, 0)
    assert str(now.topics[0].reason) == "TOPIC_PUBLISH_RATE"  # without marks the unit is not known


def test_a_topic_has_its_limits_as_lines_and_their_changes(output):
    topic, _ = seen(output, "topic")
    assert (topic.tenant, topic.group, topic.quotas) == ("acme", "gold", (40, None))
    lines = {line.name: line.values for line in topic.charts[0].lines}
    assert lines["limit of the topic"][:6] == (70, 70, 70, 70, 70, 50)
    assert lines["share of gold on b1"][6:8] == (None, 40)
    assert [one.who for one in topic.limits.changes] == [f"topic {ORDERS}", "group gold on b1"]
    assert [change.at_us for change in topic.charts[2].changes] == [START_US + 5_000_000]  # none of a share
    assert topic.charts[2].areas[2].values[0] == 1
    assert [str(one.reason) for one in topic.held] == ["GROUP_QUOTA_MESSAGES"]


def test_why_is_the_answer_of_the_command_in_the_range_of_the_page(output):
    found, _ = seen(output, "why")
    first_s, end_s = found.span.first_us // 10**6, found.span.end_us // 10**6
    assert found.answer == as_json_of_why(why(OutputTables(str(output)), ORDERS, first_s=first_s, last_s=end_s - 1))
    assert found.answer["reason"] == "GROUP_QUOTA_MESSAGES"
    assert ("Debt in messages when producers began to be held", "messages") == (
        found.charts[0].title,
        found.charts[0].unit,
    )
    with pytest.raises(PageError, match=f"nearest: {ORDERS}") as unknown:
        seen(output, "why", topic=f"{ORDERS}x")
    assert unknown.value.status == 404


def test_why_waits_for_a_store_no_longer_than_a_page_does(output, monkeypatch):
    """Groups as they were known then included."""
    waited = waits(monkeypatch, of_pages, of_why)
    assert seen(output, "why")[0].answer["reason"] == "GROUP_QUOTA_MESSAGES"
    assert len(waited) > 10
    assert all(one == BRIEF.of_delta for one in waited)


def test_reasons_are_explained_on_a_page_of_their_own():
    html = page(REASONS, "", Reasons(), None, [], output="", etag="")
    assert all(f'<h2 id="{reason}">' in html for reason in HeldReason)


def test_partitions_of_a_topic_are_shown_together(tmp_path):
    names = [f"{ORDERS}-partition-{n}" for n in range(2)]
    write(tmp_path, "topic_usage", TOPIC_USAGE, [usage(0, name, 5, 5) for name in (*names, f"{ORDERS}-other")])
    topic, _ = seen(tmp_path, "topic")
    assert [one.topic for one in topic.places] == names
    assert len(seen(tmp_path, "topic", topic=names[1])[0].places) == 1


def test_topics_are_found_by_a_part_of_the_name(output):
    found, _ = seen(output, "topics")
    assert ({one.topic for one in found.topics}, found.total) == ({ORDERS, HOSTILE, LONG}, 3)
    assert seen(output, "topics", q="'; DROP TABLE")[0].topics == ()
    assert [one.topic for one in seen(output, "topics", q="CLICKS")[0].topics] == [CLICKS]


def test_tenants_are_listed_and_each_has_its_topics(output):
    assert [one.tenant for one in seen(output, "tenants")[0].tenants] == ["acme", "globex"]
    tenant, _ = seen(output, "tenant")
    assert ([one.topic for one in tenant.topics], tenant.topics_total) == ([ORDERS, HOSTILE, LONG], 3)
    assert tenant.held_total == 2


def test_groups_have_quotas_shares_and_what_was_changed(output):
    asked = Asked(last_s=60)
    groups, _ = seen(output, "groups", asked)
    gold = next(one for one in groups.quotas if one.unit == "messages")
    assert (gold.group, gold.quota, gold.admitted, gold.demand) == ("gold", 40, 10, 12)
    assert [(one.broker, one.is_throttled) for one in gold.brokers] == [("broker 7", True)]
    said = [(one.version, one.group, one.what) for one in groups.history]
    assert said == [
        (4, "idle", "created: dispatch bytes/s 5"),
        (3, "gold", "changed: publish messages/s 50 → 40"),
        (2, "gold", "attached to tenant acme"),
        (1, "gold", "created: publish messages/s 50"),
    ]
    assert all(one.at_us is not None for one in groups.history)
    assert {one.by for one in groups.history} == {f"a job on {socket.gethostname()}"}
    group, _ = seen(output, "group", asked)
    assert (group.attached, len(group.history)) == (("tenant acme",), 3)
    assert group.charts[0].lines[-1].name == "quota"
    assert groups.at_us == EPOCH * 1_000_000


def test_connections_caches_clusters_and_replays(output, tmp_path):
    found, _ = seen(conditions(tmp_path), "connections")
    (full,) = found.conditions
    assert (str(full.reason), full.marks, full.connections, full.now) == ("CONNECTION_OUTBOUND_BUFFER", 2, 2, 1)
    assert [(one.connection, one.is_paused, one.paused_ns) for one in found.paused] == [
        ("c2", True, 0),
        ("c1", False, 10**9),
    ]
    assert (found.paused[1].mostly, found.now) == ("ConnectionOutboundBufferFull", 1)
    caches, _ = seen(output, "cache")
    assert [(one.hits, one.misses, one.hit_share) for one in caches.brokers] == [(90, 9, 90 / 99)]
    assert [(one.hits, one.misses, one.used_bytes) for one in caches.topics] == [(46, 10, 5_000_000)]
    clusters, _ = seen(output, "clusters")
    assert [(one.broker, one.failures, one.error) for one in clusters.brokers] == [
        ("b1", 0, None),
        ("b2", 2, "no answer <i>"),
    ]
    assert clusters.charts[0].areas[0].values == (100, 20, 20, 20, 20, 20)
    assert [one.path for one in clusters.not_enforceable] == [ORDERS]
    assert [one.action for one in clusters.places] == ["push"]
    replays, _ = seen(output, "replays")
    assert {(run.folder, run.kind, run.has_report) for run in replays.runs} == {
        ("tried", "replay", True),
        ("deep/er", "replay", False),
        ("swept", "sweep", False),
    }
    by_folder = {run.folder: run.outcomes for run in replays.runs}
    assert [(one.name, one.allowed, one.failed) for one in by_folder["tried"]] == [
        ("<wider>", 150, 50),
        ("today", 150, 50),
    ]
    assert [(one.name, one.total, one.allowed) for one in by_folder["swept"]] == [
        ("pip430, 1048576 bytes (present)", 40, 30),
        ("sieve, 1048576 bytes", 40, 36),
    ]


def words_of(command):
    """As a shell takes it apart."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_sql_of_a_page_can_be_run_by_anybody(output, name):
    _, read = seen(output, name)
    assert read.statements
    for statement in read.statements:
        for command in statement.commands:
            program, verb, place, sql = words_of(command)
            assert (program, verb, sql) == ("headgate", "sql", statement.sql)
            query(place, sql)


@pytest.mark.parametrize("name", BY_NAME)
def test_names_are_text_and_data_is_json(output, name):
    view = BY_NAME[name]
    data, read = seen(output, name)
    html = page(view, HOSTILE, data, Asked(), read.statements, output="<out>", etag='"e"')
    assert "<script>document" not in html
    assert "<b>s" not in html
    assert html.count("<main") == 1
    assert json.loads(as_json(view, data, read.statements))["view"] == name
    assert dataclasses.is_dataclass(data)


def test_several_jobs_are_read_as_one_and_each_has_its_command(tmp_path):
    for broker in ("b1", "b2"):
        write(tmp_path / "brokers" / broker, "topic_usage", TOPIC_USAGE, [usage(0, ORDERS, 5, 5, broker=broker)])
    now, read = seen(tmp_path, "now")
    assert now.flow.allowed_messages == 10
    assert [words_of(one)[2] for one in read.statements[0].commands] == [
        f"{tmp_path}/brokers/{b}" for b in ("b1", "b2")
    ]


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {"replays"}))
def test_an_output_without_tables_is_503_in_words(tmp_path, name):
    with pytest.raises(PageError, match=r"No table is in .* yet") as nothing:
        seen(tmp_path / "none", name)
    assert nothing.value.status == 503


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {"replays", "clusters"}))
def test_a_table_that_another_job_writes_is_named(tmp_path, name):
    collected(tmp_path)
    with pytest.raises(PageError, match=r"This output has no table \w+, which .* writes") as absent:
        seen(tmp_path, name)
    assert absent.value.status == 200


@pytest.mark.parametrize(
    ("name", "given"), [("topic", "persistent://no/such/one"), ("tenant", "nobody"), ("group", "none")]
)
def test_what_is_not_there_is_404(output, name, given):
    with pytest.raises(PageError) as unknown:
        seen(output, name, **{name: given})
    assert unknown.value.status == 404


def test_a_table_of_another_version_is_said_and_others_go_on(output, tmp_path):
    collected(tmp_path)
    write_deltalake(
        f"{tmp_path}/topic_usage", pa.table({"event_time": pa.array([START_US], pa.timestamp("us", "UTC"))})
    )
    with pytest.raises(TableError, match=r"topic_usage cannot be read: .*of another version of headgate"):
        seen(tmp_path, "now")
    assert seen(tmp_path, "clusters")[0].brokers
