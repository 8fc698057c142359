"""Pulsar's own commands, as far as a conversation needs them to begin, to live and to end: BaseCommands as bytes.

Written by the protobuf runtime, fields that are not named here aside. Reading is the caller's, with the classes of
throttle_pb2.
"""

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


def connect(client_version: str, *, supports_throttle_producer: bool) -> bytes:
    """The client's first command."""
    flags = FeatureFlags(supports_throttle_producer_commands=True) if supports_throttle_producer else None
    message = CommandConnect(client_version=client_version, protocol_version=PROTOCOL_VERSION, feature_flags=flags)
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
