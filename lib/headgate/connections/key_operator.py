"""What the stateful operator of the connections job does with one key. No engine."""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.arrow.blocks import encode, gather
from headgate.connections.state import VERSION, Brokers, decode_state, encode_state
from headgate.connections.step import follow
from headgate.keyed.operator import Block, StateCodec
from headgate.throttle.schemas import MARKS
from headgate.throttle.tables import OF_CONNECTIONS


@dataclass(frozen=True)
class ConnectionsOperator:
    """The operator of the connections job (throttle.key_operator.KeyOperator): marks in, rows of its tables out."""

    codec = StateCodec(VERSION, dict, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator: there is no compiled form."""

    def step(self, key: str, state: Brokers, blocks: Iterable[Block]) -> list[Block]:  # noqa: ARG002  a slot's name
        """See `follow`."""
        told = follow(state, gather(MARKS, [block.block for block in blocks]))
        tables = zip(OF_CONNECTIONS, told, strict=True)
        return [Block(name, len(rows), encode(rows)) for name, rows in tables if len(rows)]
