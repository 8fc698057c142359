"""What limiters say, line by line."""

import json
from typing import Any

import pytest

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import Input, Trip
from headgate.errors import InvalidArgument
from headgate.gate.control_rows import row_of, told

BUCKETS = [{"balance": -5, "rate": 10}]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"kind": "open", "producer_id": 1, "topic": "t"}, inputs.Open(9, 1, "t")),
        ({"kind": "publish", "producer_id": 1}, inputs.Publish(9, 1)),
        (
            {"kind": "mark", "producer_id": 1, "trips": [{"reason": 0, "ordinal": 2, "buckets": BUCKETS}]},
            inputs.Mark(9, 1, [Trip(0, 2, [(-5, 10)])]),
        ),
        ({"kind": "mark", "producer_id": 1, "trigger": False}, inputs.Mark(9, 1, [], trigger=False)),
        ({"kind": "quote", "producer_id": 1, "reason": 1, "buckets": BUCKETS}, inputs.Quote(9, 1, 1, [(-5, 10)])),
        ({"kind": "unmark", "producer_id": 1, "reason": 1, "ordinal": 2}, inputs.Unmark(9, 1, 1, 2)),
        ({"kind": "condition_set", "reason": 4, "ordinal": 1, "producer_id": 3}, inputs.ConditionSet(9, 4, 1, 3)),
        ({"kind": "condition_clear", "reason": 4, "ordinal": 1}, inputs.ConditionClear(9, 4, 1)),
        ({"kind": "close_producer", "producer_id": 1}, inputs.CloseProducer(9, 1)),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_line_is_an_input_at_the_gates_time(row: dict[str, Any], expected: Input) -> None:
    connection, make = told(row_of(json.dumps(row | {"connection": "c"}).encode()))
    assert (connection, make(9)) == ("c", expected)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no JSON"),
        ("\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "got a list"),
        ('{"connection": "c"}', "kind: got None"),
        ('{"kind": "receipt", "connection": "c"}', "kind: got 'receipt'"),
        ('{"kind": "publish"}', "connection: got None"),
        ('{"kind": "publish", "connection": "c", "producer": 1}', "did you mean producer_id"),
        ('{"kind": "publish", "connection": "c", "at_ms": 1}', "leave it out"),
        ('{"kind": "mark", "connection": "c", "trips": 1}', "trips: got 1"),
        ('{"kind": "mark", "connection": "c", "trips": [1]}', "a list of objects"),
        ('{"kind": "mark", "connection": "c", "trips": [{"buckets": [[1, 2]]}]}', "buckets: got"),
        ('{"kind": "mark", "connection": "c", "trips": [{"n": 1}]}', "trips: got 'n'"),
    ],
    ids=str,
)
def test_what_is_no_input_is_refused_in_words(line: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words.replace("[", r"\[")):
        told(row_of(line.encode("latin-1")))
