"""Cache events of a slot in batches, without Spark, and what is told of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.arrow.blocks import encode, gather
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.key_operator import step_key
from headgate.cache.routing import CONF, TIME
from headgate.cache.schemas import EVICTIONS, METRICS, PROGRESS, ROWS
from headgate.cache.step import CacheRules
from headgate.cache.stored.state import NOT_YET, VERSION, SlotState, decode_broker, decode_state, encode_state
from headgate.core.cache.rows import Row
from headgate.keyed.operator import Block

BROKER, TOPIC = "broker-1", "t"
SECOND = 1_000_000
MAX_BYTES, TTL_MS = "headgate.cache.maxBytes", "managedLedgerCacheEvictionTimeThresholdMillis"
TOLD = {"metrics": METRICS, "evictions": EVICTIONS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}
RULES = CacheRules(evictions=True)


def event(kind: str, t_us: int, seq: int, **columns: Any) -> dict[str, Any]:
    """A row of ROWS; positions are in ledger 0."""
    place = {"ledger": 0} if "entry" in columns else {}
    row = {"event_time_us": t_us, "seq": seq, "kind": kind, "broker": BROKER, "topic": TOPIC, **place, **columns}
    return row | ({"conf": json.dumps(columns["conf"]), "topic": None} if "conf" in columns else {})


def rows_from(rows: Iterable[Row], broker: str = BROKER) -> list[dict[str, Any]]:
    """Rows of the core as ROWS of a broker."""
    return [dict(zip(ROWS.names, row, strict=False)) | {"broker": broker, "conf": None} for row in rows]


def change(at_us: int = NOT_YET, **values: Any) -> Block:
    """What conf files said, for a slot."""
    table = pa.Table.from_pylist([{"at_us": at_us, "values": json.dumps(values)}], CONF)
    return Block("conf", 1, encode(table))


def tick(at_us: int, *, finish: bool = False) -> Block:
    """A time, for a slot."""
    return Block("time", 1, encode(pa.Table.from_pylist([{"at_us": at_us, "finish": finish}], TIME)))


def block(rows: Sequence[Mapping[str, Any]]) -> Block:
    return Block("rows", len(rows), encode(pa.Table.from_pylist(list(rows), ROWS)))


@dataclass
class SlotRun:
    """A slot, stored and read back after every batch, and what it told."""

    rules: CacheRules = RULES
    state: SlotState = field(default_factory=SlotState)
    told: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in TOLD})

    def batch(self, *blocks: Block) -> "SlotRun":
        out = step_key(self.state, blocks, self.rules)
        for name, schema in TOLD.items():
            self.told[name] += gather(schema, [block.block for block in out if block.kind == name]).to_pylist()
        self.state = decode_state(VERSION, encode_state(self.state))
        return self

    def rows(self, *rows: Mapping[str, Any]) -> "SlotRun":
        return self.batch(block(rows))

    def seconds(self, *names: str, topic: str | None = None) -> list[tuple[Any, ...]]:
        """What was told of seconds, in the order in which they were told."""
        return [tuple(row[name] for name in names) for row in self.told["metrics"] if row["topic"] == topic]

    def limit_of(self, broker: str) -> int:
        """Bytes that its cache may hold."""
        return decode_broker(broker, self.state.brokers[broker]).cache.settings.max_bytes

    def reasons(self) -> list[str]:
        return [row["reason"].split(":")[0] for row in self.told["dead_letters"]]


def begun(values: Mapping[str, Any], rules: CacheRules = RULES) -> SlotRun:
    """A slot that has heard what caches begin with."""
    return SlotRun(rules).batch(change(**values))


def run(values: Mapping[str, Any], *batches: Sequence[Mapping[str, Any]], rules: CacheRules = RULES) -> SlotRun:
    """The batches, then an end of the input."""
    slot = begun(values, rules)
    for rows in batches:
        slot.rows(*rows)
    high_us = max((row["event_time_us"] for rows in batches for row in rows), default=0)
    return slot.batch(tick(high_us, finish=True))


def totals(slot: SlotRun) -> list[dict[str, Any]]:
    """What holds of each second: the last row that was told."""
    last = {(row["broker"], row["topic"], row["second"]): row for row in slot.told["metrics"]}
    return [last[place] for place in sorted(last, key=str)]
