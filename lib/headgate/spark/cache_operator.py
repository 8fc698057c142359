"""The entry cache's stateful operator: what runs on the workers, for one key and batch at a time (PIP-430)."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pandas as pd
from pyspark.sql.streaming.state import GroupState

from headgate.cache.forms import warm_up
from headgate.cache.horizon import state as of_horizon
from headgate.cache.horizon.key_operator import step_key as step_shards
from headgate.cache.key_operator import step_key
from headgate.cache.state import VERSION, SlotState, decode_state, encode_state
from headgate.cache.step import CacheRules
from headgate.core.cache.settings import Mode
from headgate.spark.operator import blocks_in, frame_of, keep


@dataclass(frozen=True)
class CacheOperator:
    """The rules over the state of one slot. Pickled by reference to this module.

    mode: what a key holds, brokers (exact), or their lines and shards (horizon).
    """

    rules: CacheRules
    mode: Mode

    def __call__(
        self,
        key: tuple[str],  # noqa: ARG002  a slot's name says nothing
        frames: Iterator[pd.DataFrame],
        state: GroupState,
    ) -> Iterator[pd.DataFrame]:
        load_rules(self.rules.kernel)
        if self.mode is Mode.HORIZON:
            shards = of_horizon.decode_state(*state.get) if state.exists else of_horizon.SlotState()
            out = step_shards(shards, blocks_in(frames), self.rules)
            keep(state, of_horizon.VERSION, of_horizon.encode_state(shards))
        else:
            kept = decode_state(*state.get) if state.exists else SlotState()
            out = step_key(kept, blocks_in(frames), self.rules)
            keep(state, VERSION, encode_state(kept))
        yield frame_of(out)


@cache
def load_rules(kernel: str) -> None:
    """The form of the rules of that name, compiled or loaded whole, once in a worker's life.

    What is loaded by then is taken out of sight of Python's garbage collector: see `operator.loaded_engine`.
    """
    if kernel != "python":
        warm_up()
    gc.freeze()
