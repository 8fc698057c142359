"""How long the admin API waits for a store, and what it says of a change that the store did not answer."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.core.quota.admin.request import BASE, Request
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.tables import delta
from headgate.service import admin
from headgate.service.admin import Admin
from headgate.stores import BRIEF_IF_SMALL
from stub_store import waits
from unit.quota.places import tables

TOKEN = "secret"
TIMEOUT_S = 30
AWAY, DAMAGED = "Generic S3 error: operation timed out", "no JSON"


@pytest.fixture
def output(tmp_path):
    tables(tmp_path)
    write_deltalake(f"{tmp_path}/counters", pa.table({"topic": ["persistent://acme/orders/new"]}))
    return str(tmp_path)


def served(output, **more):
    return Admin(output, QuotaSettings(), frozenset({TOKEN}), print, **more)


def put(name, rate=10):
    return Request("PUT", f"{BASE}resourcegroups/{name}", TOKEN, "{}", {"publishRateInMsgs": rate})


def test_no_table_is_waited_for_longer_than_a_client_waits(output, monkeypatch):
    """Also where somebody else writes at the same time, and where traffic says if a tenant is there."""
    first, waited = served(output), waits(monkeypatch)

    def second(*given, **more):
        monkeypatch.setattr(delta, "write_deltalake", write_deltalake)
        assert first.answer(put("silver")).status == 204
        write_deltalake(*given, **more)

    monkeypatch.setattr(delta, "write_deltalake", second)
    assert served(output).answer(put("gold")).status == 204
    assert first.answer(Request("POST", f"{BASE}tenants/acme/resourcegroup/gold", TOKEN)).status == 204
    assert len(waited) > 20
    assert all(one == BRIEF_IF_SMALL.of_delta for one in waited)


@pytest.mark.parametrize(("error", "tries"), [(AWAY, 2), (DAMAGED, 3)])
def test_who_waited_for_a_request_that_a_store_did_not_answer_does_not_try_again(output, monkeypatch, error, tries):
    """Who comes later does. Nothing was done for any of them."""
    has_begun, another_waits, tried = Event(), Event(), []
    seconds = itertools.count()

    def clock():
        if (now_s := next(seconds)) == 1:
            another_waits.set()
        return now_s

    def failing(*_):
        has_begun.set()
        assert another_waits.wait(TIMEOUT_S)
        tried.append(1)
        raise TableError("so it is") from OSError(error)

    monkeypatch.setattr(admin, "opened_config", failing)
    api = served(output, clock=clock)
    with ThreadPoolExecutor(2) as clients:
        one = clients.submit(api.answer, put("gold"))
        assert has_begun.wait(TIMEOUT_S)
        answers = [clients.submit(api.answer, put("gold")).result(), one.result(), api.answer(put("gold"))]
    assert [answer.status for answer in answers] == [503] * 3
    assert len(tried) == tries
    assert not any("not known" in answer.json["reason"] for answer in answers)


@pytest.mark.parametrize(("error", "is_known"), [(AWAY, False), ("Permission denied", True)])
def test_a_change_that_a_store_does_not_answer_may_be_done_and_its_answer_says_so(output, monkeypatch, error, is_known):
    def failing(*_, **__):
        raise OSError(error)

    monkeypatch.setattr(delta, "write_deltalake", failing)
    answer = served(output).answer(put("gold"))
    assert answer.status == 503
    assert ("whether this was done is not known" not in answer.json["reason"]) == is_known
