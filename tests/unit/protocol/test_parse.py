"""Raw rows to inputs of the protocol's machines: typed columns of a table, or JSON objects of exactly their types."""

import json
from functools import partial

import pyarrow as pa
import pytest

from headgate.protocol.parse import UNPARSED, other_types, parse_inputs
from headgate.protocol.schemas import INPUTS
from headgate.rows.batches import NOT_UTF8, parsed
from headgate.rows.json_lines import HALF_CHARACTER
from headgate.rows.raw import RAW_CHARACTERS, typed
from unit.protocol.runs import given

UNTIL_MS = 10_000
LETTER = ("reason", "raw", "source", "offset")
TRIPS = [{"reason": 1, "ordinal": 2, "buckets": [{"balance": -3, "rate": None}]}]


def of_records(*values):
    texts = [value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    columns = [pa.array(texts, pa.binary()), pa.repeat("topic/0", len(texts)), pa.array(range(len(texts)), pa.int64())]
    batch = pa.record_batch(columns, ["value", "source", "offset"])
    (part,) = parsed(partial(parse_inputs, until_ms=UNTIL_MS), "kafka", INPUTS, [batch])
    return part


def of_columns(**columns):
    whole = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    places = pa.repeat("table", len(whole)), pa.nulls(len(whole), pa.int64())
    return parse_inputs(typed(whole, *places), UNTIL_MS)


def test_rows_that_cannot_be_read_and_rows_dated_ahead_are_dead_letters():
    ahead = given("publish", UNTIL_MS)
    rows, letters = of_records(given("publish", UNTIL_MS - 1), ahead, b"{", None, given("publish", None, None))
    assert [UNTIL_MS - 1, None] == rows["at_ms"].to_pylist()
    expected = [
        (UNPARSED, "{", "topic/0", 2),
        (UNPARSED, None, "topic/0", 3),
        ("bad_time: got 10000, allowed is up to 9999", json.dumps(ahead), "topic/0", 1),
    ]
    assert expected == [tuple(letter[name] for name in LETTER) for letter in letters.to_pylist()]


def test_a_row_of_a_table_that_is_dated_ahead_is_shown_whole():
    _, letters = of_columns(at_ms=pa.array([1, UNTIL_MS]), note=["x", "y" * RAW_CHARACTERS])
    (letter,) = letters.to_pylist()
    shown = f'{{"at_ms":{UNTIL_MS},"note":"{"y" * RAW_CHARACTERS}'
    assert (shown[:RAW_CHARACTERS], "table") == (letter["raw"], letter["source"])


@pytest.mark.parametrize("neighbour", [None, b"{"], ids=["alone", "beside a bad one"])
@pytest.mark.parametrize(
    ("odd", "is_good"),
    [
        ({"trips": TRIPS}, True),
        ({"trips": [None]}, True),
        ({"trips": [{"reason": 2**31}]}, False),
        ({"trips": [{"reason": -(2**31)}]}, True),
        ({"trips": {}}, False),
        ({"trips": [1]}, False),
        ({"at_ms": 5.0}, False),
        ({"at_ms": "5"}, False),
        ({"at_ms": 2**63}, False),
        ({"producer_id": True}, False),
        ({"supports_throttle": 1}, False),
        ({"supports_throttle": True}, True),
        ({"more": [1, {}]}, True),
    ],
)
def test_a_value_of_another_type_makes_the_record_a_dead_letter(odd, is_good, neighbour):
    record = given("publish", 1) | odd
    rows, letters = of_records(record, *([neighbour] if neighbour else []))
    assert is_good == (len(rows) == 1)
    if is_good:
        (row,) = rows.to_pylist()
        wanted = record.get("trips")
        assert wanted is None or json.dumps(wanted[0]) == json.dumps(
            {name: row["trips"][0][name] for name in wanted[0]} if wanted[0] else row["trips"][0]
        )
    else:
        assert [UNPARSED] * len(letters) == letters["reason"].to_pylist()


def test_a_number_for_a_text_is_its_text():
    rows, letters = of_records(given("publish", 1) | {"connection": 7})
    assert (["7"], 0) == (rows["connection"].to_pylist(), len(letters))


@pytest.mark.parametrize("neighbour", [[], [b"{"]], ids=["alone", "beside a bad one"])
@pytest.mark.parametrize(
    ("record", "reason"),
    [(b'{"connection": "a\\ud800"}', HALF_CHARACTER), (b'{"connection": "a\xff"}', NOT_UTF8)],
)
def test_half_of_a_character_and_what_is_not_utf_8_make_no_name(record, reason, neighbour):
    rows, letters = of_records(given("publish", 1), record, *neighbour)
    assert ([1], reason) == (rows["at_ms"].to_pylist(), letters["reason"][0].as_py())


def test_integers_of_any_width_are_read_and_null_where_they_are_too_large():
    buckets = pa.array(
        [[{"balance": 1, "rate": 2}], None], pa.list_(pa.struct([("balance", pa.int16()), ("rate", pa.int8())]))
    )
    rows, _ = of_columns(at_ms=pa.array([1, 2], pa.int32()), reason=pa.array([2**31, 3]), buckets=buckets)
    assert INPUTS == rows.schema
    assert [(1, None, [{"balance": 1, "rate": 2}]), (2, 3, None)] == [
        (row["at_ms"], row["reason"], row["buckets"]) for row in rows.to_pylist()
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.list_(pa.int64())])
def test_columns_of_another_type_are_found_by_name(kind):
    found = pa.schema([("at_ms", kind), ("kind", pa.string()), ("another", kind), ("reason", pa.null())])
    assert [("at_ms", kind, pa.int64())] == [(got.name, got.type, wanted.type) for got, wanted in other_types(found)]


def test_structs_have_their_fields_in_their_order():
    trips = INPUTS.field("trips").type.value_type
    turned = pa.list_(pa.struct([trips.field(number) for number in (1, 0, 2)]))
    assert ["trips"] == [got.name for got, _ in other_types(pa.schema([("trips", turned)]))]
    assert [] == other_types(INPUTS)
