"""Commands: the messages that frames carry, each in a BaseCommand beside its type (throttle-protocol 5)."""

from typing import NamedTuple

from headgate.core.numbers import MAX
from headgate.core.protocol.wire_format import WireType, bytes_field, integer_field, last_values
from headgate.core.protocol.wire_numbers import THROTTLE_PRODUCER, THROTTLE_PRODUCER_RECEIPT
from headgate.errors import WireError
from headgate.wire.messages import Receipt, ThrottleProducer
from headgate.wire.throttle_pb2 import BaseCommand

TYPE = BaseCommand.TYPE_FIELD_NUMBER

_OWN = {
    integer_field(TYPE, number) + bytes_field(number, b"")[:-1]: number
    for number in (THROTTLE_PRODUCER, THROTTLE_PRODUCER_RECEIPT)
}
"""How a command of the protocol begins as it is always written: all before the size of its message."""
_BEGINS = 6
_MOST_IN_A_BYTE = 127


class Command(NamedTuple):
    """What a frame says: the number of its type, known here or not, and its message as bytes, not read yet."""

    type: int
    message: bytes

    def encode(self) -> bytes:
        """The bytes of a BaseCommand with this one message."""
        return integer_field(TYPE, self.type) + bytes_field(self.type, self.message)


def decode_command(command: bytes) -> Command:
    """The last type and the last message of that type; a message that is not there reads as one without fields.

    To pass a command on keep its bytes: the rest of a BaseCommand is not in the result.
    Raises WireError: `malformed`, `missing_type`, or `out_of_range` for a type that no field can have the number of.
    """
    own = _OWN.get(command[:_BEGINS])
    if own is not None and len(command) > _BEGINS and command[_BEGINS] == len(command) - _BEGINS - 1 <= _MOST_IN_A_BYTE:
        return Command(own, command[_BEGINS + 1 :])  # the message is all that follows: no need to look at each field
    command_type = last_values(command, {TYPE: WireType.VARINT}).get(TYPE)
    if command_type is None:
        raise WireError("missing_type", "BaseCommand without type, which is required")
    if not TYPE < int(command_type) <= MAX:
        raise WireError("out_of_range", f"BaseCommand: type is {command_type!r}, allowed is from {TYPE + 1} to {MAX}")
    message = last_values(command, {int(command_type): WireType.BYTES}).get(int(command_type), b"")
    return Command(int(command_type), bytes(message))


def throttle_producer(command: ThrottleProducer) -> bytes:
    """The BaseCommand that asks a producer to stop. Raises InvalidArgument as ThrottleProducer.encode."""
    return Command(THROTTLE_PRODUCER, command.encode()).encode()


def throttle_producer_receipt(receipt: Receipt) -> bytes:
    """The BaseCommand that answers it. Raises InvalidArgument as Receipt.encode."""
    return Command(THROTTLE_PRODUCER_RECEIPT, receipt.encode()).encode()
