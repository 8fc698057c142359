"""Rows on their way to the protocol's keys: a connection has one, time goes to all."""

import pyarrow as pa

from headgate.arrow.blocks import decode
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.keyed.slots import slot_keys
from headgate.protocol.routing import FIXED_SLOTS, pack_inputs, pack_marks, pack_ticks
from headgate.protocol.schemas import INPUTS, TIME
from headgate.rows.traffic import Parsed
from headgate.throttle.schemas import MARKS
from unit.protocol.runs import A, given, mark_row


def packed(batches):
    """Rows by kind and key."""
    found = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["kind"], {}).setdefault(row["key"], []).extend(decode(row["block"]).to_pylist())
    return found


def of_inputs(*rows):
    parts = [pa.Table.from_pylist(list(rows[at : at + 2]), INPUTS) for at in range(0, len(rows), 2)]
    return packed(pack_inputs([Parsed(part, DEAD_LETTERS.empty_table()) for part in parts]))


def test_inputs_and_marks_of_one_connection_meet():
    inputs = of_inputs(given("connect", 1), given("publish", 3), given("publish", 2, "elsewhere"))
    marks = packed(pack_marks(pa.Table.from_pylist([mark_row(5_999_999)], MARKS).to_batches()))
    (key,) = [key for key, rows in inputs["inputs"].items() if rows[0]["connection"] == A]

    assert [1, 3] == [row["at_ms"] for row in inputs["inputs"][key]]
    assert {key} == set(marks["marks"])
    assert {"source": "marks", "at_ms": 5, "finish": False} == marks["time"][key][0]


def test_a_connection_has_the_slot_that_checkpoints_know_it_by():
    (batch,) = pack_marks(pa.Table.from_pylist([mark_row(1)], MARKS).to_batches())

    assert {slot_keys(FIXED_SLOTS)[1]} == {row["key"] for row in batch.to_pylist() if row["kind"] == "marks"}


def test_connections_of_a_broker_meet_where_marks_go_to_all_producers_of_a_topic():
    names = ["b0/one", "b1/two", "b1/a/b", "b1/", "plain", "another", None, *(f"b1/{n}" for n in range(90))]
    rows = pa.Table.from_pylist([given("publish", 1, name) for name in names], INPUTS)
    mark = pa.Table.from_pylist([mark_row(0) | {"broker": "b1"}], MARKS).to_batches()
    inputs, marks = (
        packed(pack_inputs([Parsed(rows, DEAD_LETTERS.empty_table())], by_broker=True)),
        packed(pack_marks(mark, by_broker=True)),
    )
    slots = {row["connection"]: key for key, some in inputs["inputs"].items() for row in some}

    assert {slots["b1/two"]} == {key for name, key in slots.items() if name and name.startswith("b1/")}
    assert {slots["b1/two"]} == set(marks["marks"])
    assert slots["b0/one"] != slots["b1/two"]
    assert slots["plain"] == slots["another"] == slots[None]


def test_every_key_hears_of_the_highest_time():
    times = of_inputs(given("connect", 1), given("publish", 7), given("publish", None))["time"]

    assert set(slot_keys(FIXED_SLOTS)) == set(times)
    assert {7} == {max(row["at_ms"] for row in rows) for rows in times.values()}
    assert {"inputs"} == {row["source"] for rows in times.values() for row in rows}


def test_ticks_are_of_all_sources():
    rows = pa.table({"at_ms": [3], "finish": [True]}).to_batches()

    assert [{"source": None, "at_ms": 3, "finish": True}] * FIXED_SLOTS == [
        row for rows in packed(pack_ticks(iter(rows)))["time"].values() for row in rows
    ]
    assert TIME.names == ["source", "at_ms", "finish"]
