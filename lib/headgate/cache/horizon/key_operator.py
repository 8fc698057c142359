"""What the stateful operator does with one key in mode horizon: lines of brokers, and shards. No engine.

A line and the shards that its items go to belong to keys of their own; items pass through a table to the next batch, so
that every shard hears of them in the same one, as it does of horizons.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode, gather
from headgate.cache.horizon.line import LineState, line_up
from headgate.cache.horizon.schemas import HORIZONS, ITEMS, PARTS, REPORTS
from headgate.cache.horizon.shard_run import ShardRun, ShardState
from headgate.cache.horizon.state import (
    VERSION,
    SlotState,
    decode_line,
    decode_shard,
    decode_state,
    encode_line,
    encode_shard,
    encode_state,
)
from headgate.cache.routing import CONF, TIME, changes_in, time_in
from headgate.cache.schemas import PROGRESS, ROWS
from headgate.cache.step import CacheRules
from headgate.cache.stored.state import NEVER
from headgate.cache.watermark import Time
from headgate.core.cache.horizon.shard import Shard
from headgate.core.cache.settings import CacheSettings
from headgate.errors import StateError
from headgate.keyed.operator import Block, StateCodec
from headgate.throttle.schemas import DEAD_LETTERS

TO_SHARDS = pa.schema([*HORIZONS, ITEMS.field("shard")])


@dataclass(frozen=True)
class HorizonOperator:
    """The operator of the entry cache's job in mode horizon (throttle.key_operator.KeyOperator): lines and shards."""

    rules: CacheRules
    codec = StateCodec(VERSION, SlotState, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator: there is no compiled form."""

    def step(self, key: str, state: SlotState, blocks: Iterable[Block]) -> list[Block]:  # noqa: ARG002  a slot's name
        """See `step_key`."""
        return step_key(state, blocks, self.rules)


def step_key(state: SlotState, blocks: Iterable[Block], rules: CacheRules) -> list[Block]:
    """Blocks of rows, conf, time, items, horizons and dead letters in; of what either makes of them out.

    `state` is changed in place; of lines and shards that nothing came for it keeps the bytes.
    """
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    for block in blocks:
        by_kind[block.kind].append(block.block)
    state.changes += changes_in(gather(CONF, by_kind["conf"]))
    tables: dict[str, list[pa.Table]] = defaultdict(list)
    _lines(state, gather(ROWS, by_kind["rows"]), time_in(gather(TIME, by_kind["time"])), rules, tables)
    _shards(state, gather(ITEMS, by_kind["items"]), gather(TO_SHARDS, by_kind["horizons"]), rules, tables)
    if by_kind["time"]:
        heard = {name for table in tables["progress"] for name in table["broker"].to_pylist()}
        rest = [_progress(decode_line(name, state.lines[name]), 0, ()) for name in state.lines if name not in heard]
        tables["progress"].append(pa.Table.from_pylist(rest, PROGRESS))
    told = ((kind, pa.concat_tables(of_kind)) for kind, of_kind in tables.items() if of_kind)
    out = [Block(kind, len(table), encode(table)) for kind, table in told if len(table)]
    return out + [Block("dead_letters", 0, block) for block in by_kind["dead_letters"]]


def _lines(
    state: SlotState, arrived: pa.Table, time: Time, rules: CacheRules, tables: dict[str, list[pa.Table]]
) -> None:
    named = set(pc.unique(arrived["broker"]).to_pylist())
    if time.at_us != NEVER:
        named |= {broker for broker, stored in state.lines.items() if stored.is_open}
    for broker in sorted(named):
        rows = arrived.filter(pc.equal(arrived["broker"], broker))
        line = (
            decode_line(broker, state.lines[broker]) if broker in state.lines else LineState(broker, _settings(state))
        )
        told = line_up(line, rows, time, state.changes, rules.hold_back_us)
        state.lines[broker] = encode_line(line)
        reasons = told.dead_letters["reason"].to_pylist()
        tables["items"].append(told.items)
        tables["dead_letters"].append(told.dead_letters)
        tables["progress"].append(pa.Table.from_pylist([_progress(line, len(rows), reasons)], PROGRESS))


def _shards(
    state: SlotState, items: pa.Table, horizons: pa.Table, rules: CacheRules, tables: dict[str, list[pa.Table]]
) -> None:
    """Shards go on with the horizon that they wait for; until then items wait as bytes."""
    met = {(row["broker"], row["shard"]): row for row in horizons.to_pylist()}
    for place, its_items in _parted(items, met):
        broker, number = place
        stored = state.shards.get(place)
        if stored is not None and stored.awaits and place not in met:
            state.shards[place] = stored.with_items(its_items)
            continue
        shard = (
            ShardState(broker, number, Shard(_settings(state)))
            if stored is None
            else decode_shard(broker, number, stored)
        )
        run = ShardRun(shard, evictions=rules.evictions)
        if place in met:
            run.meet(met[place])
        run.play(its_items)
        state.shards[place] = encode_shard(shard)
        tables["parts"].append(pa.Table.from_pylist(run.parts, PARTS))
        tables["evictions"] += run.evictions
        tables["dead_letters"].append(pa.Table.from_pylist(run.letters, DEAD_LETTERS))
        tables["reports"].append(pa.Table.from_pylist(run.reports, REPORTS))


def _parted(items: pa.Table, met: Iterable[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], pa.Table]]:
    """Shards that items or a horizon came for, with their items; routing has named the shard of each."""
    pairs = zip(items["broker"].to_pylist(), items["shard"].to_pylist(), strict=True)
    for broker, number in sorted({*pairs, *met}):
        is_its = pc.and_(pc.equal(items["broker"], broker), pc.equal(items["shard"], number))
        yield (broker, number), items.filter(is_its)


def _settings(state: SlotState) -> CacheSettings:
    if not state.changes:
        raise StateError("rows came before the conf that caches begin with: start with a new --checkpoint and --output")
    return CacheSettings.of(state.changes[0].values)


def _progress(line: LineState, rows: int, reasons: Sequence[str]) -> dict[str, Any]:
    return {
        "broker": line.name,
        "rows": rows,
        "late": sum(reason.startswith("late:") for reason in reasons),
        "dead_letters": len(reasons),
        "event_time": None if line.high_us == NEVER else line.high_us,
        "watermark": None if line.done_us == NEVER else line.done_us,
        "waiting": len(line.kept),
        "is_open": len(line.kept) > 0 or line.untold_us != NEVER,
    }
