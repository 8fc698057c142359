"""Answers are made once for each state of the tables; what cannot be read is said, and looked at again."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from deltalake import DeltaTable

from headgate.core.quota.settings import QuotaSettings
from headgate.errors import PageError
from headgate.quota.tables.topic_tables import folders_of
from headgate.service.pages.answers import HTML, JSON, MOST_AT_ONCE, MOST_KEPT, Pages
from headgate.service.pages.output import Output
from headgate.service.pages.views import REASONS, VIEWS
from headgate.stores import BRIEF
from headgate.throttle.schemas import TOPIC_USAGE
from page_outputs import CLICKS, ORDERS, collected, throttled, usage, write

BY_NAME = {view.template: view for view in VIEWS}
NOW, TOPICS, CLUSTERS = (BY_NAME[name] for name in ("now", "topics", "clusters"))


def pages_of(folder, look_s=0.0):
    return Pages(Output(str(folder), QuotaSettings(), look_s=look_s), QuotaSettings(), str(folder))


@pytest.fixture
def output(tmp_path):
    return throttled(tmp_path / "out")


def test_however_many_ask_a_page_is_made_once(output):
    pages = pages_of(output)
    with ThreadPoolExecutor(8) as viewers:
        answers = list(viewers.map(lambda _: pages.answer(NOW, {}, HTML), range(40)))
    assert {answer.body for answer in answers} == {answers[0].body}
    assert pages.made == 1
    assert pages.answer(NOW, {}, HTML, known=answers[0].etag).status == 304


@pytest.mark.parametrize(
    "given", [{"last": "3601"}, {"from": "2026-01-05"}, {"from": "2026-01-05T00:00", "to": "2026-01-05T01:01"}]
)
def test_nobody_waits_for_a_view_of_a_long_range(output, given):
    pages, is_asked, goes_on = pages_of(output), Event(), Event()

    def view(*_):
        is_asked.set()
        assert goes_on.wait(30)
        raise PageError(404, "nothing")

    long = replace(NOW, view=view)
    with ThreadPoolExecutor(2) as viewers:
        held = viewers.submit(pages.answer, long, given, JSON)
        assert is_asked.wait(30)
        assert pages.answer(NOW, {}, JSON).status == 200
        others = [pages.making(long, given, JSON) for _ in range(2 * MOST_AT_ONCE)]
        assert pages.answer(TOPICS, {}, JSON).status == 200
        assert pages.ready(TOPICS, {}, JSON) is not None
        write(output, "topic_usage", TOPIC_USAGE, [usage(20, ORDERS, 1, 1)])
        goes_on.set()
        assert held.result().status == 404
    assert {one.result().status for one in others} == {404}
    assert pages.made == 4  # for all who waited one


def test_a_new_row_makes_a_new_page_but_not_of_views_of_other_tables(output):
    collected(output)
    pages = pages_of(output)
    now, clusters = pages.answer(NOW, {}, HTML), pages.answer(CLUSTERS, {}, HTML)
    write(output, "topic_usage", TOPIC_USAGE, [usage(20, ORDERS, 77, 77)])
    newer = pages.answer(NOW, {}, HTML, known=now.etag)
    assert newer is not None
    assert newer.etag != now.etag
    assert pages.answer(CLUSTERS, {}, HTML, known=clusters.etag).status == 304


def test_a_look_holds_for_a_while(output):
    now_s = [0.0]
    followed = Output(str(output), QuotaSettings(), clock=lambda: now_s[0], look_s=1)
    first = followed.look()
    write(output, "topic_usage", TOPIC_USAGE, [usage(20, ORDERS, 1, 1)])
    assert followed.look() is first
    now_s[0] = 1
    assert followed.look().versions != first.versions


def test_who_waited_for_a_look_that_failed_does_not_try_again(monkeypatch):
    now_s, looks = [0.0], []

    def fails(*_):
        looks.append(now_s[0])
        now_s[0] += 9
        raise OSError("no answer")

    monkeypatch.setattr("headgate.service.pages.output.folders_of", fails)
    followed = Output("out", QuotaSettings(), clock=lambda: now_s[0], look_s=1)
    for at_s in (0, 9, 9.9, 10):
        now_s[0] = at_s
        with pytest.raises(OSError, match="no answer"):
            followed.look()
    assert looks == [0, 10]


def test_a_store_is_waited_for_briefly_from_the_first_look_at_a_table(output, monkeypatch):
    opened = []

    def noted(location, **options):
        opened.append(options)
        return DeltaTable(location, **options)

    monkeypatch.setattr("headgate.service.pages.output.DeltaTable", noted)
    followed = Output(str(output), QuotaSettings())
    assert followed.look().parts
    assert opened == [{"storage_options": BRIEF.of_delta}] * len(followed._followed)
    assert {one._options["retry_timeout"] for one in followed._followed.values()} == {"9s"}


@pytest.mark.usefixtures("no_store")
def test_a_store_that_is_away_is_said_to_all_who_ask_after_one_look(monkeypatch):
    pages, looks = pages_of("s3a://bucket/out", look_s=60), []
    monkeypatch.setattr("headgate.service.pages.output.folders_of", lambda *at: looks.append(at) or folders_of(*at))
    with ThreadPoolExecutor(8) as viewers:
        answers = list(viewers.map(lambda view: pages.answer(view, {}, JSON), [NOW, TOPICS, CLUSTERS] * 4))
    assert {answer.status for answer in answers} == {503}
    assert "the folder s3a://bucket/out/brokers cannot be read" in json.loads(answers[0].body)["reason"]
    assert 1 == len(looks)


@pytest.mark.usefixtures("no_store")
def test_reasons_are_explained_without_a_look_at_the_store():
    answer = pages_of("s3a://bucket/out").ready(REASONS, {}, JSON)
    assert answer is not None
    assert answer.status == 200


def test_each_parameter_and_form_is_an_answer_of_its_own(output):
    pages = pages_of(output)
    given = [({}, HTML), ({}, JSON), ({"last": "60"}, HTML), ({"q": "a"}, HTML), ({"last": "60", "other": "1"}, HTML)]
    assert len({pages.answer(TOPICS, query, form).etag for query, form in given}) == 4
    for number in range(MOST_KEPT + 5):
        pages.answer(CLUSTERS, {"last": str(number + 1)}, HTML)
    assert len(pages._kept) == MOST_KEPT


def test_a_commit_that_is_torn_is_said_until_it_is_whole(output):
    collected(output)
    pages = pages_of(output)
    log = output / "topic_usage" / "_delta_log"
    newest = max(log.glob("*.json"))
    torn = newest.with_name(f"{int(newest.stem) + 1:020}.json")
    torn.write_text('{"add":{"path":"part-0')
    answer = pages.answer(NOW, {}, JSON)
    assert answer.status == 503
    assert "topic_usage cannot be read" in json.loads(answer.body)["reason"]
    assert pages.answer(CLUSTERS, {}, HTML).status == 200
    torn.unlink()
    assert pages.answer(NOW, {}, HTML).status == 200


def test_another_table_in_the_same_place_is_another_answer_though_its_version_is_the_same(output):
    pages = pages_of(output)
    first = pages.answer(TOPICS, {}, JSON)
    shutil.rmtree(output / "topic_usage")
    write(output, "topic_usage", TOPIC_USAGE, [usage(20, CLICKS, 1, 1)])
    answer = pages.answer(TOPICS, {}, JSON, known=first.etag)
    assert [one["topic"] for one in json.loads(answer.body)["data"]["topics"]] == [CLICKS]


def test_a_file_that_is_away_for_a_while_is_said_for_no_longer(output):
    pages = pages_of(output)
    files = list((output / "topic_usage").glob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".away"))
    away = pages.answer(TOPICS, {}, JSON)
    assert (503, "") == (away.status, away.etag)
    for file in files:
        file.with_suffix(".away").rename(file)
    assert pages.answer(TOPICS, {}, JSON, known=away.etag).status == 200


def test_a_table_of_a_later_protocol_is_said(output):
    log = output / "topic_usage" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7} | {
                "readerFeatures": ["of the future"],
                "writerFeatures": ["of the future"],
            }
    log.write_text("\n".join(map(json.dumps, lines)))
    answer = pages_of(output).answer(NOW, {}, JSON)
    assert answer.status == 503
    assert "cannot be read" in json.loads(answer.body)["reason"]


def test_an_output_that_is_made_anew_is_read_anew(output):
    for _ in range(3):
        write(output, "topic_usage", TOPIC_USAGE, [usage(20, ORDERS, 1, 1)])
    pages = pages_of(output)
    assert b"orders" in pages.answer(NOW, {}, HTML).body
    shutil.rmtree(output)
    assert pages.answer(NOW, {}, HTML).status == 503
    write(output, "topic_usage", TOPIC_USAGE, [usage(0, "persistent://a/b/new", 5, 1, throttled_publishes=4)])
    assert DeltaTable(f"{output}/topic_usage").version() == 0
    answer = pages.answer(NOW, {}, HTML)
    assert (answer.status, b"b/new" in answer.body, b"orders" in answer.body) == (200, True, False)


def test_a_range_that_is_none_is_400_in_both_forms(output):
    pages = pages_of(output)
    assert [pages.answer(NOW, {"last": "x"}, form).status for form in (HTML, JSON)] == [400, 400]
