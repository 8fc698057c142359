"""Every vector of the entry cache holds, also with the cache stored and loaded between any two rows."""

import json
from functools import partial
from pathlib import Path

import pytest

from headgate.conformance.adapters.cache_parts import ManagerAdapter
from headgate.conformance.adapters.cache_trace import cache_of, replay_trace
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors
from headgate.conformance.wanted import replay_wanted
from headgate.core.cache.broker import Cache
from headgate.core.cache.state import dump, load
from headgate.errors import ConformanceError

FILE = Path(__file__).parent / "vectors" / "entry-cache.json"
VECTORS = read_vectors(FILE)
TRACES = [vector for vector in VECTORS if vector["kind"] == "cache_trace"]


def through_json(state):
    return json.loads(json.dumps(state, allow_nan=False))


class StoredBetweenRows:
    """A cache that goes through JSON now and then. places: before each row of so many, and which of them."""

    def __init__(self, places, config):
        self._cache = cache_of(config)
        self._every, self._first = places
        self._rows = 0

    def _store(self):
        self._rows += 1
        if self._rows % self._every == self._first and isinstance(self._cache, Cache):
            self._cache = load(through_json(dump(self._cache)))

    def feed(self, row):
        self._store()
        return self._cache.feed(row)

    def advance(self, t_us):
        self._store()
        return self._cache.advance(t_us)

    def __getattr__(self, name):
        return getattr(self._cache, name)


def by_id(vectors):
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


@pytest.mark.parametrize("vector", by_id(VECTORS))
def test_vector_holds(vector):
    assert replay_vector(FILE, vector).mismatches == ()


@pytest.mark.parametrize("places", [(7, 3), pytest.param((1, 0), marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("vector", by_id(TRACES))
def test_vector_holds_with_the_cache_stored_between_rows(vector, places):
    assert replay_trace(partial(StoredBetweenRows, places), vector) == []


def test_a_value_that_a_kind_does_not_tell_makes_a_vector_malformed():
    vector = {"config": {"max": 10, "watermark": 0.9}, "ops": [{"op": "check", "want": {"triger": 9}}]}

    with pytest.raises(ConformanceError, match="triger"):
        replay_wanted(ManagerAdapter, vector)
