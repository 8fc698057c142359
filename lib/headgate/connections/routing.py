"""Which key a connection belongs to: slots, so that many connections are one call. No engine: Arrow in, Arrow out."""

from collections.abc import Iterator

import pyarrow as pa

from headgate.keyed.slots import FIXED_SLOTS, slot_keys, slots_of_marks
from headgate.throttle.routing import blocks_by_key, packed
from headgate.throttle.schemas import MARKS


def pack_marks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """MARKS in; for each slot that has a connection of them a block out."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).cast(MARKS)
        yield packed(blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots_of_marks(rows, _name), "marks"))


def _name(broker: str, connection: str) -> str:
    """What slots go by. Another text would part connections from their state in checkpoints."""
    return f"{broker} {connection}"
