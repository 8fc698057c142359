"""Every vector of allocations and rounds holds, and the replay sees what does not hold (resource-groups 18)."""

import copy
import json
from pathlib import Path

import pytest

from headgate.conformance.runner import replay_vector
from headgate.errors import ConformanceError

FILE = Path(__file__).parent / "vectors" / "resource-groups.json"
KINDS = ("allocate", "rounds")
VECTORS = {vector["id"]: vector for vector in json.loads(FILE.read_text())["vectors"] if vector["kind"] in KINDS}


def mismatches(vector):
    return replay_vector(FILE, vector).mismatches


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_vector_holds(vector):
    assert () == mismatches(vector)


def changed(vector_id, *path, to):
    vector = copy.deepcopy(VECTORS[vector_id])
    owner = vector
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = to
    return vector


@pytest.mark.parametrize(
    ("vector", "path"),
    [
        (changed("allocate.maxmin.fits", "expected", "limits", 0, to=81), "expected"),
        (changed("allocate.maxmin.fits", "expected", to={"error": "bad_value"}), "expected"),
        (changed("allocate.maxmin.fits", "inputs", "Q", to=99.5), "expected"),
        (changed("allocate.maxmin.fits", "config", "profile", to="unknown"), "expected"),
        (changed("rounds.fair-70-30", "expected", "limits", 3, to=[50, 51]), "limits[3]"),
        (changed("rounds.fair-70-30", "expected", "limits", 0, 0, to=None), "limits[0]"),
        (changed("rounds.fair-70-30", "expected", "metrics", "usefulShare", to=0.97501), "metrics.usefulShare"),
        (changed("rounds.fair-70-30", "expected", "metrics", "roundsTo1", to=None), "metrics.roundsTo1"),
        (changed("rounds.fair-70-30", "expected", "metrics", to={}), "metrics"),
        (changed("rounds.fair-70-30", "rounds", 0, "repeat", to=7), "limits"),
        (changed("rounds.fair-70-30", "inputs", "initial", to=[1]), "expected"),
    ],
)
def test_what_does_not_hold_is_reported_at_its_place(vector, path):
    assert path == mismatches(vector)[0].path


def test_metrics_within_the_tolerance_are_equal():
    assert () == mismatches(changed("rounds.fair-70-30", "expected", "metrics", "usefulShare", to=0.9750005))


def test_a_broken_call_fails_its_vector_alone():
    found = mismatches(changed("allocate.maxmin.fits", "inputs", to={}))

    assert {"crash": "KeyError: 'Q'"} == found[0].got


@pytest.mark.parametrize(
    "vector",
    [
        changed("rounds.fair-70-30", "rounds", 0, "events", to=[{"op": "flood"}]),
        changed("rounds.fair-70-30", "rounds", to=None),
        changed("allocate.maxmin.fits", "inputs", to=None),
    ],
)
def test_a_malformed_vector_is_an_error(vector):
    with pytest.raises(ConformanceError, match="malformed"):
        mismatches(vector)
