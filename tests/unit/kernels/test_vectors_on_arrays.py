"""The array forms give every result of the vectors of their kinds."""

from pathlib import Path

import pytest

from headgate.conformance.report import VectorOutcome
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors

FILE = Path(__file__).parents[2] / "conformance" / "vectors" / "rate-limiters.json"
BUCKETS = [vector for vector in read_vectors(FILE) if vector["kind"] == "token_bucket"]


def is_first_generation(vector):
    return vector["config"].get("profile") == "pip322"


@pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=vector["id"]) for vector in BUCKETS if not is_first_generation(vector)]
)
def test_vector_holds(vector):
    result = replay_vector(FILE, vector, kernel=True)
    assert (result.mismatches, result.outcome) == ((), VectorOutcome.PASSED)


def test_vectors_of_the_first_generation_are_skipped_with_a_reason():
    reasons = {
        replay_vector(FILE, vector, kernel=True).skip_reason for vector in BUCKETS if is_first_generation(vector)
    }
    assert reasons == {"profile pip322 has no array form"}
