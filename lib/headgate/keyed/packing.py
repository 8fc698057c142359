"""Blocks with the key and kind that they belong to, as rows: what goes to the keys of a job, and comes from them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from headgate.arrow.blocks import encode
from headgate.core.kernels.columns import Ints

PACKED = pa.schema([("key", pa.string()), ("kind", pa.string()), ("block", pa.binary())])
DEAD_LETTER_KEY = "dead letters"


def packed(blocks: Iterable[tuple[str, str, bytes]]) -> pa.RecordBatch:
    """PACKED of blocks with their key and kind."""
    return pa.RecordBatch.from_pylist([dict(zip(PACKED.names, block, strict=True)) for block in blocks], PACKED)


def blocks_by_key(rows: pa.Table, keys: Sequence[str], codes: Ints, kind: str) -> Iterator[tuple[str, str, bytes]]:
    """A block for each key that any of the rows belongs to, with its rows in their order. codes: each row's key."""
    if not len(rows):
        return
    order = np.argsort(codes, kind="stable")
    chosen = rows.take(pa.array(order)).combine_chunks()
    present, starts = np.unique(codes[order], return_index=True)
    for code, start, end in zip(present, starts, [*starts[1:], len(order)], strict=True):
        yield keys[code], kind, encode(chosen.slice(start, end - start))


def dead_letter_blocks(letters: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    """Dead letters have a key of their own."""
    if len(letters):
        yield DEAD_LETTER_KEY, "dead_letters", encode(letters)
