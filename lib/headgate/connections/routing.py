"""Which key a connection belongs to: slots, so that many connections are one call. No engine: Arrow in, Arrow out."""

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headgate.throttle.blocks import encode
from headgate.throttle.columns import distinct, encoded
from headgate.throttle.routing import PACKED
from headgate.throttle.schemas import MARKS
from headgate.throttle.slots import slot_keys

SLOTS = 32
"""The same for every job: what a checkpoint has in one slot stays there."""


def pack_marks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """MARKS in; for each slot that has a connection of them a block out."""
    keys = slot_keys(SLOTS)
    for batch in batches:
        rows = pa.Table.from_batches([batch]).cast(MARKS)
        slots = _slots(rows)
        order = np.argsort(slots, kind="stable")
        chosen = rows.take(pa.array(order)).combine_chunks()
        present, starts = np.unique(slots[order], return_index=True)
        packed = [
            {"key": keys[slot], "kind": "marks", "block": encode(chosen.slice(start, end - start))}
            for slot, start, end in zip(present, starts, [*starts[1:], len(order)], strict=True)
        ]
        yield pa.RecordBatch.from_pylist(packed, PACKED)


def _slots(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """By broker and connection, which together are one connection's name."""
    (brokers, of_broker), (names, of_name) = encoded(rows["broker"]), encoded(rows["connection"])
    first, codes = distinct(of_broker, of_name)
    hashes = [
        zlib.crc32(f"{brokers[broker]} {names[name]}".encode()) % SLOTS
        for broker, name in zip(of_broker[first].tolist(), of_name[first].tolist(), strict=True)
    ]
    return np.array(hashes, np.int64)[codes]
