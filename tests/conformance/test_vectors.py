"""Every vector holds on the public core, also when the state is stored and loaded between any two operations."""

import json
from pathlib import Path

import pytest

from headgate.conformance.registry import RATE_LIMITERS
from headgate.conformance.runner import replay_vector
from headgate.conformance.timed import replay_timed
from headgate.conformance.vector_file import read_vectors

FILE = Path(__file__).parent / "vectors" / "rate-limiters.json"
VECTORS = read_vectors(FILE)
LONG_REPEATS = 5_000


class StoredBetweenOperations:
    """An adapter that lives for one operation: the object goes through JSON before the next one."""

    def __init__(self, kind, config):
        self._operations = kind.operations
        self._object = kind.build(config)

    def perform(self, op, at_ns, arguments):
        try:
            return self._operations(self._object).perform(op, at_ns, arguments)
        finally:
            stored = json.dumps(self._object.state(), allow_nan=False)
            self._object = type(self._object).from_state(json.loads(stored))


def operation_count(ops):
    return sum(operation_count(op["ops"]) * op["times"] if op["op"] == "repeat" else 1 for op in ops)


def by_id(vectors):
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


@pytest.mark.parametrize("vector", by_id(VECTORS))
def test_vector_holds(vector):
    assert replay_vector(FILE, vector).mismatches == ()


@pytest.mark.parametrize(
    "vector", by_id(vector for vector in VECTORS if operation_count(vector["ops"]) <= LONG_REPEATS)
)
def test_vector_holds_with_the_state_stored_between_any_two_operations(vector):
    kind = RATE_LIMITERS[vector["kind"]]

    assert replay_timed(lambda config: StoredBetweenOperations(kind, config), vector) == []


def test_all_kinds_of_the_specification_are_replayed():
    assert set(RATE_LIMITERS) == {vector["kind"] for vector in VECTORS}
