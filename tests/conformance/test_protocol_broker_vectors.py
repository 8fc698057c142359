"""Every vector of the broker's machine holds, also with connections stored and loaded between any two operations."""

import json
from pathlib import Path

import pytest

from headgate.conformance.adapters.protocol_broker import BrokerAdapter
from headgate.conformance.emitted import replay_emitted
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors
from headgate.core.protocol.broker.connection import Connection

FILE = Path(__file__).parent / "vectors" / "throttle-protocol.json"
VECTORS = [pytest.param(vector, id=vector["id"]) for vector in read_vectors(FILE) if vector["kind"] == "broker"]


class StoredBetweenOperations(BrokerAdapter):
    """Connections that live for one operation, and go through JSON before the next one."""

    def perform(self, op, arguments):
        emitted = super().perform(op, arguments)
        stored = json.dumps({name: connection.state() for name, connection in self.connections.items()})
        self.connections = {
            name: Connection.from_state(state, self.metrics) for name, state in json.loads(stored).items()
        }
        return emitted


@pytest.mark.parametrize("vector", VECTORS)
def test_vector_holds(vector):
    assert replay_vector(FILE, vector).mismatches == ()


@pytest.mark.parametrize("vector", VECTORS)
def test_vector_holds_with_the_state_stored_between_any_two_operations(vector):
    assert replay_emitted(StoredBetweenOperations, vector) == []


def test_an_advance_at_a_bad_time_is_refused_once():
    adapter = BrokerAdapter({})

    assert adapter.perform("advance", {"at": -1}) == [{"out": "rejected", "at": -1, "conn": None, "error": "bad_time"}]
