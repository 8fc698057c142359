"""What the stateful operator does with one key: its blocks and its state in, blocks for the tables out. No engine."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode, gather
from headgate.cache.forms import in_form, load_rules, new_cache
from headgate.cache.routing import CONF, TIME, changes_in, time_in
from headgate.cache.schemas import PROGRESS, ROWS
from headgate.cache.step import CacheRules, StepOutput, advance
from headgate.cache.stored.state import (
    NOT_YET,
    VERSION,
    BrokerState,
    SlotState,
    StoredBroker,
    decode_broker,
    decode_state,
    encode_broker,
    encode_state,
)
from headgate.cache.watermark import Time
from headgate.core.cache.broker import Cache
from headgate.errors import InvalidArgument, StateError
from headgate.keyed.operator import Block, StateCodec


@dataclass(frozen=True)
class CacheOperator:
    """The operator of the entry cache's job in mode exact (keyed.operator.KeyOperator): a slot's brokers."""

    rules: CacheRules
    codec = StateCodec(VERSION, SlotState, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator."""
        load_rules(self.rules.kernel)

    def step(self, key: str, state: SlotState, blocks: Iterable[Block]) -> list[Block]:  # noqa: ARG002  a slot's name
        """See `step_key`."""
        return step_key(state, blocks, self.rules)


def step_key(state: SlotState, blocks: Iterable[Block], rules: CacheRules) -> list[Block]:
    """Blocks of rows, conf, time and dead letters in; of metrics, evictions, dead letters and progress out.

    `state` is changed in place; of brokers that nothing came for it keeps the bytes.
    """
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    for block in blocks:
        by_kind[block.kind].append(block.block)
    state.changes += changes_in(gather(CONF, by_kind["conf"]))
    time = time_in(gather(TIME, by_kind["time"]))
    arrived = gather(ROWS, by_kind["rows"])
    out: list[Block] = []
    progress: list[dict[str, Any]] = []
    named = pc.unique(arrived["broker"]).to_pylist()
    for broker in _concerned(state, named, time):
        rows = arrived if named == [broker] else arrived.filter(pc.equal(arrived["broker"], broker))
        kept, told = _advanced(state, broker, rows, time, rules)
        state.brokers[broker] = encode_broker(kept)
        out += _blocks(told)
        progress.append(_progress(broker, state.brokers[broker], len(rows), told.dead_letters))
    if by_kind["time"]:
        heard = {row["broker"] for row in progress}
        others = ((broker, stored) for broker, stored in state.brokers.items() if broker not in heard)
        progress += [_progress(broker, stored, 0, None) for broker, stored in others]
    if progress:
        out.append(Block("progress", len(progress), encode(pa.Table.from_pylist(progress, PROGRESS))))
    return out + [Block("dead_letters", 0, block) for block in by_kind["dead_letters"]]


def _concerned(state: SlotState, named: Iterable[str], time: Time) -> list[str]:
    """Brokers that rows came for, and those that a time lets go on, in the order of their names."""
    waiting = {broker for broker, stored in state.brokers.items() if time.at_us != NOT_YET and _waits(stored)}
    return sorted(waiting.union(named))


def _waits(stored: StoredBroker) -> bool:
    return stored.waiting > 0 or stored.untold_us != NOT_YET


def _advanced(
    state: SlotState, broker: str, rows: pa.Table, time: Time, rules: CacheRules
) -> tuple[BrokerState, StepOutput]:
    """The broker's state after its rows. What the array form cannot calculate with is left to the readable one, from
    the beginning of the batch on; later batches take the array form again where that is possible.
    """
    kept = _opened(state, broker, rules.kernel)
    try:
        return kept, advance(kept, rows, time, state.changes, rules)
    except InvalidArgument:
        if isinstance(kept.cache, Cache):
            raise
    kept = _opened(state, broker, "python")
    return kept, advance(kept, rows, time, state.changes, rules)


def _opened(state: SlotState, broker: str, kernel: str) -> BrokerState:
    """The broker's state; one that is new begins as the first conf said."""
    if broker in state.brokers:
        kept = decode_broker(broker, state.brokers[broker])
        kept.cache = in_form(kept.cache, kernel)
        return kept
    if not state.changes:
        raise StateError("rows came before the conf that caches begin with: start with a new --checkpoint and --output")
    return BrokerState(broker, new_cache(state.changes[0].values, kernel))


def _blocks(told: StepOutput) -> Iterator[Block]:
    for kind, table in told._asdict().items():
        if len(table):
            yield Block(kind, len(table), encode(table))


def _progress(broker: str, stored: StoredBroker, rows: int, letters: pa.Table | None) -> dict[str, Any]:
    reasons = [] if letters is None else letters["reason"].to_pylist()
    return {
        "broker": broker,
        "rows": rows,
        "late": sum(reason.startswith("late:") for reason in reasons),
        "dead_letters": len(reasons),
        "event_time": None if stored.high_us == NOT_YET else stored.high_us,
        "watermark": None if stored.done_us == NOT_YET else stored.done_us,
        "waiting": stored.waiting,
        "is_open": _waits(stored),
    }
