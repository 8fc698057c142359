"""Pulsar's own commands, as far as a conversation needs them to begin, to live and to end: BaseCommands as bytes.

Written by the protobuf runtime, fields that are not named here aside. A CONNECT is read by wire.connect; reading others
is the caller's, with the classes of throttle_pb2.
"""

from enum import IntEnum

from headgate.wire.throttle_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandPing,
    CommandPong,
    FeatureFlags,
)

PROTOCOL_VERSION = 21
"""The newest that Pulsar 4 speaks."""
AUTH_METHOD = "token"
"""The method of Pulsar's clients that show a token: its bytes are the authentication data."""
NO_REQUEST_ID = 2**64 - 1
"""What an error has that answers no request: Pulsar's -1."""


class ServerError(IntEnum):
    """The codes of Pulsar's ServerError that are used here."""

    AUTHENTICATION_ERROR = 3
    TOO_MANY_REQUESTS = 14
    NOT_ALLOWED = 22


def connect(
    client_version: str,
    *,
    supports_throttle_producer: bool,
    connection: str | None = None,
    token: str | None = None,
) -> bytes:
    """The client's first command. connection: its name, for `headgate gate`; brokers skip it as an unknown field."""
    message = CommandConnect(
        client_version=client_version,
        protocol_version=PROTOCOL_VERSION,
        feature_flags=FeatureFlags(supports_throttle_producer_commands=True) if supports_throttle_producer else None,
        connection=connection,
        auth_method_name=None if token is None else AUTH_METHOD,
        auth_data=None if token is None else token.encode(),
    )
    return _bytes(BaseCommand(type=BaseCommand.CONNECT, connect=message))


def connected(server_version: str, *, protocol_version: int, max_message_size: int) -> bytes:
    """The broker's answer: what both sides speak, and the largest message in bytes."""
    message = CommandConnected(
        server_version=server_version, protocol_version=protocol_version, max_message_size=max_message_size
    )
    return _bytes(BaseCommand(type=BaseCommand.CONNECTED, connected=message))


def ping() -> bytes:
    """Either side asks whether the other is there."""
    return _bytes(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))


def pong() -> bytes:
    """The answer to a ping."""
    return _bytes(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))


def error(request_id: int, code: int, text: str) -> bytes:
    """The answer to a request that failed, with a code of Pulsar's ServerError."""
    message = CommandError(request_id=request_id, error=code, message=text)
    return _bytes(BaseCommand(type=BaseCommand.ERROR, error=message))


def _bytes(command: BaseCommand) -> bytes:
    written: bytes = command.SerializeToString()
    return written
