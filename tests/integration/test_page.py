"""The page of `headgate serve` in a real Chromium: each view, names that do harm elsewhere, a server that goes away."""

import os
import signal
import subprocess
import sys

import pytest

from headgate.cli import main
from headgate.service.pages.views import VIEWS
from headgate.service.pages.words import short_topic, topic_path
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from integration.browser import chromium
from page_outputs import (
    HOSTILE,
    LONG,
    ORDERS,
    cached,
    collected,
    conditions,
    many_topics,
    mark,
    replayed,
    throttled,
    usage,
    write,
)
from unit.local_runs import publishes, write_conf, write_trace
from unit.service.test_serve import LIB, TOKEN, service, token_file

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
TIMEOUT_MS = 30_000
PATHS = {
    view.template: view.path.replace("{topic:path}", topic_path(ORDERS).removeprefix("/topics/"))
    .replace("{tenant:path}", "acme")
    .replace("{group:path}", "gold")
    .replace("{connection:path}", "b1/c1")
    + ("?subscription=%3Cb%3Es" if view.query and view.query.is_required else "")
    for view in VIEWS
}
SEEN = {
    "now": "Held in the last 10 seconds",
    "topics": short_topic(ORDERS),
    "topic": "a limit changes",
    "why": "What would have helped",
    "why_subscription": "The subscription's dispatch limit SUBSCRIPTION_DISPATCH_RATE",
    "why_connection": "Topics on it",
    "why_cache": "Who took the room",
    "tenants": "acme",
    "tenant": "Share of quota",
    "groups": "Quotas and shares of brokers",
    "group": "Attached to tenant acme",
    "connections": "the connection's outbound buffer is full",
    "cache": "Topics with most misses",
    "clusters": "exceeds its cap by 40 %",
    "replays": "<wider>",
}
"""A text that each view shows."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """What headgate try made of a trace, with traffic, conditions, caches, clusters and replays besides."""
    folder = tmp_path_factory.mktemp("page")
    trace, conf = write_trace(folder / "trace.json", publishes()), write_conf(folder / "conf")
    assert main(["try", str(trace), "--conf-dir", str(conf), "--output", str(folder / "out")]) == 0
    for fill in (throttled, conditions, cached, collected, replayed):
        fill(folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def served(output):
    with service(output) as one:
        yield one


@pytest.fixture
def opened(browser, served):
    """Opens a path in a new page; what the page's console says is a failure."""
    contexts, said = [], []

    def open_(path, url=None, **options):
        context = browser.new_context(**{"viewport": WIDE} | options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text) if "Content Security" in message.text else None)
        page.goto((url or served.url) + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not said


@pytest.mark.parametrize("name", PATHS)
def test_each_view_shows_its_data_to_everybody(opened, name):
    """Axe finds nothing, in the dark no contrast that is too low; a phone does not scroll sideways."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(PATHS[name], color_scheme="light")
    assert SEEN[name] in page.inner_text("main")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert "headgate sql" in page.inner_text("details.sql")
    found = [axe.run(page)]
    page.emulate_media(color_scheme="dark")
    found.append(axe.run(page, options={"runOnly": ["color-contrast"]}))
    assert not [one.generate_report() for one in found if one.violations_count]
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("topic", [HOSTILE, LONG], ids=["script", "300 characters"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_names_are_text_and_fit(opened, topic, viewport):
    page = opened(topic_path(topic), viewport=viewport)
    assert page.inner_text("h1 .name") == topic
    assert page.title() == f"Topic {topic} · headgate"
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    page.get_by_role("link", name="Topics", exact=True).click()
    link = page.get_by_role("link", name=short_topic(topic), exact=True)
    assert link.get_attribute("title") == topic
    link.click()
    assert page.inner_text("h1 .name") == topic


def test_a_topic_that_is_held_takes_one_line_on_a_laptop(opened, tmp_path):
    held = {"throttled_publishes": 20, "throttled_by_group": 20, "throttled_ns": 500_000_000}
    write(tmp_path, "topic_usage", TOPIC_USAGE, [usage(0, f"{ORDERS}-partition-12", 60_000, 40_000, **held)])
    write(tmp_path, "marks", MARKS, [mark(0, f"{ORDERS}-partition-12", "group", "acme-gold")])
    with service(tmp_path) as one:
        page = opened("/now", url=one.url, viewport=WIDE)
        cells = "section[data-key=held] tbody tr > *"
        heights = page.eval_on_selector_all(cells, "all => all.map((one) => one.offsetHeight)")
        assert len(heights) == 9
        assert max(heights) < 40, heights
        scroll = "document.querySelector('section[data-key=held] .scroll')"
        assert page.evaluate(f"{scroll}.scrollWidth <= {scroll}.clientWidth")
        headers = "section[data-key=held] thead th"
        assert page.eval_on_selector_all(headers, "all => all.every((one) => one.scrollWidth <= one.clientWidth)")


def test_a_view_has_an_address_with_its_range_for_a_colleague(opened):
    page = opened("/now")
    page.get_by_role("link", name="Link to exactly this range").click()
    assert "from=" in page.url
    assert "to=" in page.url
    shown = page.inner_text("main")
    page.get_by_role("link", name="Tenants", exact=True).click()
    assert "from=" in page.url
    assert "fixed range" in page.inner_text("main")
    page.go_back()
    assert page.inner_text("main") == shown


def test_keys_alone_reach_the_content_and_every_view(opened):
    page = opened("/now")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page = opened("/now")
    reached = []
    for _ in range(10):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
    assert reached[1:] == [
        "headgate",
        "Now",
        "Topics",
        "Tenants",
        "Groups",
        "Connections",
        "Entry cache",
        "Clusters",
        "Replays and sweeps",
    ]
    page.keyboard.press("Enter")
    page.wait_for_url("**/replays")


def test_new_rows_come_without_a_reload_and_focus_and_open_details_stay(opened, tmp_path):
    output = throttled(tmp_path)
    with service(output) as one:
        page = opened("/topics", url=one.url)
        page.evaluate("window.loaded = 1")
        page.get_by_text("SQL for this").click()
        page.get_by_role("link", name=short_topic(ORDERS)).focus()
        write(
            output, "topic_usage", TOPIC_USAGE, [usage(21, "persistent://initech/a/first", 9, 1, throttled_ns=10**12)]
        )
        page.get_by_text("initech/a/first").first.wait_for()
        assert page.evaluate("document.activeElement.textContent") == short_topic(ORDERS)
        assert page.evaluate("document.querySelector('details.sql').open")
        assert page.evaluate("window.loaded") == 1


def test_a_server_that_goes_away_is_said_and_its_return_noticed(opened, tmp_path):
    output = throttled(tmp_path)
    with service(output) as one:
        page = opened("/now", url=one.url)
        page.get_by_text("Live", exact=True).wait_for()
        page.evaluate("window.loaded = 1")
        port = one.url.rpartition(":")[2]
        assert one.stop(signal.SIGKILL)[0] == -signal.SIGKILL
        page.get_by_text("Server away, last seen").wait_for()
        assert "trying again" in page.inner_text("#live")
        write(output, "topic_usage", TOPIC_USAGE, [usage(25, "persistent://initech/a/back", 9, 1, throttled_ns=5)])
        command = [sys.executable, "-m", "headgate", "serve", str(output), "--port", port]
        again = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(LIB)}, stdout=subprocess.DEVNULL)
        try:
            page.get_by_text("initech/a/back").first.wait_for()
            page.get_by_text("Live", exact=True).wait_for()
            assert page.evaluate("window.loaded") == 1
        finally:
            again.kill()
            again.wait()


def test_an_empty_output_fills_by_itself(opened, tmp_path):
    with service(tmp_path / "out") as one:
        pages = [opened(path, url=one.url) for path in ("/now", "/groups", "/replays")]
        for page in pages[:2]:
            assert "No table is in" in page.inner_text("main")
        assert "No replay and no sweep has written here" in pages[2].inner_text("main")
        throttled(tmp_path / "out")
        pages[0].get_by_text("Held in the last").wait_for()


def test_what_goes_wrong_is_said_on_the_page(opened):
    for path, said in (
        ("/now?from=yesterday", "from: got 'yesterday'"),
        ("/topics/persistent/no/such/topic", "has no publishes in this range"),
        ("/tenants/nobody", "published nothing in this range"),
    ):
        assert said in opened(path).inner_text("main .problem")


def test_ten_thousand_topics_are_a_short_page(opened, tmp_path):
    with service(many_topics(tmp_path, 10_000, 3)) as one:
        page = opened("/now", url=one.url)
        assert page.inner_text(".figure dd >> nth=0") == "1,000"
        assert page.locator("section[data-key=held] tbody tr").count() == 50
        page.goto(f"{one.url}/topics")
        assert "10,000 topics" in page.inner_text("main")
        page.get_by_label("Part of the name").fill("TOPIC-09999")
        page.get_by_role("button", name="Search").click()
        assert page.locator("tbody tr").count() == 1


def test_a_browser_logs_in_with_a_token_as_password(browser, opened, output):
    with service(output, "--token-file", token_file(output.parent)) as one:
        page = opened("/now", url=one.url, http_credentials={"username": "me", "password": TOKEN})
        assert "Held in the last" in page.inner_text("main")
        page.get_by_text("Live", exact=True).wait_for()


def test_the_report_of_a_replay_opens_from_the_page(opened):
    page = opened("/replays")
    page.get_by_role("link", name="Report").first.click()
    assert page.inner_text("p") == "Report"
    assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(255, 0, 0)"
