"""The operations `encode` and `decode` of vectors."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.conformance.adapters.protocol_formulas import decode_of, encode_of

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "throttle-protocol.json"
OPERATIONS = {"encode": encode_of, "decode": decode_of}
IN_VECTORS = [
    op for vector in json.loads(VECTORS.read_text())["vectors"] for op in vector["ops"] if op["op"] in OPERATIONS
]


@pytest.mark.parametrize("op", IN_VECTORS, ids=lambda op: f"{op['op']} {op.get('hex', op.get('fields'))}")
def test_an_operation_of_the_vectors_emits_what_they_say(op: dict[str, Any]) -> None:
    assert op["out"] == [OPERATIONS[op["op"]](op)]


def test_the_vectors_hold_both_operations() -> None:
    assert {op["op"] for op in IN_VECTORS} == OPERATIONS.keys()
