"""A client's conversation with the gate: bytes and time in, events out. No sockets, no clock."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.core.protocol.counters import Counters
from headgate.core.protocol.wire_numbers import THROTTLE_PRODUCER_RECEIPT
from headgate.errors import WireError
from headgate.wire import BadFrame, Connect, Frame, FrameReader, Receipt, decode_command, pulsar_commands
from headgate.wire.pulsar_commands import NO_REQUEST_ID, PROTOCOL_VERSION, ServerError
from headgate.wire.throttle_pb2 import BaseCommand

SERVER_VERSION = "headgate"
MAX_NAME_BYTES = 1024
MAX_BAD_FRAMES = 16
"""A client that cannot be understood so often is one that speaks something else."""
BAD_FRAMES = "headgate.gate.bad_frame.count"
UNKNOWN_COMMANDS = "headgate.gate.unknown_command.count"


@dataclass(frozen=True, slots=True)
class Rules:
    """What every conversation goes by; see GateSettings. token: what CONNECT has to show, None: nothing."""

    max_frame_bytes: int = 16_384
    handshake_timeout_ms: int = 3_000
    idle_timeout_ms: int = 60_000
    token: bytes | None = field(default=None, repr=False)


class Send(NamedTuple):
    """Write this frame."""

    frame: bytes


class Joins(NamedTuple):
    """The client wants the commands of a connection: answer with `welcome` or `refusal` before the next event."""

    connection: str
    supports: bool


class Answered(NamedTuple):
    """A receipt."""

    request_id: int


class Ends(NamedTuple):
    """Close the connection, once what was sent before is written. Nothing comes after it."""

    why: str


Event = Send | Joins | Answered | Ends


class Session:
    """A conversation depends on its bytes and their times, not on how the bytes were cut.

    Nothing that a client sends raises, and of an unfinished frame at most `max_frame_bytes` + 4 bytes are kept. A bad
    frame is counted and dropped (throttle-protocol 5); the conversation ends where nothing good can come: a first frame
    that is no CONNECT, a frame above the bound, MAX_BAD_FRAMES bad ones, nothing whole for too long.

    Arguments: `at_ms`, when the connection was made; `counters`, which several sessions may share.
    Attributes: `is_read`, whether the connection's reads are on.
    """

    __slots__ = (
        "_bad_frames",
        "_counters",
        "_has_ended",
        "_has_joined",
        "_heard_ms",
        "_is_asked",
        "_protocol_version",
        "_reader",
        "_rules",
        "is_read",
    )

    def __init__(self, rules: Rules, counters: Counters, at_ms: int) -> None:
        self._rules = rules
        self._counters = counters
        self._reader = FrameReader(rules.max_frame_bytes)
        self._heard_ms = at_ms
        self._bad_frames = 0
        self._protocol_version = 0
        self._has_joined = False
        self._has_ended = False
        self._is_asked = False
        self.is_read = True

    def receive(self, received: bytes, at_ms: int) -> Iterator[Event]:
        """What the frames that end in these bytes bring about, in order, each as it is taken out of the iterator."""
        for frame in self._reader.feed(received):
            self._heard_ms, self._is_asked = at_ms, False
            for event in self._take(frame):
                if self._has_ended:
                    return
                self._has_ended = isinstance(event, Ends)
                yield event
            if self._has_ended:
                return

    def welcome(self) -> bytes:
        """The frame that answers Joins."""
        version = min(self._protocol_version, PROTOCOL_VERSION)
        return _framed(
            pulsar_commands.connected(
                SERVER_VERSION, protocol_version=version, max_message_size=self._rules.max_frame_bytes
            )
        )

    def refusal(self, code: ServerError, text: str) -> bytes:
        """The frame that answers Joins where there is no place. The conversation is over."""
        self._has_ended = True
        return refusal(code, text)

    def stop_reading(self) -> None:
        """Reads go off: a client that cannot be heard is not asked, and not idle."""
        self.is_read = False

    def resume_reading(self, at_ms: int) -> None:
        """Reads are on again, and the client has its whole time."""
        self.is_read, self._is_asked, self._heard_ms = True, False, at_ms

    def next_due_ms(self) -> int | None:
        """When `advance` has something to do if nothing comes until then; None: never."""
        if self._has_ended or not self.is_read:
            return None
        if not self._has_joined:
            return self._heard_ms + self._rules.handshake_timeout_ms
        return self._heard_ms + self._rules.idle_timeout_ms // (1 if self._is_asked else 2)

    def advance(self, at_ms: int) -> list[Event]:
        """What is due by `at_ms`: a ping, or the end."""
        due_ms = self.next_due_ms()
        if due_ms is None or at_ms < due_ms:
            return []
        if self._has_joined and not self._is_asked:
            self._is_asked = True
            return [Send(_framed(pulsar_commands.ping()))]
        self._has_ended = True
        return [Ends("idle" if self._has_joined else "no CONNECT in time")]

    def _take(self, frame: Frame | BadFrame) -> Iterator[Event]:
        if isinstance(frame, BadFrame):
            yield from self._bad(frame.error)
            return
        try:
            command = decode_command(frame.command)
            if not self._has_joined:
                yield from self._greeted(command.type, command.message)
            elif command.type == THROTTLE_PRODUCER_RECEIPT:
                yield Answered(Receipt.decode(command.message).request_id)
            elif command.type == BaseCommand.PING:
                yield Send(_framed(pulsar_commands.pong()))
            elif command.type == BaseCommand.CONNECT:
                yield from _ending(ServerError.NOT_ALLOWED, "a second CONNECT")
            elif command.type != BaseCommand.PONG:
                self._counters.add(UNKNOWN_COMMANDS, ())
        except WireError as error:
            yield from self._bad(error.code)

    def _greeted(self, command_type: int, message: bytes) -> Iterator[Event]:
        if command_type != BaseCommand.CONNECT:
            yield from _ending(ServerError.NOT_ALLOWED, "the first command has to be CONNECT")
            return
        said = Connect.decode(message)
        if self._rules.token is not None and not hmac.compare_digest(said.token or b"", self._rules.token):
            yield from _ending(ServerError.AUTHENTICATION_ERROR, "the token is missing or wrong")
        elif not 0 < len(said.connection.encode()) <= MAX_NAME_BYTES:
            what = f"CONNECT has to name its connection in field 385, with up to {MAX_NAME_BYTES} bytes"
            yield from _ending(ServerError.NOT_ALLOWED, what)
        else:
            self._has_joined = True
            self._protocol_version = said.protocol_version
            yield Joins(said.connection, said.supports)

    def _bad(self, error: str) -> Iterator[Event]:
        self._counters.add(BAD_FRAMES, (("error", error),))
        self._bad_frames += 1
        if error == "too_large":
            what = f"a frame of more than {self._rules.max_frame_bytes} bytes"
        elif not self._has_joined:
            what = "the first frame has to be a CONNECT that can be read"
        elif self._bad_frames == MAX_BAD_FRAMES:
            what = f"{MAX_BAD_FRAMES} bad frames"
        else:
            return
        yield from _ending(ServerError.NOT_ALLOWED, what)


def _ending(code: ServerError, text: str) -> Iterator[Event]:
    yield Send(refusal(code, text))
    yield Ends(text)


def refusal(code: ServerError, text: str) -> bytes:
    return _framed(pulsar_commands.error(NO_REQUEST_ID, code, text))


def _framed(command: bytes) -> bytes:
    return Frame(command).encode()
