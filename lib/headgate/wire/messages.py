"""The protocol's own messages as bytes and back (throttle-protocol 5).

They are read and written field by field, not by the classes of throttle_pb2: the protobuf runtime reads some bytes
otherwise than the protocol says. It accepts groups. It cuts a varint to 64 bits, and that of an enum to 32: 2^32+1
would be reason 1. It keeps a known reason that an unknown one follows. It refuses a field's number above 2^29-1, which
is but an unknown field. It does not mind a required field that is absent. And it writes no reason that it does not
know. Where none of this plays a part both agree: tests compare them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from headgate.core.numbers import MAX, at_least
from headgate.core.protocol.reasons import Reason, received
from headgate.core.protocol.wire_format import WireType, integer_field, last_values
from headgate.core.protocol.wire_numbers import SUPPORTS_THROTTLE_PRODUCER_COMMANDS
from headgate.errors import InvalidArgument, WireError


class MessageField(NamedTuple):
    """A field as it stands in throttle.proto. Those of the protocol are all written as varints."""

    number: int
    name: str
    is_required: bool = True


THROTTLING_REASON = "throttling_reason"
SUPPORTS = "supports_throttle_producer_commands"

MESSAGES: Mapping[str, tuple[MessageField, ...]] = {
    "ThrottleProducer": (
        MessageField(1, "request_id"),
        MessageField(2, "producer_id"),
        MessageField(4, THROTTLING_REASON, is_required=False),
        MessageField(5, "pause_for_millis"),
    ),
    "ThrottleProducerReceipt": (MessageField(1, "request_id"),),
    "FeatureFlags": (MessageField(SUPPORTS_THROTTLE_PRODUCER_COMMANDS, SUPPORTS, is_required=False),),
}
"""Fields in the order of their numbers, by message."""


def encode(message: str, values: Mapping[str, int]) -> bytes:
    """All values that are given and no other, in the order of their fields' numbers, as the shortest varints.

    `message` is a key of MESSAGES; values are integers >= 0, or booleans, by the names of its fields. Required fields
    may be left out and reasons need not be known: this writes what it is told.
    Raises InvalidArgument for the name of a field that the message does not have. Source: throttle-protocol 5
    """
    fields = MESSAGES[message]
    unknown = values.keys() - {field.name for field in fields}
    if unknown:
        names = ", ".join(field.name for field in fields)
        raise InvalidArgument(f"{message}: got {', '.join(sorted(unknown))}, allowed are {names}")
    return b"".join(integer_field(field.number, values[field.name]) for field in fields if field.name in values)


def decode(message: str, received_bytes: bytes) -> dict[str, int]:
    """The last value of each field that is there; every required one is, and none is above 2^63-1.

    Optional fields are not limited: what their values mean is the caller's to say.
    Raises WireError: `malformed`, else for the first field in the order of numbers with a mistake `missing_<field>`
    or `out_of_range`. Source: throttle-protocol 5
    """
    fields = MESSAGES[message]
    found = last_values(received_bytes, {field.number: WireType.VARINT for field in fields})
    values = {field.name: int(found[field.number]) for field in fields if field.number in found}
    for field in fields:
        if field.is_required and field.name not in values:
            raise WireError(f"missing_{field.name}", f"{message} without {field.name}, which is required")
        if field.is_required and values[field.name] > MAX:
            raise WireError("out_of_range", f"{message}: {field.name} is {values[field.name]}, allowed is up to {MAX}")
    return values


@dataclass(frozen=True, slots=True)
class ThrottleProducer:
    """The broker asks a producer to stop; decoding what was encoded gives the same.

    request_id, producer_id: 0 to 2^63-1. reason: one that is told, or `Unspecified`, which is written by leaving it
    out. pause_ms: from the arrival on, 0 to 2^63-1; 0 is a notice that reads are off.
    Source: PIP-385, throttle-protocol 5
    """

    request_id: int
    producer_id: int
    reason: Reason
    pause_ms: int

    def encode(self) -> bytes:
        """Raises InvalidArgument for a reason that is never told, and for numbers out of their range."""
        if not self.reason.is_told and self.reason is not Reason.Unspecified:
            raise InvalidArgument(f"reason: got {self.reason.name}, allowed are those that clients are told of")
        values = {
            "request_id": at_least(0, self.request_id, "request_id"),
            "producer_id": at_least(0, self.producer_id, "producer_id"),
            "pause_for_millis": at_least(0, self.pause_ms, "pause_ms"),
        }
        return encode("ThrottleProducer", values | ({THROTTLING_REASON: self.reason} if self.reason.is_told else {}))

    @classmethod
    def decode(cls, received_bytes: bytes) -> Self:
        """Raises WireError as `decode`. A reason that is absent, unknown or of any size else is `Unspecified`."""
        values = decode("ThrottleProducer", received_bytes)
        reason = received(values.get(THROTTLING_REASON))
        return cls(values["request_id"], values["producer_id"], reason, values["pause_for_millis"])


@dataclass(frozen=True, slots=True)
class Receipt:
    """The client answers that it stops. request_id: that of the command, 0 to 2^63-1. Source: PIP-385"""

    request_id: int

    def encode(self) -> bytes:
        """Raises InvalidArgument for a number out of its range."""
        return encode("ThrottleProducerReceipt", {"request_id": at_least(0, self.request_id, "request_id")})

    @classmethod
    def decode(cls, received_bytes: bytes) -> Self:
        """Raises WireError as `decode`."""
        return cls(decode("ThrottleProducerReceipt", received_bytes)["request_id"])


def decode_feature_flags(received_bytes: bytes) -> bool:
    """Whether the throttle protocol is supported: the flag is there and not 0. Other flags are not looked at.

    Raises WireError, code `malformed`. Source: throttle-protocol 5
    """
    return bool(decode("FeatureFlags", received_bytes).get(SUPPORTS, 0))
