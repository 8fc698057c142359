"""Raw cache events to rows that the rules can judge: values that cannot be read are out of range, a row without a place
in the order is a dead letter.
"""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
import pytest

from headgate.cache.events.parse import parse_cache_events
from headgate.cache.schemas import INPUT
from headgate.conf import InputSettings
from headgate.rows.batches import parsed
from headgate.rows.raw import typed

MAX_BYTES, TTL = "headgate.cache.maxBytes", "managedLedgerCacheEvictionTimeThresholdMillis"
NINE = {"event_time": "2026-01-05T09:00:00Z", "broker": "broker-1", "seq": 1}
ADD = NINE | {"kind": "add", "topic": "t", "ledger": 0, "entry": 0, "count": 1}


def at(number):
    return datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(microseconds=number)


def of_lines(*rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    batch = pa.record_batch(
        [pa.array([line.encode() for line in lines]), pa.repeat("f", len(lines))], ["value", "source"]
    )
    (part,) = parsed(partial(parse_cache_events, settings=InputSettings()), "json", INPUT, [batch])
    return part


def of_columns(table):
    columns = [column if isinstance(column, pa.Array) else pa.array(column) for column in table.values()]
    whole = pa.StructArray.from_arrays(columns, list(table))
    return parse_cache_events(
        typed(whole, pa.repeat("f", len(whole)), pa.nulls(len(whole), pa.int64())), InputSettings()
    )


@pytest.mark.parametrize(
    ("sizes", "expected", "is_odd"),
    [
        ([1], [1], False),
        (" [ 1 , 2 ]", [1, 2], False),
        (None, None, False),
        (1, [], True),
        ([1.0], [], True),
        (["1"], [], True),
        ([True], [], True),
        ("[1", [], True),
        ([2**63], [], False),  # a list of digits: only its sizes say that it is out of range
        ([], [], True),
        ([0], [0], False),
        ([1, None], [], True),
        ([-1], [-1], True),
        ("[" * 100_000, [], True),
    ],
)
def test_sizes_are_lists_of_whole_numbers_or_none_at_all(sizes, expected, is_odd):
    (row,) = of_lines(ADD | {"sizes": sizes}).rows.to_pylist()
    assert (expected, is_odd) == (row["sizes"], row["raw"] is not None)


@pytest.mark.parametrize(
    ("kind", "odd", "read"),
    [(pa.int32(), [-1], [-1]), (pa.uint64(), [1, 2**63 + 1], [])],
)
@pytest.mark.parametrize("others", [[[5, 6], [7]], [[5, 6], None, [], [1, None], [7]]])
def test_lists_of_whole_numbers_stay_lists_and_odd_ones_are_shown(kind, odd, read, others):
    sizes = [*others, odd]
    table = {
        "event_time": [at(number) for number in range(len(sizes))],
        "seq": list(range(len(sizes))),
        "broker": ["b"] * len(sizes),
        "kind": ["add"] * len(sizes),
        "sizes": pa.array(sizes, pa.list_(kind)),
    }
    rows = of_columns(table).rows.to_pylist()
    expected = [[] if one and None in one else one for one in others]
    assert [*expected, read] == [row["sizes"] for row in rows]
    assert [*(one == [] for one in expected), True] == [row["raw"] is not None for row in rows]


def test_typed_columns_are_read_or_become_values_out_of_range():
    """Of any type that a table may have; a null stays one, and what a row needs is for the rules to say."""
    table = {
        "event_time": [at(0), at(1), at(2)],
        "seq": pa.array([0, 1, 2], pa.int32()),
        "broker": ["b", "b", None],
        "kind": ["add", "conf", "close"],
        "ledger": [1.0, 1.5, None],
        "count": [True, None, False],
        "sizes": pa.array([[5.0, 6.0], None, []], pa.list_(pa.float64())),
        "conf": pa.array([None, [(MAX_BYTES, "5"), (TTL, "true")], None], pa.map_(pa.string(), pa.string())),
    }
    rows, letters = of_columns(table)
    names = ("seq", "topic", "ledger", "entry", "count", "sizes", "conf")
    assert [
        (0, None, 1, None, -1, [], None),
        (1, None, -1, None, None, None, f'{{"{MAX_BYTES}":5,"{TTL}":true}}'),
    ] == [tuple(row[name] for name in names) for row in rows.to_pylist()]
    assert [True, True] == [
        row["raw"].startswith('{"event_time":"2026-01-05T09:00:00.00000') for row in rows.to_pylist()
    ]
    (letter,) = letters.to_pylist()
    assert "bad_row: broker: got null, allowed is a name" == letter["reason"]
    assert json.loads(letter["raw"]) | {"sizes": [], "count": False, "kind": "close"} == json.loads(letter["raw"])


def test_a_conf_is_the_text_of_its_object():
    conf = {MAX_BYTES: 5, TTL: 1.5, "x": [None, {"y": "z"}]}
    (row,) = of_lines(NINE | {"kind": "conf", "conf": conf}).rows.to_pylist()
    assert json.dumps(conf, separators=(",", ":")) == row["conf"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            ADD | {"seq": None, "broker": " "},
            "seq: got null, allowed is a whole number of 64 bits; broker: got  , allowed is a name",
        ),
        (
            ADD | {"event_time": "tomorrow"},
            "event_time: got tomorrow, allowed is ISO 8601 with a zone, or whole microseconds since 1970",
        ),
        ("no JSON", "the line is not a JSON object"),
    ],
)
def test_a_row_without_a_place_in_the_order_is_a_dead_letter(line, reason):
    rows, letters = of_lines(ADD, " ", line)
    (letter,) = letters.to_pylist()
    assert ([1], f"bad_row: {reason}", 3) == (rows["offset"].to_pylist(), letter["reason"], letter["offset"])


@pytest.mark.parametrize(
    ("odd", "name", "value"),
    [
        ({"topic": {}}, "topic", ""),
        ({"cursor": [1]}, "cursor", ""),
        ({"ledger": "x"}, "ledger", -1),
        ({"kind": "sneeze"}, "kind", "sneeze"),
    ],
)
def test_a_value_that_cannot_be_read_is_out_of_range_and_the_row_is_kept_as_it_was(odd, name, value):
    (row, plain) = of_lines(ADD | odd, ADD).rows.to_pylist()
    assert (value, ADD | odd) == (row[name], json.loads(row["raw"]))
    assert plain["raw"] is None
