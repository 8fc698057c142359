"""What the operator of the connections job does with one key, and which key a connection belongs to. No engine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from headgate.arrow.blocks import encode, gather
from headgate.connections.state import VERSION, Brokers, decode_state, encode_state
from headgate.connections.step import follow
from headgate.core.numbers import HOUR_NS
from headgate.keyed.operator import Block, StateCodec
from headgate.keyed.packing import blocks_by_key, packed
from headgate.keyed.slots import FIXED_SLOTS, slot_keys, slots_of_marks
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import OF_CONNECTIONS


def pack_marks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """MARKS in; for each slot that has a connection of them a block out."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).cast(MARKS)
        yield packed(blocks_by_key(rows, slot_keys(FIXED_SLOTS), slots_of_marks(rows, _name), "marks"))


def _name(broker: str, connection: str) -> str:
    """What slots go by. Another text would part connections from their state in checkpoints."""
    return f"{broker} {connection}"


@dataclass(frozen=True)
class ConnectionsOperator:
    """The operator of the connections job (keyed.operator.KeyOperator): marks in, rows of its tables out.

    silent_hours: see `conf.settings.StateSettings`.
    """

    silent_hours: int = 0
    codec = StateCodec(VERSION, dict, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator: there is no compiled form."""

    def step(self, key: str, state: Brokers, blocks: Iterable[Block]) -> list[Block]:  # noqa: ARG002  a slot's name
        """See `follow`."""
        told = follow(state, gather(MARKS, [block.block for block in blocks]), self.silent_hours * HOUR_NS)
        tables = zip(OF_CONNECTIONS, told, strict=True)
        return [Block(name, len(rows), encode(rows)) for name, rows in tables if len(rows)]
