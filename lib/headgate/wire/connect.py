"""What a client says of itself in its CONNECT command."""

from dataclasses import dataclass, field
from typing import Self

from headgate.core.protocol.wire_format import WireType, last_values
from headgate.errors import WireError
from headgate.wire.messages import decode_feature_flags
from headgate.wire.pulsar_commands import AUTH_METHOD
from headgate.wire.throttle_pb2 import CommandConnect

AUTH_DATA = CommandConnect.AUTH_DATA_FIELD_NUMBER
AUTH_METHOD_NAME = CommandConnect.AUTH_METHOD_NAME_FIELD_NUMBER
CONNECTION = CommandConnect.CONNECTION_FIELD_NUMBER
FEATURE_FLAGS = CommandConnect.FEATURE_FLAGS_FIELD_NUMBER
PROTOCOL_VERSION = CommandConnect.PROTOCOL_VERSION_FIELD_NUMBER

_WIRE_TYPES = {
    AUTH_DATA: WireType.BYTES,
    AUTH_METHOD_NAME: WireType.BYTES,
    CONNECTION: WireType.BYTES,
    FEATURE_FLAGS: WireType.BYTES,
    PROTOCOL_VERSION: WireType.VARINT,
}


@dataclass(frozen=True, slots=True)
class Connect:
    """A CONNECT as it was read; absent fields have the values of an empty message.

    connection: the client's name for itself, "" without one. token: None unless the method is Pulsar's `token`.
    protocol_version: >= 0, 0 without one. supports: whether it has the throttle protocol's feature.
    """

    connection: str
    token: bytes | None = field(repr=False)
    protocol_version: int
    supports: bool

    @classmethod
    def decode(cls, message: bytes) -> Self:
        """Raises WireError, code `malformed`, also for a name that is not UTF-8."""
        values = last_values(message, _WIRE_TYPES)
        method = bytes(values.get(AUTH_METHOD_NAME, b""))
        try:
            connection = bytes(values.get(CONNECTION, b"")).decode()
        except UnicodeDecodeError as error:
            raise WireError("malformed", "CONNECT: connection is not UTF-8") from error
        return cls(
            connection=connection,
            token=bytes(values.get(AUTH_DATA, b"")) if method == AUTH_METHOD.encode() else None,
            protocol_version=int(values.get(PROTOCOL_VERSION, 0)),
            supports=decode_feature_flags(bytes(values.get(FEATURE_FLAGS, b""))),
        )
