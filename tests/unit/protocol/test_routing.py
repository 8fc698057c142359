"""Rows on their way to the protocol's keys: a connection has one, time goes to all, bad rows are told."""

import json

import pyarrow as pa

from headgate.protocol.routing import SLOTS, UNPARSED, pack_inputs, pack_marks, pack_ticks
from headgate.protocol.schemas import INPUTS, TIME
from headgate.throttle.blocks import decode
from headgate.throttle.schemas import DEAD_LETTERS, MARKS
from headgate.throttle.slots import slot_keys
from unit.protocol.runs import A, given, mark_row

UNTIL_MS = 10_000


def packed(batches):
    """Rows by kind and key."""
    found = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["kind"], {}).setdefault(row["key"], []).extend(decode(row["block"]).to_pylist())
    return found


def of_inputs(*rows):
    schema = INPUTS.append(pa.field("raw", pa.string()))
    batches = pa.Table.from_pylist(list(rows), schema).to_batches(max_chunksize=2)
    return packed(pack_inputs(UNTIL_MS, iter(batches)))


def test_inputs_and_marks_of_one_connection_meet():
    inputs = of_inputs(given("connect", 1), given("publish", 3), given("publish", 2, "elsewhere"))
    marks = packed(pack_marks(pa.Table.from_pylist([mark_row(5_999_999)], MARKS).to_batches()))
    (key,) = [key for key, rows in inputs["inputs"].items() if rows[0]["connection"] == A]

    assert [1, 3] == [row["at_ms"] for row in inputs["inputs"][key]]
    assert {key} == set(marks["marks"])
    assert {"source": "marks", "at_ms": 5, "finish": False} == marks["time"][key][0]


def test_a_connection_has_the_slot_that_checkpoints_know_it_by():
    (batch,) = pack_marks(pa.Table.from_pylist([mark_row(1)], MARKS).to_batches())

    assert {slot_keys(SLOTS)[1]} == {row["key"] for row in batch.to_pylist() if row["kind"] == "marks"}


def test_connections_of_a_broker_meet_where_marks_go_to_all_producers_of_a_topic():
    schema = INPUTS.append(pa.field("raw", pa.string()))
    names = ["b0/one", "b1/two", "b1/a/b", "b1/", "plain", "another", None, *(f"b1/{n}" for n in range(90))]
    rows = pa.Table.from_pylist([given("publish", 1, name) for name in names], schema).to_batches()
    mark = pa.Table.from_pylist([mark_row(0) | {"broker": "b1"}], MARKS).to_batches()
    inputs, marks = packed(pack_inputs(UNTIL_MS, iter(rows), by_broker=True)), packed(pack_marks(mark, by_broker=True))
    slots = {row["connection"]: key for key, some in inputs["inputs"].items() for row in some}

    assert {slots["b1/two"]} == {key for name, key in slots.items() if name and name.startswith("b1/")}
    assert {slots["b1/two"]} == set(marks["marks"])
    assert slots["b0/one"] != slots["b1/two"]
    assert slots["plain"] == slots["another"] == slots[None]


def test_every_key_hears_of_the_highest_time():
    times = of_inputs(given("connect", 1), given("publish", 7), given("publish", None))["time"]

    assert set(slot_keys(SLOTS)) == set(times)
    assert {7} == {max(row["at_ms"] for row in rows) for rows in times.values()}
    assert {"inputs"} == {row["source"] for rows in times.values() for row in rows}


def test_ticks_are_of_all_sources():
    rows = pa.table({"at_ms": [3], "finish": [True]}).to_batches()

    assert [{"source": None, "at_ms": 3, "finish": True}] * SLOTS == [
        row for rows in packed(pack_ticks(iter(rows)))["time"].values() for row in rows
    ]
    assert TIME.names == ["source", "at_ms", "finish"]


def test_rows_that_cannot_be_read_and_rows_dated_ahead_are_dead_letters_and_move_no_time():
    ahead = given("publish", UNTIL_MS)
    found = of_inputs(given("publish", UNTIL_MS - 1), ahead, {"raw": "{"}, given("publish", None, None))
    (letters,) = found["dead_letters"].values()

    assert [("bad_time: got 10000, allowed is up to 9999", ahead), (UNPARSED, "{")] == [
        (row["reason"], row["raw"] if row["raw"] == "{" else json.loads(row["raw"])) for row in letters
    ]
    assert DEAD_LETTERS.names == list(letters[0])
    assert [None, UNTIL_MS - 1] == sorted(
        (row["at_ms"] for rows in found["inputs"].values() for row in rows), key=lambda at_ms: at_ms or 0
    )
    assert {UNTIL_MS - 1} == {row["at_ms"] for rows in found["time"].values() for row in rows}
