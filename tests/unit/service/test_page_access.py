"""Who may see the page of `headgate serve`, and what browsers may do with it."""

import base64
import json
import re

import pytest

from headgate.places import TRIED
from headgate.service.pages.views import VIEWS
from page_outputs import ORDERS, replayed, throttled
from unit.service.test_serve import GROUPS, TOKEN, service, token_file

PAGES = ["/", "/now", "/topics/x", "/groups", "/static/page.css", "/replays/x/report.html"]


def basic(password, user="anybody"):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Of headgate try, as its mark says."""
    folder = replayed(throttled(tmp_path_factory.mktemp("seen") / "out"))
    (folder / TRIED).touch()
    return folder


@pytest.fixture(scope="module")
def opened(output):
    """Without tokens."""
    with service(output) as one:
        yield one


@pytest.fixture(scope="module")
def guarded(output):
    with service(output, "--token-file", token_file(output.parent)) as one:
        yield one


@pytest.mark.parametrize("path", PAGES)
def test_browsers_are_asked_for_a_token_and_told_nothing_before(guarded, path):
    for headers in ({}, basic(""), basic("wrong"), {"Authorization": "Basic !"}, {"Authorization": "Basic /w=="}):
        status, found, body = guarded.ask("GET", path, token=None, headers=headers)
        assert (status, found["www-authenticate"]) == (401, 'Basic realm="headgate", charset="UTF-8"')
        assert "acme" not in body


def test_a_token_opens_the_page_as_password_or_bearer(guarded):
    assert guarded.ask("GET", "/now", token=None, headers=basic(TOKEN))[0] == 200
    assert guarded.ask("GET", "/now", token=None, headers=basic("other", user=""))[0] == 200
    assert guarded.ask("GET", "/now")[0] == 200


@pytest.mark.parametrize("path", [GROUPS, "/openapi.json", "/elsewhere", "/nowhere"])
def test_a_password_opens_nothing_but_the_page(guarded, path):
    """A browser sends it along with what another site makes it ask."""
    for method in ("GET", "PUT"):
        assert guarded.ask(method, path, token=None, headers=basic(TOKEN))[0] == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(
            ("127.0.0.1:8085", 200),
            ("localhost", 200),
            ("LOCALHOST.:1", 200),
            ("[::1]:8085", 200),
            ("a.localhost", 200),
        ),
        *(
            ("attacker.example", 403),
            ("127.0.0.1.attacker.example:80", 403),
            ("10.0.0.1", 403),
            ("", 403),
            ("[::2]", 403),
        ),
    ],
)
def test_without_tokens_a_name_that_was_made_to_lead_here_opens_nothing(opened, host, status):
    assert opened.ask("GET", "/now", token=None, headers={"Host": host})[0] == status
    assert opened.ask("GET", "/openapi.json", token=None, headers={"Host": host})[0] == status


@pytest.mark.parametrize("path", ["/now", "/static/live.js", "/openapi.json", "/elsewhere", GROUPS, "/now?last=x"])
def test_every_answer_says_what_browsers_may_do_with_it(opened, path):
    _, headers, _ = opened.ask("GET", path, token=None)
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_a_report_has_its_own_style_but_no_scripts(opened):
    status, headers, body = opened.ask("GET", "/replays/tried/report.html", token=None)
    assert (status, "Report" in body) == (200, True)
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_an_output_that_is_a_run_itself_has_its_report(output):
    with service(output / "tried") as one:
        (link,) = re.findall(r'href="(/replays/[^"]*)"', one.ask("GET", "/replays", token=None)[2])
        assert one.ask("GET", link, token=None)[0] == 200


@pytest.mark.parametrize("folder", ["..", "tried/..", "deep/er", "%2e%2e/%2e%2e/etc", "none"])
def test_no_other_file_is_given_out(opened, folder):
    assert opened.ask("GET", f"/replays/{folder}/report.html", token=None)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_page_changes_nothing(opened, method):
    for path in ("/now", f"/topics/{ORDERS}", "/groups/gold"):
        assert opened.ask(method, path, token=None)[0] == 405


def test_pages_have_inline_neither_scripts_nor_styles(opened):
    for view in VIEWS:
        path = (
            view.path.replace("{topic:path}", ORDERS).replace("{tenant:path}", "acme").replace("{group:path}", "gold")
        ).replace("{connection:path}", "b1/c")
        _, headers, body = opened.ask("GET", path, token=None)
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert body.count("<script") == body.count('<script src="/static/')
        assert not any(inline in body for inline in ("<style", " style=", " onclick", "javascript:"))


def test_the_same_data_comes_as_json_and_unchanged_data_does_not_come_again(opened):
    for given in ({"path": "/now?format=json"}, {"path": "/now", "headers": {"Accept": "application/json"}}):
        status, headers, body = opened.ask("GET", token=None, **given)
        assert (status, headers["content-type"], json.loads(body)["view"]) == (200, "application/json", "now")
        again = opened.ask(
            "GET", token=None, path=given["path"], headers={"If-None-Match": headers["etag"]} | given.get("headers", {})
        )
        assert (again[0], again[2]) == (304, "")
    browser = {"Accept": "text/html,application/xhtml+xml,application/json;q=0.9"}
    assert opened.ask("GET", "/now", token=None, headers=browser)[1]["content-type"].startswith("text/html")


def test_an_output_of_headgate_try_is_shown_and_not_changed(guarded, opened):
    status, _, answer = guarded.ask("PUT", f"{GROUPS}/gold", "{}")
    assert status == 403
    assert "of headgate try" in json.loads(answer)["reason"]
    assert opened.ask("GET", "/", token=None)[1]["location"] == "/now"
