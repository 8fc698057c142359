"""The conversation with a client: bytes and time in, events out."""

from collections.abc import Iterable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import Reason
from headgate.gate.session import MAX_BAD_FRAMES, MAX_NAME_BYTES, Answered, Ends, Event, Joins, Rules, Send, Session
from headgate.wire import (
    Command,
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
    pulsar_commands,
    throttle_producer,
    throttle_producer_receipt,
)
from headgate.wire.pulsar_commands import NO_REQUEST_ID, ServerError
from headgate.wire.throttle_pb2 import BaseCommand, CommandConnected, CommandError

RULES = Rules(max_frame_bytes=1000, handshake_timeout_ms=50, idle_timeout_ms=200)
PING = Frame(pulsar_commands.ping()).encode()
PONG = Frame(pulsar_commands.pong()).encode()
RECEIPT = Frame(throttle_producer_receipt(Receipt(7))).encode()
BAD_RECEIPT = Frame(Command(3851, b"").encode()).encode()
NO_COMMAND = Frame(b"\xff").encode()
BAD_SIZES = b"\x00\x00\x00\x05\x00\x00\x00\x09\x08"
TOO_LARGE = (1001).to_bytes(4)
OTHER = Frame(Command(37, b"").encode()).encode()


def connect(connection: str | None = "c", *, supports: bool = True, token: str | None = None) -> bytes:
    said = pulsar_commands.connect("test", supports_throttle_producer=supports, connection=connection, token=token)
    return Frame(said).encode()


def joined(rules: Rules = RULES) -> Session:
    session = Session(rules, Counters(), 0)
    assert list(session.receive(connect(), 0)) == [Joins("c", True)]
    return session


def error_of(events: Iterable[Event]) -> tuple[int, int, str]:
    """Code, request id and reason of a conversation that ends, whose client is told why."""
    sent, ends = events
    assert isinstance(sent, Send)
    assert isinstance(ends, Ends)
    (frame,) = FrameReader().feed(sent.frame)
    assert isinstance(frame, Frame)
    command = decode_command(frame.command)
    assert command.type == BaseCommand.ERROR
    error = CommandError.FromString(command.message)
    assert error.message == ends.why
    return error.error, error.request_id, error.message


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        pytest.param(connect("b/1"), Joins("b/1", True), id="with the flag"),
        pytest.param(connect("b/1", supports=False), Joins("b/1", False), id="without"),
        pytest.param(connect("b/1", token="any"), Joins("b/1", True), id="a token that nobody asked for"),
        pytest.param(connect("x" * 500), Joins("x" * 500, True), id="a long name"),
    ],
)
def test_a_client_joins_by_its_name_with_its_flag(received: bytes, expected: Joins) -> None:
    assert list(Session(RULES, Counters(), 0).receive(received, 0)) == [expected]


def test_the_welcome_says_what_both_speak_and_the_bound_of_frames() -> None:
    (frame,) = FrameReader().feed(joined().welcome())
    assert isinstance(frame, Frame)
    command = decode_command(frame.command)
    said = CommandConnected.FromString(command.message)

    assert (command.type, said.protocol_version, said.max_message_size) == (BaseCommand.CONNECTED, 21, 1000)


@pytest.mark.parametrize(
    ("received", "code", "words"),
    [
        pytest.param(PING, ServerError.NOT_ALLOWED, "first command", id="another command first"),
        pytest.param(connect(None), ServerError.NOT_ALLOWED, "field 385", id="no name"),
        pytest.param(connect(""), ServerError.NOT_ALLOWED, "field 385", id="an empty name"),
        pytest.param(NO_COMMAND, ServerError.NOT_ALLOWED, "first frame", id="no command"),
        pytest.param(BAD_SIZES, ServerError.NOT_ALLOWED, "first frame", id="sizes that contradict each other"),
        pytest.param(TOO_LARGE, ServerError.NOT_ALLOWED, "more than 1000 bytes", id="too large"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", ServerError.NOT_ALLOWED, "more than 1000 bytes", id="HTTP"),
    ],
)
def test_a_conversation_that_does_not_begin_well_ends_with_its_reason(
    received: bytes, code: ServerError, words: str
) -> None:
    got = error_of(Session(RULES, Counters(), 0).receive(received + connect(), 0))

    assert got[:2] == (code, NO_REQUEST_ID)
    assert words in got[2]


@pytest.mark.parametrize("shown", [None, "", "wrong", "s3cret2"])
def test_a_client_without_the_token_is_refused(shown: str | None) -> None:
    session = Session(Rules(token=b"s3cret"), Counters(), 0)
    assert error_of(session.receive(connect(token=shown), 0))[0] == ServerError.AUTHENTICATION_ERROR


def test_a_client_with_the_token_joins() -> None:
    session = Session(Rules(token=b"s3cret"), Counters(), 0)
    assert list(session.receive(connect(token="s3cret"), 0)) == [Joins("c", True)]


def test_the_token_is_not_shown() -> None:
    assert "s3cret" not in repr(Rules(token=b"s3cret"))


def test_a_name_that_is_too_long_is_refused() -> None:
    session = Session(Rules(), Counters(), 0)
    assert error_of(session.receive(connect("x" * (MAX_NAME_BYTES + 1)), 0))[0] == ServerError.NOT_ALLOWED


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        pytest.param(RECEIPT, [Answered(7)], id="receipt"),
        pytest.param(PING, [Send(PONG)], id="ping"),
        pytest.param(PONG, [], id="pong"),
        pytest.param(OTHER, [], id="a command that is not known here"),
        pytest.param(BAD_RECEIPT + RECEIPT, [Answered(7)], id="a bad receipt is dropped"),
        pytest.param(NO_COMMAND + RECEIPT, [Answered(7)], id="no command is dropped"),
        pytest.param(BAD_SIZES + RECEIPT, [Answered(7)], id="bad sizes are dropped"),
        pytest.param(RECEIPT + PING + RECEIPT, [Answered(7), Send(PONG), Answered(7)], id="in order"),
        pytest.param(
            Frame(throttle_producer(ThrottleProducer(1, 1, Reason.Unspecified, 1))).encode(),
            [],
            id="a broker's command",
        ),
    ],
)
def test_after_the_greeting(received: bytes, expected: list[Event]) -> None:
    assert list(joined().receive(received, 1)) == expected


@pytest.mark.parametrize(
    ("received", "words"),
    [
        pytest.param(connect(), "second CONNECT", id="a second CONNECT"),
        pytest.param(TOO_LARGE, "more than 1000 bytes", id="too large"),
        pytest.param(NO_COMMAND * MAX_BAD_FRAMES, f"{MAX_BAD_FRAMES} bad frames", id="bad frames"),
    ],
)
def test_what_ends_a_conversation_and_that_nothing_comes_after_it(received: bytes, words: str) -> None:
    session = joined()

    assert words in error_of(session.receive(received + RECEIPT, 1))[2]
    assert list(session.receive(RECEIPT, 2)) == []
    assert session.next_due_ms() is None


def test_nothing_comes_after_a_refusal_by_the_gate() -> None:
    session = Session(RULES, Counters(), 0)
    events = session.receive(connect() + PING, 0)

    assert next(events) == Joins("c", True)
    session.refusal(ServerError.NOT_ALLOWED, "no place")
    assert list(events) == []


def test_bad_frames_are_counted_by_their_mistake() -> None:
    counters = Counters()
    session = Session(RULES, counters, 0)
    list(session.receive(connect() + BAD_RECEIPT + NO_COMMAND + BAD_SIZES + OTHER, 0))

    assert counters.values() == {
        "headgate.gate.bad_frame.count{error=missing_request_id}": 1,
        "headgate.gate.bad_frame.count{error=malformed}": 2,
        "headgate.gate.unknown_command.count{}": 1,
    }


ASK, IDLE = Send(PING), Ends("idle")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(99, b"", []), (100, b"", [ASK]), (199, b"", []), (200, b"", [IDLE])], id="never heard again"),
        pytest.param(
            [(100, b"", [ASK]), (150, PONG, []), (249, b"", []), (250, b"", [ASK]), (350, b"", [IDLE])], id="it answers"
        ),
        pytest.param([(90, RECEIPT, [Answered(7)]), (189, b"", []), (190, b"", [ASK])], id="any frame will do"),
        pytest.param(
            [(90, PONG[:5], []), (100, b"", [ASK]), (190, PONG[5:7], []), (200, b"", [IDLE])], id="byte by byte"
        ),
    ],
)
def test_a_client_that_sends_no_whole_frame_is_asked_and_then_given_up(
    steps: list[tuple[int, bytes, list[Event]]],
) -> None:
    session = joined()
    for at_ms, received, expected in steps:
        assert [*session.receive(received, at_ms), *session.advance(at_ms)] == expected, at_ms


def test_a_client_that_does_not_greet_in_time_is_given_up() -> None:
    session = Session(RULES, Counters(), 1000)
    list(session.receive(connect()[:-1], 1049))

    assert session.next_due_ms() == 1050
    assert session.advance(1049) == []
    assert session.advance(1050) == [Ends("no CONNECT in time")]
    assert list(session.receive(connect()[-1:], 1051)) == []


def test_a_client_whose_reads_are_off_is_neither_asked_nor_idle() -> None:
    session = joined()
    session.stop_reading()

    assert session.next_due_ms() is None
    assert session.advance(10_000) == []
    session.resume_reading(10_000)
    assert session.next_due_ms() == 10_100


@given(
    st.lists(st.sampled_from([RECEIPT, PING, PONG, OTHER, BAD_RECEIPT, BAD_SIZES, NO_COMMAND, connect()]), max_size=12),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_how_bytes_are_cut_does_not_show(frames: list[bytes], cuts: list[int]) -> None:
    received = connect() + b"".join(frames)
    whole, cut, events, at = Session(RULES, Counters(), 0), Session(RULES, Counters(), 0), [], 0
    for length in cycle(cuts):
        events += cut.receive(received[at : at + length], 0)
        at += length
        if at >= len(received):
            break

    assert events == list(whole.receive(received, 0))
    assert cut.next_due_ms() == whole.next_due_ms()


@given(st.binary(max_size=200))
def test_no_bytes_raise(received: bytes) -> None:
    for session in (joined(), Session(RULES, Counters(), 0)):
        events = list(session.receive(received, 1))
        assert not any(isinstance(event, Joins) for event in events)
