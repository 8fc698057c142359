"""The stateful operator on Spark: blocks by key in, state between batches, blocks for the tables out."""

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from headgate.throttle.changes import Change
from headgate.throttle.key_operator import Block, step_key
from headgate.throttle.state import VERSION, KeyState, decode_state, encode_state
from headgate.throttle.step import Engine, Rules

PACKED = "key string, kind string, block binary"
"""What routing packs (throttle.routing.PACKED), as Spark names it."""
STATE = "version int, blocks binary"
OUTPUT = "kind string, rows long, block binary"


@dataclass(frozen=True)
class KeyOperator:
    """What runs on the workers, for one key and batch at a time. Pickled by reference to this module.

    given: changes known at the start, for keys that the control stream does not reach (state key `topic`).
    """

    rules: Rules
    kernel: str = "numba"
    given: tuple[Change, ...] = field(default=())

    def __call__(self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        blocks = list(blocks_in(frames))
        kept = decode_state(*state.get) if state.exists else KeyState()
        out = step_key(key[0], kept, blocks, self.rules, loaded_engine(self.kernel), self.given)
        keep(state, VERSION, encode_state(kept))
        yield frame_of(out)


def blocks_in(frames: Iterator[pd.DataFrame]) -> Iterator[Block]:
    """What came for a key in a batch."""
    for frame in frames:
        yield from (Block(kind, 0, bytes(block)) for kind, block in zip(frame["kind"], frame["block"], strict=True))


def keep(state: GroupState, version: int, blocks: bytes) -> None:
    """Keep the state if it has changed: most keys hear of time alone in most batches."""
    if not state.exists or blocks != state.get[1]:
        state.update((version, blocks))


def frame_of(blocks: Iterable[Block]) -> pd.DataFrame:
    """OUTPUT of a key."""
    return pd.DataFrame(blocks, columns=list(Block._fields))


@cache
def loaded_engine(kernel: str) -> Engine:
    """The engine of that name, compiled or loaded whole, once in a worker's life.

    What the worker has loaded by then is taken out of sight of Python's garbage collector: Spark runs it after every
    task, and with numba, pandas and pyarrow loaded it takes a tenth of a second of CPU.
    """
    if kernel == "python":
        from headgate.throttle.readable_engine import run_readable as run  # noqa: PLC0415
    else:
        from headgate.throttle.array_engine import run_arrays as run  # noqa: PLC0415  loads the compiler
        from headgate.throttle.array_engine import warm_up  # noqa: PLC0415

        warm_up()
    gc.freeze()
    return run


class Operator(Protocol):
    """What runs on the workers, for one key and batch at a time. Pickled by reference to its module."""

    def __call__(self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """Blocks of `frames` in and OUTPUT out; `state` is STATE."""


def apply_operator(packed: DataFrame, operator: Operator) -> DataFrame:
    """Run `operator` on PACKED rows by key."""

    def step(key: Any, frames: Any, state: Any) -> Any:
        return operator(key, frames, state)

    return packed.groupBy("key").applyInPandasWithState(step, OUTPUT, STATE, "append", GroupStateTimeout.NoTimeout)
