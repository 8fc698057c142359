"""Which key a connection belongs to: slots, so that many connections are one call. No engine: Arrow in, Arrow out."""

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode
from headgate.arrow.columns import encoded
from headgate.core.kernels.columns import Ints
from headgate.core.protocol.broker.router import broker_of
from headgate.keyed.packing import blocks_by_key, packed
from headgate.keyed.slots import FIXED_SLOTS, slot_keys, slots_of_marks, slots_of_names
from headgate.protocol.marks import COLUMNS, connection_name
from headgate.protocol.parse import parse_inputs
from headgate.protocol.schemas import INPUTS, TIME
from headgate.rows.batches import parsed
from headgate.rows.traffic import Parsed


def pack_input(
    format_: str, until_ms: int, batches: Iterable[pa.RecordBatch], *, by_broker: bool = False
) -> Iterator[pa.RecordBatch]:
    """Rows of an input (rows.batches.parsed) to blocks, as `pack_inputs` makes them."""
    return pack_inputs(parsed(partial(parse_inputs, until_ms=until_ms), format_, INPUTS, batches), by_broker=by_broker)


def pack_inputs(parts: Iterable[Parsed], *, by_broker: bool = False) -> Iterator[pa.RecordBatch]:
    """Blocks of `inputs`, `time`, `dead_letters` by slot.

    by_broker: the connections of a broker, whose names are the same up to their first slash, have one slot.
    """
    for rows, dead_letters in parts:
        slots = _slots(rows["connection"].fill_null(""), by_broker=by_broker)
        by_slot = blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots, "inputs")
        yield packed([*_letters(dead_letters), *_time("inputs", rows["at_ms"]), *by_slot])


def pack_marks(batches: Iterator[pa.RecordBatch], *, by_broker: bool = False) -> Iterator[pa.RecordBatch]:
    """Columns of MARKS: blocks of `marks` and `time` by slot. by_broker: as in `pack_inputs`."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).select(COLUMNS)
        at_ms = pc.divide(rows["at_ns"], 1_000_000)
        slots = slots_of_marks(rows, _broker_of_mark if by_broker else connection_name)
        yield packed([*_time("marks", at_ms), *blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots, "marks")])


def pack_ticks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of TICKS: their time for every slot."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        time = encode(pa.table([pa.nulls(len(rows), pa.string()), rows["at_ms"], rows["finish"]], TIME))
        yield packed([(key, "time", time) for key in slot_keys(FIXED_SLOTS)])


def _letters(letters: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    if len(letters):
        yield slot_keys(FIXED_SLOTS)[0], "dead_letters", encode(letters)


def _time(source: str, at_ms: pa.ChunkedArray) -> Iterator[tuple[str, str, bytes]]:
    """The highest time of a source goes to every slot."""
    highest = pc.max(at_ms).as_py()
    if highest is not None:
        block = encode(pa.table([[source], [highest], [False]], TIME))
        yield from ((key, "time", block) for key in slot_keys(FIXED_SLOTS))


def _slots(connections: pa.ChunkedArray, *, by_broker: bool) -> Ints:
    names, codes = encoded(connections)
    texts = names.to_pylist()
    return slots_of_names([broker_of(name) for name in texts] if by_broker else texts)[codes]


def _broker_of_mark(broker: str, connection: str) -> str:
    return broker_of(connection_name(broker, connection))
