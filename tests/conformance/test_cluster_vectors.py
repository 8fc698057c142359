"""Every vector of demand, water level and pushes holds (clusters 2, 3.1, 3.2)."""

import json
from pathlib import Path

import pytest

from headgate.core.clusters.demand import Look, demand
from headgate.core.clusters.level import Wanted, water_level
from headgate.core.clusters.pushes import Limit, Pushed, next_push, without_bursts

VECTORS = json.loads((Path(__file__).parent / "vectors" / "clusters.json").read_text())["vectors"]


def limit(told):
    return None if told is None else Limit(**told)


def push(pushes, level, target, now_us, is_wanted):
    made = [Pushed(one["at_us"], limit(one["limit"])) for one in pushes]
    found = next_push(made, limit(level), limit(target), now_us, is_wanted=is_wanted)
    return found and found._asdict()


REPLAYED = {
    "level": lambda quota, demands, weights: {
        "level": water_level([Wanted(*one) for one in zip(demands, weights, strict=True)], quota)
    },
    "demand": lambda looks, averaged_us: {"demand": demand([Look(**look) for look in looks], averaged_us)},
    "push": lambda **inputs: {"limit": push(**inputs)},
    "bursts": lambda quota, pushes: {"quota": without_bursts(quota, pushes)},
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector_holds(vector):
    assert REPLAYED[vector["kind"]](**vector["inputs"]) == vector["expected"]


def test_all_kinds_are_there():
    assert {vector["kind"] for vector in VECTORS} == set(REPLAYED)
