"""The list of groups has an end, and begins with what is worst."""

import pytest

from headgate.quota.usage import query as of_usage
from headgate.service.pages import groups
from headgate.service.pages import output as of_pages
from headgate.service.pages.rendered import page
from headgate.service.pages.span import Asked
from headgate.stores import BRIEF
from stub_store import waits
from unit.quota.places import SETTINGS, SHARDS, cut, tables
from unit.service.pages.test_held import BY_NAME, changed, seen

RATES = {"open": -1, "wide": 120, "half": 24, "full": 10, "blocked": 0}
"""The demand of each is 12."""


@pytest.fixture
def output(tmp_path):
    of_groups = tables(tmp_path)
    changed(of_groups, *(("PUT", f"resourcegroups/{name}", {"publishRateInMsgs": rate, "publishRateInBytes": 10**9})
                         for name, rate in sorted(RATES.items())))  # fmt: skip
    changed(of_groups, *(("PUT", f"resourcegroups/idle-{n}", {"publishRateInMsgs": 5}) for n in range(3)))
    known = of_groups.config.read().groups
    ids = [known[name].group_id for name in RATES]
    of_groups.usage.append([cut(1, *ids)], SHARDS | {known[name].group_id: known[name].shard for name in RATES})
    return tmp_path


def test_blocked_quotas_come_first_then_those_of_which_most_is_used(output):
    found = seen(output, "groups")
    order = [one.group for one in found.quotas if one.unit == "messages"]
    assert order == ["blocked", "full", "half", "wide", "open"]
    assert (found.total, found.unused_total) == (len(found.quotas), 3)


def test_a_store_is_not_waited_for_longer_than_a_page_is(output, monkeypatch):
    """Members of a past time included."""
    waited = waits(monkeypatch, of_pages)
    assert seen(output, "groups", Asked(end_us=2**52)).total
    assert of_usage.UsageTables(str(output), SETTINGS, patience=BRIEF).found(10**10, 2**42).states_known
    assert waited
    assert all(one == BRIEF.of_delta for one in waited)


def test_the_list_has_an_end_and_says_how_many_more_there_are(output, monkeypatch):
    monkeypatch.setattr(groups, "MOST", 2)
    found = seen(output, "groups")
    assert ([one.group for one in found.quotas], found.total) == (["blocked", "full"], 10)
    assert found.unused == ("idle-0", "idle-1")
    html = page(BY_NAME["groups"], "", found, Asked(), [], output="", etag="")
    assert "2 of 10 quotas are shown: blocked ones first, then those used most." in html
    assert "and 1 more." in html
