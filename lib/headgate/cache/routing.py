"""Which key a broker belongs to, and packing its rows into one block a key. No engine: Arrow in, Arrow out.

Keys are slots, a fixed number of them, so that what conf files say, and time, can be sent to all.
"""

import json
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode
from headgate.arrow.columns import encoded
from headgate.cache.events.parse import parse_cache_events
from headgate.cache.schemas import INPUT
from headgate.cache.stored.state import NOT_YET, Change
from headgate.cache.watermark import Time
from headgate.conf import InputSettings
from headgate.keyed.packing import blocks_by_key, dead_letter_blocks, packed
from headgate.keyed.slots import FIXED_SLOTS, place_of, slot_keys
from headgate.rows.batches import parsed
from headgate.rows.traffic import Parsed

CONF = pa.schema([("at_us", pa.int64()), ("values", pa.string())])
"""What conf files said, as `state.Change`; values are JSON."""
TIME = pa.schema([("at_us", pa.int64()), ("finish", pa.bool_())])


def pack_input(format_: str, settings: InputSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of an input (rows.batches.parsed) to PACKED."""
    return pack_rows(parsed(partial(parse_cache_events, settings=settings), format_, INPUT, batches))


def pack_rows(parts: Iterable[Parsed]) -> Iterator[pa.RecordBatch]:
    """A block of ROWS a key, and rows that have no place in the order."""
    for rows, dead_letters in parts:
        yield packed([*dead_letter_blocks(dead_letters), *_rows(rows)])


def pack_control(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of CONTROL: each for every slot."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).sort_by("written_at")
        is_conf = pc.equal(rows["kind"], "conf")
        at_us = rows["event_time"].cast(pa.int64()).fill_null(NOT_YET)
        conf = pa.table([at_us, rows["changes"]], CONF).filter(is_conf)
        time = pa.table([at_us, rows["finish"].fill_null(False)], TIME).filter(pc.invert(is_conf))
        blocks = [(kind, encode(table)) for kind, table in (("conf", conf), ("time", time)) if len(table)]
        yield packed([(key, *block) for key in slot_keys(FIXED_SLOTS) for block in blocks])


def changes_in(conf: pa.Table) -> list[Change]:
    """CONF as changes, in the order of their times."""
    changes = [Change(row["at_us"], json.loads(row["values"])) for row in conf.to_pylist()]
    return sorted(changes, key=lambda change: change.at_us)


def time_in(time: pa.Table) -> Time:
    """The highest of the times, and whether nothing more comes up to it."""
    if not len(time):
        return Time()
    at_us = pc.max(time["at_us"]).as_py()
    finish = pc.max(time.filter(time["finish"])["at_us"]).as_py()
    return Time(at_us, finish == at_us)


def _rows(rows: pa.Table) -> Iterator[tuple[str, str, bytes]]:
    if not len(rows):
        return
    brokers, codes = encoded(rows["broker"])
    slots = np.array([place_of(broker) % FIXED_SLOTS for broker in brokers.to_pylist()], np.int64)[codes]
    yield from blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots, "rows")
