"""Kinds whose vectors are one call: what came of it, beside what was expected (resource-groups 18)."""

from typing import Any

from headgate.conformance.equality import json_equal
from headgate.conformance.report import Mismatch
from headgate.conformance.vector_file import Vector, field_of


def replay_call(factory: Any, vector: Vector) -> list[Mismatch]:
    """Call `factory(config, inputs)` and compare its JSON. Raises ConformanceError for a malformed vector."""
    expected = field_of(vector, "expected", dict)
    config, inputs = field_of(vector, "config", dict), field_of(vector, "inputs", dict)
    try:
        got = factory(config, inputs)
    except Exception as crash:  # noqa: BLE001  one broken call must not hide the other vectors
        got = {"crash": f"{type(crash).__name__}: {crash}"}
    return [] if json_equal(expected, got) else [Mismatch("expected", vector["kind"], expected, got)]
