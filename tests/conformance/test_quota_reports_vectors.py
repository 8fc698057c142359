"""Vectors of reports, usage map, attachments and admin hold, also when the map is stored between any two messages."""

import json
from pathlib import Path

import pytest

from headgate.conformance.adapters import quota_reports
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors
from headgate.core.quota.usage.usage_map import UsageMap

FILE = Path(__file__).parent / "vectors" / "resource-groups.json"
KINDS = ("report_decision", "usage_map", "resolve_group", "admin")
VECTORS = [vector for vector in read_vectors(FILE) if vector["kind"] in KINDS]


def by_id(vectors):
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


@pytest.mark.parametrize("vector", by_id(VECTORS))
def test_vector_holds(vector):
    assert replay_vector(FILE, vector).mismatches == ()


@pytest.mark.parametrize("vector", by_id(vector for vector in VECTORS if vector["kind"] == "usage_map"))
def test_vector_holds_with_the_map_stored_between_any_two_messages(vector, monkeypatch):
    receive = quota_reports.receive

    def receive_and_store(usage_map, message):
        receive(usage_map, message)
        stored = json.dumps(usage_map.state(), allow_nan=False)
        again = UsageMap.from_state(json.loads(stored), usage_map.parameters)
        for name in ("_brokers", "_expiry_due_ms", "_groups", "dropped"):
            setattr(usage_map, name, getattr(again, name))

    monkeypatch.setattr(quota_reports, "receive", receive_and_store)
    assert replay_vector(FILE, vector).mismatches == ()


def test_all_four_kinds_have_vectors():
    assert set(KINDS) == {vector["kind"] for vector in VECTORS}
