"""Why of a subscription, a connection and the entry cache: on the page what the command says, whatever the names."""

import json
import re
from html import unescape

import pytest

from headgate.cli import main
from headgate.core.quota.settings import QuotaSettings
from headgate.service.pages import words
from headgate.service.pages.answers import HTML, JSON, Pages
from headgate.service.pages.output import Output
from headgate.service.pages.span import iso
from headgate.service.pages.views import VIEWS
from headgate.throttle.schemas import DISPATCH_DECISIONS, MARKS
from page_outputs import HOSTILE, LONG, ORDERS, START_US, cached, conditions, mark, throttled, write

FIRST_S = START_US // 10**6
BY_NAME = {view.template: view for view in VIEWS}


def cached_as(name):
    return f"persistent://acme/shop/{name}"


WHYS = {
    "why_subscription": (lambda name: {"topic": ORDERS, "subscription": name}, lambda one: ["--subscription", one]),
    "why_connection": (lambda name: {"connection": f"b1/{name}"}, lambda _: ["--connection"]),
    "why_cache": (lambda name: {"topic": cached_as(name)}, lambda _: ["--cache"]),
}
"""By view: what is asked for, and the options of the command."""


@pytest.fixture(scope="module", params=["s/1", HOSTILE, LONG], ids=["slash", "script", "300 characters"])
def named(request, tmp_path_factory):
    """An output with a subscription and a connection of a name, and that name."""
    name = request.param
    folder = cached(throttled(tmp_path_factory.mktemp("named")), cached_as(name))
    reads = dict.fromkeys(DISPATCH_DECISIONS.names[4:], 0) | {"reads": 9, "held_by_topic": 4, "delay_ns": 0}
    row = {"event_time": START_US + 10**6, "broker": "b1", "topic": ORDERS, "subscription": name}
    write(folder, "dispatch_decisions", DISPATCH_DECISIONS, [reads | row])
    steps = ((3, LONG, "attach"), (4, ORDERS, "mark"), (9, ORDERS, "unmark"))
    of = {"type": "ResourceGroupPublishRate", "connection": name}
    write(folder, "marks", MARKS, [mark(at_s, topic, "group", "gold", action=one, **of) for at_s, topic, one in steps])
    return folder, name


def answer(folder, view, given, form=JSON):
    pages = Pages(Output(str(folder), QuotaSettings()), QuotaSettings(), str(folder))
    found = pages.answer(BY_NAME[view], given, form)
    return found.status, json.loads(found.body) if form == JSON else found.body.decode()


@pytest.mark.parametrize("view", WHYS)
def test_the_answer_is_that_of_the_command_in_the_range_of_the_page(named, view, capsys):
    folder, name = named
    given, options = WHYS[view]
    asked = given(name)
    end_s = FIRST_S + {"why_cache": 1}.get(view, 6)
    status, found = answer(folder, view, asked | {"from": iso(START_US), "to": iso(end_s * 10**6)})
    when = ["--from", str(1000 * FIRST_S), "--to", str(1000 * (end_s - 1))]
    about = asked.get("connection") or asked["topic"]
    assert 0 == main(["why", about, str(folder), *options(name), *when, "--json"])
    assert (200, json.loads(capsys.readouterr().out)) == (status, found["data"]["answer"])


@pytest.mark.parametrize("view", WHYS)
def test_names_are_text(named, view):
    folder, name = named
    given, _ = WHYS[view]
    _, html = answer(folder, view, given(name), HTML)
    assert "<script>document" not in html
    heading = unescape(re.search(r'<h1>.* <bdi class="name">(.*)</bdi></h1>', html)[1])
    assert (
        heading
        == {
            "why_subscription": f"{name} of {ORDERS}",
            "why_connection": f"b1/{name}",
            "why_cache": cached_as(name),
        }[view]
    )


def test_what_each_says_is_on_its_page_and_reasons_are_explained(named):
    folder, name = named
    pages = {view: answer(folder, view, given(name), HTML)[1] for view, (given, _) in WHYS.items()}
    assert "a tenth or more of its reads found no permit" in pages["why_subscription"]
    assert 'href="/reasons#TOPIC_DISPATCH_RATE"' in pages["why_subscription"]
    assert "5.0 s" in pages["why_connection"]
    assert 'href="/reasons#GROUP_QUOTA_MESSAGES"' in pages["why_connection"]
    (of_long,) = re.findall(f'<tr data-key="{LONG}">.*', pages["why_connection"])
    assert 'href="/reasons#SHARED_CONNECTION"' in of_long
    assert "Who took the room" in pages["why_cache"]
    assert "jobs/entry_cache.py writes it with --evictions" in pages["why_cache"]


@pytest.mark.parametrize(
    ("view", "given", "said"),
    [
        ("why_subscription", {"topic": ORDERS, "subscription": "<b>t"}, "no dispatch of subscription '<b>t'"),
        ("why_subscription", {"topic": f"{ORDERS}x", "subscription": "s/1"}, f"nearest: {ORDERS}"),
        ("why_connection", {"connection": "b1/d"}, "no mark of connection 'b1/d'"),
    ],
)
def test_what_is_not_there_is_404_with_the_nearest_names(named, view, given, said):
    status, found = answer(named[0], view, given)
    assert (404, True, True) == (status, said in found["reason"], "; nearest: " in found["reason"])
    assert "nearest: " in answer(named[0], view, given, HTML)[1]


def test_a_topic_that_no_cache_has_is_404_with_the_nearest_names(tmp_path):
    status, found = answer(cached(tmp_path), "why_cache", {"topic": f"{ORDERS}x"})
    assert (404, True) == (status, f"nearest: {ORDERS}" in found["reason"])


def test_without_a_subscription_it_is_400(named):
    status, found = answer(named[0], "why_subscription", {"topic": ORDERS})
    assert (400, True) == (status, found["reason"].startswith("subscription: got nothing"))


def test_each_subscription_is_an_answer_of_its_own_and_other_ranges_are_of_the_same(named):
    folder, name = named
    pages = Pages(Output(str(folder), QuotaSettings()), QuotaSettings(), str(folder))
    view, given = BY_NAME["why_subscription"], {"topic": ORDERS, "subscription": name}
    asked = [given, given | {"subscription": "<b>s"}, given | {"connection": "c"}]
    assert len({pages.answer(view, one, HTML).etag for one in asked}) == 2
    html = pages.answer(view, given | {"last": "60"}, HTML).body.decode()
    quoted = words.why_subscription_path(ORDERS, name).partition("?")[2].replace("%2F", "/")
    links = [unescape(one) for one in re.findall(r'href="(\?[^"]*)"', html)]
    assert f"?last=60&{quoted}" in [one.replace("%2F", "/") for one in links]
    assert all(quoted in one.replace("%2F", "/") for one in links)
    assert f'<input type="hidden" name="subscription" value="{name}">' in unescape(html)


def test_pages_of_what_is_held_lead_to_why(tmp_path):
    folder = cached(conditions(throttled(tmp_path)))
    subscription = words.why_subscription_path(ORDERS, "<b>s", "?last=60").replace("&", "&amp;")
    for view, given, path in (
        ("now", {}, subscription),
        ("topic", {"topic": ORDERS}, subscription),
        ("connections", {}, f"{words.why_connection_path('b1', 'c2')}?last=60"),
        ("cache", {}, f"{words.why_cache_path(ORDERS)}?last=60"),
    ):
        assert f'<a class="ask" href="{path}"' in answer(folder, view, given | {"last": "60"}, HTML)[1], view


def test_a_topic_has_its_subscriptions_that_no_limit_holds_as_well(tmp_path):
    reads = dict.fromkeys(DISPATCH_DECISIONS.names[4:], 0)
    row = {"event_time": START_US + 10**6, "broker": "b1", "topic": ORDERS, "subscription": "slow", "reads": 3}
    write(throttled(tmp_path), "dispatch_decisions", DISPATCH_DECISIONS, [reads | row])
    _, found = answer(tmp_path, "topic", {"topic": ORDERS})
    said = [(one["subscription"], one["reason"]) for one in found["data"]["subscriptions"]]
    assert said == [("<b>s", "SUBSCRIPTION_DISPATCH_RATE"), ("slow", "NOT_HELD")]
    assert words.why_subscription_path(ORDERS, "slow") in answer(tmp_path, "topic", {"topic": ORDERS}, HTML)[1]


def test_a_connection_that_is_held_after_the_last_publish_is_found(tmp_path):
    """The marks of `conditions` are 10 s later than the newest row of topic_usage."""
    _, found = answer(conditions(throttled(tmp_path)), "why_connection", {"connection": "b1/c1"})
    said = found["data"]["answer"]
    assert (said["reason"], said["heldS"], said["pauses"], said["pausedS"]) == ("CONNECTION_OUTBOUND_BUFFER", 1, 1, 1)
