"""Which key a connection belongs to: slots, so that many connections are one call. No engine: Arrow in, Arrow out."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.core.protocol.router import broker_of
from headgate.protocol.marks import COLUMNS, connection_name
from headgate.protocol.schemas import INPUTS, TIME
from headgate.throttle.blocks import encode
from headgate.throttle.columns import encoded
from headgate.throttle.connection_slots import SLOTS, slots_of_marks, slots_of_names
from headgate.throttle.routing import blocks_by_key, packed
from headgate.throttle.schemas import DEAD_LETTERS
from headgate.throttle.slots import slot_keys

UNPARSED = "the value is no JSON object of the protocol's inputs"


def pack_inputs(
    until_ms: int, batches: Iterator[pa.RecordBatch], *, by_broker: bool = False
) -> Iterator[pa.RecordBatch]:
    """INPUTS with `raw`, a text where a row could not be read: blocks of `inputs`, `time`, `dead_letters` by slot.

    Rows from `until_ms` on are dead letters: one that is dated ahead would make all that follow late.
    by_broker: the connections of a broker, whose names are the same up to their first slash, have one slot.
    """
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        is_text = rows["raw"].is_valid()
        is_ahead = pc.greater_equal(rows["at_ms"], until_ms).fill_null(False)
        letters = [(UNPARSED, raw) for raw in rows.filter(is_text)["raw"].to_pylist()]
        ahead = rows.filter(pc.and_not(is_ahead, is_text)).select(INPUTS.names).to_pylist()
        letters += [(f"bad_time: got {row['at_ms']}, allowed is up to {until_ms - 1}", written(row)) for row in ahead]
        good = rows.filter(pc.invert(pc.or_(is_text, is_ahead))).select(INPUTS.names).cast(INPUTS)
        slots = _slots(good["connection"].fill_null(""), by_broker=by_broker)
        by_slot = blocks_by_key(good, slot_keys(SLOTS), slots, "inputs")
        yield packed([*_letters(letters), *_time("inputs", good["at_ms"]), *by_slot])


def written(row: Mapping[str, Any]) -> str:
    """A row as a dead letter shows it: what it has, as JSON."""
    return json.dumps({name: value for name, value in row.items() if value is not None and name in INPUTS.names})


def pack_marks(batches: Iterator[pa.RecordBatch], *, by_broker: bool = False) -> Iterator[pa.RecordBatch]:
    """Columns of MARKS: blocks of `marks` and `time` by slot. by_broker: as in `pack_inputs`."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).select(COLUMNS)
        at_ms = pc.divide(rows["at_ns"], 1_000_000)
        slots = slots_of_marks(rows, _broker_of_mark if by_broker else connection_name)
        yield packed([*_time("marks", at_ms), *blocks_by_key(rows, slot_keys(SLOTS), slots, "marks")])


def pack_ticks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of TICKS: their time for every slot."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        time = encode(pa.table([pa.nulls(len(rows), pa.string()), rows["at_ms"], rows["finish"]], TIME))
        yield packed([(key, "time", time) for key in slot_keys(SLOTS)])


def _letters(letters: list[tuple[str, str]]) -> Iterator[tuple[str, str, bytes]]:
    if letters:
        rows = [{"reason": reason, "raw": raw, "source": "inputs"} for reason, raw in letters]
        yield slot_keys(SLOTS)[0], "dead_letters", encode(pa.Table.from_pylist(rows, DEAD_LETTERS))


def _time(source: str, at_ms: pa.ChunkedArray) -> Iterator[tuple[str, str, bytes]]:
    """The highest time of a source goes to every slot."""
    highest = pc.max(at_ms).as_py()
    if highest is not None:
        block = encode(pa.table([[source], [highest], [False]], TIME))
        yield from ((key, "time", block) for key in slot_keys(SLOTS))


def _slots(connections: pa.ChunkedArray, *, by_broker: bool) -> Ints:
    names, codes = encoded(connections)
    texts = names.to_pylist()
    return slots_of_names([broker_of(name) for name in texts] if by_broker else texts)[codes]


def _broker_of_mark(broker: str, connection: str) -> str:
    return broker_of(connection_name(broker, connection))
