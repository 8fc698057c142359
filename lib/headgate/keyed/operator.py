"""What every engine does with one key of a job: its blocks and its state in, blocks for the tables out.

The jobs' operators are in key_operator.py of throttle/, connections/, protocol/ and cache/, their states in state.py
there, and in cache/stored/.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol


class Block(NamedTuple):
    """Rows of one kind on their way.

    kind: a block of traffic, `ticks`, `changes` or `dead_letters` on its way in, a table on its way out.
    """

    kind: str
    rows: int
    block: bytes


class StateCodec(NamedTuple):
    """The state behind a key: how it begins, and its form between batches, of which `version` is kept beside it."""

    version: int
    new: Callable[[], Any]
    decode: Callable[[int, bytes], Any]
    encode: Callable[[Any], bytes]


class KeyOperator(Protocol):
    """What every engine does with the blocks of a key and batch: state in, state changed in place and blocks out.

    load: compiles or loads what `step` needs; again it does nothing.
    """

    @property
    def codec(self) -> StateCodec: ...
    def load(self) -> None: ...
    def step(self, key: str, state: Any, blocks: Iterable[Block]) -> list[Block]: ...
