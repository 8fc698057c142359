"""The array form of publish limiters gives every result of the vectors, and of the readable form at random."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from examples import examples
from headgate.conformance.kernel_publish_limiter import build_array_form
from headgate.conformance.report import VectorOutcome
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors
from headgate.errors import CoreError
from unit.core.traces import publish_traces, quick, run

FILE = Path(__file__).parents[2] / "conformance" / "vectors" / "rate-limiters.json"
LIMITERS = [vector for vector in read_vectors(FILE) if vector["kind"] == "publish_limiter"]


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["id"]) for vector in LIMITERS])
def test_vector_holds(vector):
    result = replay_vector(FILE, vector, kernel=True)
    assert (result.mismatches, result.outcome) == ((), VectorOutcome.PASSED)


def on_arrays(trace):
    config, ops = trace
    limiters = build_array_form(config)
    for operation in ops:
        arguments = {name: value for name, value in operation.items() if name not in {"op", "at_ns"}}
        try:
            result = limiters.perform(operation["op"], operation["at_ns"], arguments)
        except CoreError as refused:
            result = {"error": refused.code}
        yield list(result) if isinstance(result, tuple) else result


@settings(quick, max_examples=examples(60))
@given(publish_traces)
def test_random_operations_have_the_results_of_the_readable_form(trace):
    assert run("publish_limiter", trace) == list(on_arrays(trace))


@pytest.mark.parametrize("auto_drain", [True, False])
def test_queues_outgrow_the_room_that_they_began_with(auto_drain):
    config = {
        "created_ns": 0,
        "auto_drain": auto_drain,
        "limiters": [{"name": "t", "scope": "topic", "messages": 10, "bytes": 0}],
        "producers": [{"name": name, "connection": "c", "limiters": ["t"]} for name in ("p", "q")],
    }
    ops = [
        {"op": "publish", "producer": "pq"[i % 2], "messages": 9, "bytes": 0, "at_ns": i * 1000} for i in range(2000)
    ]
    ops += [{"op": "queue", "limiter": "t", "at_ns": 10**9}, {"op": "drain", "limiter": "t", "at_ns": 10**13}]
    trace = config, [*ops, {"op": "releases", "at_ns": 10**13}]

    assert run("publish_limiter", trace) == list(on_arrays(trace))
