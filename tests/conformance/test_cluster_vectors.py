"""Every vector of demand, water level and pushes holds (clusters 2, 3.1, 3.2)."""

from pathlib import Path

import pytest

from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors

FILE = Path(__file__).parent / "vectors" / "clusters.json"
VECTORS = read_vectors(FILE)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector_holds(vector):
    assert replay_vector(FILE, vector).mismatches == ()


def test_all_kinds_are_there():
    assert {vector["kind"] for vector in VECTORS} == {"level", "demand", "push", "bursts"}
