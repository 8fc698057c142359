"""Which keys items and horizons go to. No engine: Arrow in, Arrow out."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded
from headgate.cache.horizon.schemas import HORIZONS, ITEMS
from headgate.keyed.slots import FIXED_SLOTS, place_of, slot_keys
from headgate.throttle.routing import blocks_by_key, packed


def pack_items(shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """ITEMS in; a block of them a key out. What is for all shards of a broker goes to each by its number."""
    for batch in batches:
        items = pa.Table.from_batches([batch]).select(ITEMS.names).cast(ITEMS)
        is_all = items["shard"].is_null()
        parts = [items.filter(pc.invert(is_all)), *_for_each(items.filter(is_all), shards)]
        yield packed(_blocks(pa.concat_tables(parts), "items"))


def pack_horizons(shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """HORIZONS in; a block of them for each key that has a shard of their broker out."""
    for batch in batches:
        horizons = pa.Table.from_batches([batch]).select(HORIZONS.names).cast(HORIZONS)
        named = horizons.append_column(_SHARD, pa.nulls(len(horizons), _SHARD.type))
        yield packed(_blocks(pa.concat_tables(_for_each(named, shards)), "horizons"))


_SHARD = ITEMS.field("shard")


def _for_each(rows: pa.Table, shards: int) -> Iterator[pa.Table]:
    place = rows.column_names.index("shard")
    for shard in range(shards):
        yield rows.set_column(place, _SHARD, pa.repeat(pa.scalar(shard, _SHARD.type), len(rows)))


def _blocks(rows: pa.Table, kind: str) -> Iterator[tuple[str, str, bytes]]:
    """Shards of a broker lie beside each other, so that they are spread over the tasks."""
    names, codes = encoded(rows["broker"])
    places = np.array([place_of(name) % FIXED_SLOTS for name in names.to_pylist()], np.int64)
    slots = (places[codes] + rows["shard"].to_numpy().astype(np.int64)) % FIXED_SLOTS
    yield from blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots, kind)
