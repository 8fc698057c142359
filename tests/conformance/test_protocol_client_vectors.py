"""Vectors of clients, partitioned producers and formulas hold; the replay sees what does not (throttle-protocol 19)."""

import copy
import json
from pathlib import Path

import pytest

from headgate.conformance.adapters.protocol_formulas import FORMULAS
from headgate.conformance.runner import replay_vector

FILE = Path(__file__).parent / "vectors" / "throttle-protocol.json"
KNOWN = {vector["id"]: vector for vector in json.loads(FILE.read_text())["vectors"]}


def is_ours(vector):
    if vector["kind"] == "formula":
        return all(op["op"] in FORMULAS for op in vector["ops"])
    return vector["kind"] in {"client", "partitioned"}


VECTORS = {vector_id: vector for vector_id, vector in KNOWN.items() if is_ours(vector)}


def mismatches(vector):
    return replay_vector(FILE, vector).mismatches


def changed(vector_id, *path, to):
    vector = copy.deepcopy(KNOWN[vector_id])
    owner = vector
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = to
    return vector


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_vector_holds(vector):
    assert () == mismatches(vector)


@pytest.mark.parametrize(
    ("vector", "path"),
    [
        (changed("client-001", "ops", 1, "out", 0, "until", to=601), "ops[1]"),
        (changed("client-001", "ops", 1, "out", 0, "is_throttled", to=1), "ops[1]"),
        (changed("client-001", "ops", 5, "out", to=[]), "ops[5]"),
        (changed("client-001", "ops", 7, "out", 0, "values", "more{}", to=1), "ops[7]"),
        (changed("client-002", "ops", 1, "out", 0, "remaining_ms", to=449), "ops[1]"),
        (changed("client-001", "ops", 0, "op", to="pause"), "ops[0]"),
        (changed("client-026", "config", "send_timeout_ms", to=0), "config"),
        (changed("client-001", "config", "send_timeout_s", to=30), "config"),
        (changed("partitioned-001", "ops", 1, "out", 0, "throttled", to=[]), "ops[1]"),
        (changed("formula-011", "ops", 1, "out", 0, "throttled_ms", to=801), "ops[1]"),
        (changed("formula-012", "ops", 0, "op", to="split"), "ops[0]"),
    ],
)
def test_what_does_not_hold_is_reported_at_its_place(vector, path):
    assert path == mismatches(vector)[0].path


def test_what_an_operation_lacks_is_for_the_machine_to_refuse():
    vector = changed("client-001", "ops", to=[{"op": "probe", "out": []}, {"op": "throttle", "at": 1, "out": []}])

    assert [
        [{"out": "rejected", "at": None, "error": "bad_time"}],
        [{"out": "rejected", "at": 1, "error": "bad_request_id"}],
    ] == [mismatch.got for mismatch in mismatches(vector)]
