"""The local engine: moves blocks to an operator and keeps its state by key, in one process."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from headgate.engines.batches import rows_by_kind
from headgate.keyed.operator import Block, KeyOperator


class LocalEngine:
    """Every block reaches the operator in the batch in which it came, with the state that its key had after the last.

    kinds: of rows that come out, with their schemas. disorder: for tests, None: no. It shuffles what has no promised
    order, as a cluster would: keys, blocks of a key, rows' blocks on their way out; and state goes through its codec.
    """

    def __init__(
        self, operator: KeyOperator, kinds: Mapping[str, pa.Schema], disorder: random.Random | None = None
    ) -> None:
        self._operator = operator
        self._kinds = kinds
        self._disorder = disorder
        self._states: dict[str, Any] = {}

    @property
    def keys(self) -> list[str]:
        """Every key that has a state."""
        return sorted(self._states)

    def step(self, packed: Iterable[pa.RecordBatch]) -> dict[str, pa.Table]:
        """One batch: blocks by key (keyed.packing.PACKED) in, rows by kind out."""
        blocks: dict[str, list[Block]] = defaultdict(list)
        for batch in packed:
            for key, kind, block in zip(*batch.to_pydict().values(), strict=True):
                blocks[key].append(Block(kind, 0, block))
        self._operator.load()
        out = [block for key in self._in_any_order(blocks) for block in self._step_key(key, blocks[key])]
        return rows_by_kind(((block.kind, block.block) for block in self._in_any_order(out)), self._kinds)

    def _step_key(self, key: str, blocks: list[Block]) -> list[Block]:
        codec = self._operator.codec
        if key not in self._states:
            self._states[key] = codec.new()
        elif self._disorder is not None:
            self._states[key] = codec.decode(codec.version, codec.encode(self._states[key]))
        return self._operator.step(key, self._states[key], self._in_any_order(blocks))

    def _in_any_order(self, things: Iterable[Any]) -> list[Any]:
        ordered = list(things)
        if self._disorder is not None:
            self._disorder.shuffle(ordered)
        return ordered
