"""A broker in mode horizon through all of its keys, without Spark, and the rules that it has to follow."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from headgate.arrow.blocks import encode, gather
from headgate.cache.horizon.key_operator import step_key
from headgate.cache.horizon.meeting import horizons_of, metrics_of
from headgate.cache.horizon.routing import pack_horizons, pack_items
from headgate.cache.horizon.schemas import ITEMS, PARTS, REPORTS
from headgate.cache.horizon.state import VERSION, SlotState, decode_state, encode_state
from headgate.cache.schemas import EVICTIONS, PROGRESS, ROWS
from headgate.cache.step import CacheRules
from headgate.core.cache.settings import CacheSettings
from headgate.keyed.operator import Block
from headgate.keyed.slots import FIXED_SLOTS, place_of, slot_keys
from headgate.throttle.schemas import DEAD_LETTERS
from unit.cache.runs import RULES, change, tick

TOLD = {"evictions": EVICTIONS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}
FEEDBACK = {"items": ITEMS, "reports": REPORTS, "parts": PARTS}


@dataclass
class Slots:
    """All keys, stored and read back after every batch; what a batch says is heard of in the next one."""

    settings: CacheSettings
    rules: CacheRules
    states: dict[str, SlotState] = field(default_factory=lambda: {key: SlotState() for key in slot_keys(FIXED_SLOTS)})
    next: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    told: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    horizons: list[dict[str, Any]] = field(default_factory=list)

    def batch(self, rows: Sequence[Mapping[str, Any]] = (), *for_all: Block) -> "Slots":
        blocks, self.next = self.next, defaultdict(list)
        for key in self.states:
            blocks[key] += for_all
        if rows:
            table = pa.Table.from_pylist(list(rows), ROWS)
            for row_key, kind, block in _by_broker(table):
                blocks[row_key].append(Block(kind, 0, block))
        out: dict[str, list[bytes]] = defaultdict(list)
        for key, of_key in blocks.items():
            for block in step_key(self.states[key], of_key, self.rules):
                out[block.kind].append(block.block)
            self.states[key] = decode_state(VERSION, encode_state(self.states[key]))
        for name, schema in TOLD.items():
            self.told[name] += gather(schema, out[name]).to_pylist()
        items, reports, parts = (gather(schema, out[name]) for name, schema in FEEDBACK.items())
        self.told["metrics"] += metrics_of(parts).to_pylist()
        self._send(pack_items(self.settings.shards, iter(items.combine_chunks().to_batches())))
        horizons = horizons_of(reports, self.settings.shards)
        self.horizons += horizons.to_pylist()
        self._send(pack_horizons(self.settings.shards, iter(horizons.to_batches())))
        return self

    def still(self) -> "Slots":
        """Batches until nothing is left to be heard of."""
        for _ in count():
            if not self.next:
                return self
            self.batch()
        raise AssertionError

    def _send(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            for row in batch.to_pylist():
                self.next[row["key"]].append(Block(row["kind"], 0, row["block"]))


def _by_broker(rows: pa.Table) -> Iterable[tuple[str, str, bytes]]:
    keys = slot_keys(FIXED_SLOTS)
    for broker in sorted(set(rows["broker"].to_pylist())):
        its_rows = rows.filter(pa.compute.equal(rows["broker"], broker))
        yield keys[place_of(broker) % FIXED_SLOTS], "rows", encode(its_rows)


def run(
    values: Mapping[str, Any],
    batches: Sequence[Sequence[Mapping[str, Any]]],
    *changes: Block,
    rules: CacheRules = RULES,
) -> Slots:
    """The batches, each heard of before all that the one before has led to, then an end of the input."""
    slots = Slots(CacheSettings.of(values), rules).batch((), change(**values), *changes)
    for rows in batches:
        slots.batch(rows)
    high_us = max((row["event_time_us"] for rows in batches for row in rows), default=0)
    return slots.batch((), tick(high_us, finish=True)).still()
