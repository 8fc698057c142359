"""Who is held at a moment: by rows of topic_usage, and by marks that still hold, as producers that wait write none."""

import json

import pytest

from headgate.core.quota.admin.api import AdminParameters
from headgate.core.quota.admin.request import Request
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import PageError
from headgate.quota.groups.command import apply
from headgate.quota.groups.presence import EVERYWHERE
from headgate.service.pages.answers import JSON, Pages
from headgate.service.pages.held import LOOK_BACK_S
from headgate.service.pages.output import Output
from headgate.service.pages.read import Read
from headgate.service.pages.rendered import page
from headgate.service.pages.span import SECOND_US, Asked, iso
from headgate.service.pages.views import VIEWS
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from page_outputs import CLICKS, ORDERS, START_US, mark, usage, write
from unit.quota.places import SHARDS, cut, tables

BY_NAME = {view.template: view for view in VIEWS}
NOW_S = 1000
"""The last second with a row, of CLICKS, which nothing holds."""
TOPIC, BROKER, CONNECTION = (ORDERS, "topic", ORDERS), (ORDERS, "broker", "b1"), (None, "connection", "c")
ZERO = {"messages_per_s": 0, "type": "ResourceGroupPublishRate"}


def seen(output, name, asked=None, **given):
    read = Read(Output(str(output), QuotaSettings()).look(), QuotaSettings())
    return BY_NAME[name].view(read, asked or Asked(), given)


def marked(folder, *marks, rows=()):
    write(folder, "topic_usage", TOPIC_USAGE, [usage(0, CLICKS, 1, 1), usage(NOW_S, CLICKS, 10, 10), *rows])
    write(folder, "marks", MARKS, list(marks))
    return folder


def at_us(second):
    return START_US + second * SECOND_US


def changed(of_groups, *requests):
    for method, path, body in requests:
        request = Request(method, f"/admin/v2/{path}", "t", *(["", body] if body else []))
        done = apply(of_groups.config, request, EVERYWHERE, AdminParameters(frozenset({"t"})))
        assert done.response.status == 204


def test_a_topic_without_rows_is_held_while_a_mark_holds_a_producer(tmp_path):
    marked(tmp_path, mark(NOW_S - 60, ORDERS, "group", "gold", **ZERO))
    now = seen(tmp_path, "now")
    (one,) = now.topics
    assert (one.topic, str(one.reason), one.limiter, now.topics_held) == (ORDERS, "GROUP_BLOCKED", "gold", 1)
    assert (one.since_us, one.flow.waited_ns, one.last_us) == (at_us(NOW_S - 60), 10 * 10**9, None)
    tenant = seen(tmp_path, "tenant", tenant="acme")
    assert ([held.topic for held in tenant.held], tenant.held_total) == ([ORDERS], 1)


@pytest.mark.parametrize(
    ("marks", "is_held"),
    [
        ([(NOW_S - 60, TOPIC, {}), (NOW_S - 59, TOPIC, {"action": "unmark"})], False),
        ([(NOW_S - 60, TOPIC, {"action": "unmark"}), (NOW_S - 60, TOPIC, {})], True),
        ([(NOW_S - n, TOPIC, {"action": one}) for n in (60, 50) for one in ("unmark", "mark")], True),
        (
            [(NOW_S - 60, TOPIC, {}), *[(NOW_S - 50, TOPIC, {"action": one}) for one in ("unmark", "unmark", "mark")]],
            False,
        ),
        ([(NOW_S - 60, TOPIC, {}), (NOW_S - 59, TOPIC, {"action": "unmark", "producer": "q"})], True),
        ([(NOW_S - 60, TOPIC, {}), (NOW_S - 59, BROKER, {"action": "unmark"})], True),
        ([(NOW_S - 60, TOPIC, {"action": "unmark"}), (NOW_S - 59, TOPIC, {})], True),
        ([(NOW_S + 1 - LOOK_BACK_S, TOPIC, {})], True),
        ([(NOW_S - LOOK_BACK_S, TOPIC, {})], False),
        ([(NOW_S + 1, TOPIC, {})], False),
        ([(NOW_S - 60, TOPIC, {"action": "close"})], False),
        ([(NOW_S - 60, CONNECTION, {"type": "ConnectionOutboundBufferFull"})], False),
    ],
)
def test_a_mark_holds_until_its_unmark_and_is_looked_for_so_far_back(tmp_path, marks, is_held):
    marked(tmp_path, *(mark(second, *limiter, **more) for second, limiter, more in marks))
    assert is_held is bool(seen(tmp_path, "now").topics)


def test_the_view_of_one_topic_looks_back_as_far_as_why_and_needs_no_row(tmp_path):
    marked(tmp_path, mark(NOW_S + 1 - 900, ORDERS, "topic", ORDERS))
    topic = seen(tmp_path, "topic", topic=ORDERS)
    assert ([one.limiter for one in topic.held], topic.places, topic.back_s) == ([ORDERS], (), 900)
    with pytest.raises(PageError, match="has no publishes in this range"):
        seen(tmp_path, "topic", Asked(end_us=at_us(NOW_S + 2)), topic=ORDERS)


@pytest.mark.parametrize(("unmarked_s", "waited_ns"), [(NOW_S - 8, 6_500_000_000), (NOW_S - 5, 500_000_000)])
def test_producers_that_still_wait_do_so_from_the_last_row_to_the_end(tmp_path, unmarked_s, waited_ns):
    row = usage(NOW_S - 6, ORDERS, 60, 40, throttled_publishes=20, throttled_by_topic=20, throttled_ns=500_000_000)
    marks = mark(NOW_S - 7, *TOPIC), mark(unmarked_s, *TOPIC, action="unmark")
    marked(tmp_path, *marks, rows=[row])
    assert [one.flow.waited_ns for one in seen(tmp_path, "now").topics] == [waited_ns]


def test_a_backlog_that_is_let_in_is_seen_to_wait_though_no_message_was_held(tmp_path):
    row = usage(NOW_S, ORDERS, 5, 40, throttled_ns=SECOND_US * 1000)
    marked(tmp_path, mark(NOW_S - 90, ORDERS, "topic", ORDERS), rows=[row])
    (one,) = seen(tmp_path, "now").topics
    assert (one.flow.held_messages, one.flow.allowed_messages, one.since_us) == (0, 40, at_us(NOW_S - 90))


def test_a_mark_that_holds_is_the_reason_before_a_later_one_that_was_released(tmp_path):
    later = [mark(NOW_S - n, ORDERS, "topic", ORDERS, producer="q", action=action)
             for n, action in ((30, "mark"), (20, "unmark"))]  # fmt: skip
    marked(tmp_path, mark(NOW_S - 60, ORDERS, "broker", "b1", bytes_balance=-1, bytes_per_s=5), *later)
    (one,) = seen(tmp_path, "now").topics
    assert (str(one.reason), one.limiter, one.since_us) == ("BROKER_PUBLISH_RATE_BYTES", "b1", at_us(NOW_S - 60))


def test_each_broker_of_a_topic_has_its_own_marks(tmp_path):
    for broker, age_s in (("b1", 60), ("b2", 40)):
        folder = tmp_path / "brokers" / broker
        marked(folder, mark(NOW_S - age_s, ORDERS, "broker", broker, broker=broker))
    now = seen(tmp_path, "now")
    assert [(one.broker, one.limiter, one.since_us) for one in now.topics] == [
        ("b1", "b1", at_us(NOW_S - 60)),
        ("b2", "b2", at_us(NOW_S - 40)),
    ]


def test_blocked_groups_in_use_are_said_however_long_ago_the_marks_are(tmp_path):
    marked(tmp_path)
    of_groups = tables(tmp_path)
    changed(
        of_groups,
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 50, "publishRateInBytes": 0, "dispatchRateInMsgs": 0}),
        ("PUT", "resourcegroups/unused", {"publishRateInMsgs": 0}),
        ("PUT", "resourcegroups/open", {"publishRateInMsgs": 5}),
        ("POST", "tenants/acme/resourcegroup/gold", None),
        ("POST", "tenants/globex/resourcegroup/open", None),
    )
    now = seen(tmp_path, "now")
    assert [(one.group, one.quotas) for one in now.blocked] == [("gold", ("publish bytes", "dispatch messages"))]
    html = page(BY_NAME["now"], "", now, Asked(), [], output="", etag="")
    assert 'href="/groups/gold"><bdi>gold</bdi></a> is blocked: its quota is 0 (publish bytes' in html
    with pytest.raises(PageError, match="has no publishes"):
        seen(tmp_path, "topic", topic=ORDERS)
    write(tmp_path, "topic_usage", TOPIC_USAGE, [usage(0, ORDERS, 1, 1)])
    topic = seen(tmp_path, "topic", topic=ORDERS)
    assert ([one.group for one in topic.blocked], topic.held, topic.places) == (["gold"], (), ())
    assert not seen(tmp_path, "topic", topic=CLICKS).blocked


def test_a_blocked_group_holds_a_topic_whose_mark_is_too_long_ago(tmp_path):
    held = {"failed_publishes": 5, "throttled_publishes": 0}
    marked(tmp_path, mark(NOW_S - 500, ORDERS, "group", "gold", **ZERO), rows=[usage(NOW_S, ORDERS, 5, 0, **held)])
    of_groups = tables(tmp_path)
    changed(
        of_groups,
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 0}),
        ("POST", "tenants/acme/resourcegroup/gold", None),
    )
    (one,) = seen(tmp_path, "now").topics
    assert (one.topic, str(one.reason), one.scope, one.limiter) == (ORDERS, "GROUP_BLOCKED", "group", "gold")


def test_tenants_of_blocked_groups_come_first_and_are_not_without_a_quota(tmp_path):
    marked(tmp_path, rows=[usage(NOW_S, ORDERS, 1, 0)])
    of_groups = tables(tmp_path)
    changed(
        of_groups,
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 0, "publishRateInBytes": 1_000_000}),
        ("PUT", "resourcegroups/open", {"publishRateInMsgs": 1}),
        ("POST", "tenants/acme/resourcegroup/gold", None),
        ("POST", "tenants/globex/resourcegroup/open", None),
    )
    found = seen(tmp_path, "tenants")
    assert [(one.tenant, one.is_blocked) for one in found.tenants] == [("acme", True), ("globex", False)]
    html = page(BY_NAME["tenants"], "", found, Asked(), [], output="", etag="")
    assert html.count('<span class="badge alarm">blocked</span>') == 1
    assert "no quota" not in html


@pytest.mark.parametrize(
    ("reported_s", "quota", "is_of_today"),
    [(NOW_S - 5, 50, False), (NOW_S + 1, 40, True), (NOW_S - 500, 40, True), (None, 40, True)],
)
def test_quotas_of_a_past_range_are_those_that_brokers_knew_then(tmp_path, reported_s, quota, is_of_today):
    """Reports name version 3 of the configuration, in which the quota was 50."""
    marked(tmp_path, rows=[usage(NOW_S, ORDERS, 1, 1)])
    of_groups = tables(tmp_path)
    changed(
        of_groups,
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 20}),
        ("POST", "tenants/acme/resourcegroup/gold", None),
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 50}),
        ("PUT", "resourcegroups/gold", {"publishRateInMsgs": 40}),
    )
    if reported_s is not None:
        of_groups.usage.append([cut(1, 1, epoch=at_us(reported_s) // SECOND_US)], SHARDS)
    for name in ("now", "tenants"):
        past = seen(tmp_path, name, Asked(end_us=at_us(NOW_S + 1)))
        (acme,) = (one for one in past.tenants if one.tenant == "acme")
        assert (acme.quotas, past.is_of_today) == ((quota, None), is_of_today)
        html = page(BY_NAME[name], "", past, Asked(), [], output="", etag="")
        assert is_of_today is ("quotas are those of today" in html)
    past = seen(tmp_path, "topic", Asked(end_us=at_us(NOW_S + 1)), topic=ORDERS)
    assert (past.quotas, past.is_of_today) == ((quota, None), is_of_today)
    pages = Pages(Output(str(tmp_path), QuotaSettings(), look_s=0), QuotaSettings(), str(tmp_path))
    given = {"to": iso(at_us(NOW_S + 1))}
    before = pages.answer(BY_NAME["now"], given, JSON)
    of_groups.usage.append([cut(2, 1, epoch=at_us(NOW_S - 3) // SECOND_US)], SHARDS)
    after = pages.answer(BY_NAME["now"], given, JSON, known=before.etag)
    assert json.loads(after.body)["data"]["is_of_today"] is False
    live = seen(tmp_path, "tenant", tenant="acme")
    assert (live.uses[0].quotas, live.is_of_today) == ((40, None), False)
