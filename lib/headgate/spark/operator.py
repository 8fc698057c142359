"""Stateful operators on Spark: blocks by key in, state between batches, blocks for the tables out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from headgate.heap import leave_loaded_alone
from headgate.keyed.operator import Block, KeyOperator

PACKED = "key string, kind string, block binary"
"""What routing packs (keyed.packing.PACKED), as Spark names it."""
STATE = "version int, blocks binary"
OUTPUT = "kind string, rows long, block binary"


@dataclass(frozen=True)
class OnSpark:
    """What runs on the workers, for one key and batch at a time. Pickled by reference to this module."""

    operator: KeyOperator

    def __call__(self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        self.operator.load()
        leave_loaded_alone()  # Spark collects garbage after every task
        codec = self.operator.codec
        kept = codec.decode(*state.get) if state.exists else codec.new()
        out = self.operator.step(key[0], kept, list(_blocks_in(frames)))
        blocks = codec.encode(kept)
        if not state.exists or blocks != state.get[1]:  # most keys hear of time alone in most batches
            state.update((codec.version, blocks))
        yield pd.DataFrame(out, columns=list(Block._fields))


def apply_operator(packed: DataFrame, operator: KeyOperator) -> DataFrame:
    """Run `operator` on PACKED rows by key."""
    on_spark = OnSpark(operator)

    def step(key: Any, frames: Any, state: Any) -> Any:
        return on_spark(key, frames, state)

    return packed.groupBy("key").applyInPandasWithState(step, OUTPUT, STATE, "append", GroupStateTimeout.NoTimeout)


def _blocks_in(frames: Iterator[pd.DataFrame]) -> Iterator[Block]:
    """What came for a key in a batch."""
    for frame in frames:
        yield from (Block(kind, 0, bytes(block)) for kind, block in zip(frame["kind"], frame["block"], strict=True))
