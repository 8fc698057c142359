"""Commands in frames: what they say is read, and what is passed on keeps what nobody here knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.wire_format import bytes_field, integer_field
from headgate.errors import WireError
from headgate.wire import (
    Command,
    Connect,
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
    pulsar_commands,
    throttle_producer,
    throttle_producer_receipt,
)
from headgate.wire.throttle_pb2 import BaseCommand, CommandConnected, CommandError
from unit.wire.drawn import throttle_producers

COMMAND = ThrottleProducer(1, 2, Reason.TopicProduceQuotaExceeded, 700)
FLAGS_1_TO_9 = b"".join(integer_field(number, 1) for number in range(1, 10))


def test_a_command_to_throttle_has_these_bytes() -> None:
    assert throttle_producer(COMMAND).hex() == "088a1ed2f0010908011002200028bc05"
    assert throttle_producer_receipt(Receipt(300)).hex() == "088b1edaf0010308ac02"


@given(throttle_producers)
def test_protobuf_reads_the_command_in_its_field(command: ThrottleProducer) -> None:
    read = BaseCommand.FromString(throttle_producer(command))

    assert (read.type, read.throttleProducer.SerializeToString()) == (3850, command.encode())
    assert decode_command(read.SerializeToString()) == Command(3850, command.encode())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("0812920100", Command(18, b""), id="ping"),
        pytest.param("0812", Command(18, b""), id="a message that is not there"),
        pytest.param("9201000812", Command(18, b""), id="in any order"),
        pytest.param("08518a05020801", Command(81, b"\x08\x01"), id="a type that is not known here"),
        pytest.param("088a1ed2f001020801d2f001020802", Command(3850, b"\x08\x02"), id="the last message"),
        pytest.param("081208139a0100", Command(19, b""), id="the last type"),
        pytest.param("088a1ed2f00101ff", Command(3850, b"\xff"), id="the message is not read yet"),
        pytest.param("088b1edaf00100", Command(3851, b""), id="an empty receipt"),
        pytest.param("088b1edaf001028001" + "0812", Command(18, b""), id="another type behind a receipt"),
        pytest.param("088b1edaf00180800101", "malformed", id="a receipt whose size says more than there is"),
        pytest.param("088b1edaf001", "malformed", id="a receipt that ends before its size"),
        pytest.param("088b1edaf00182000801", Command(3851, b"\x08\x01"), id="a size that is not the shortest"),
        pytest.param("", "missing_type", id="empty"),
        pytest.param("920100", "missing_type", id="no type"),
        pytest.param("0a0112", "missing_type", id="a type with a wrong wire type"),
        pytest.param("0800", "out_of_range", id="type 0"),
        pytest.param("0801", "out_of_range", id="type 1, the field of the type itself"),
        pytest.param("08ffffffffffffffffff7f", "out_of_range", id="type 2^70-1"),
        pytest.param("081292010100"[:-2], "malformed", id="cut short"),
        pytest.param("08129301", "malformed", id="a group"),
    ],
)
def test_a_command_is_a_type_and_a_message(command: str, expected: Command | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(WireError) as refused:
            decode_command(bytes.fromhex(command))
        assert refused.value.code == expected
    else:
        assert decode_command(bytes.fromhex(command)) == expected


@given(
    throttle_producers,
    st.binary(max_size=20),
    st.integers(82, 2**20).filter(lambda number: number not in {3850, 3851, 4000}),  # a command's own field
    st.binary(max_size=10),
)
def test_a_frame_that_is_passed_on_keeps_all_its_bytes(
    command: ThrottleProducer, unknown: bytes, number: int, payload: bytes
) -> None:
    """Fields, reasons and types of later days, and payloads."""
    of_later_days = command.encode() + integer_field(4, 77) + bytes_field(number, unknown)
    for command_type in (3850, 3851, 4000):
        sent = Frame(Command(command_type, of_later_days).encode() + bytes_field(number, unknown), payload).encode()
        (frame,) = FrameReader().feed(sent)

        assert decode_command(frame.command).message == of_later_days
        assert frame.encode() == sent


def test_the_protobuf_runtime_keeps_what_it_does_not_know() -> None:
    """Flags 1 to 9 pass a BaseCommand that names none of them."""
    sent = Command(2, bytes_field(1, b"c") + bytes_field(10, FLAGS_1_TO_9 + integer_field(385, 1))).encode()
    read = BaseCommand.FromString(sent)

    assert read.connect.feature_flags.supports_throttle_producer_commands
    assert read.SerializeToString() == Command(2, read.connect.SerializeToString()).encode()
    assert FLAGS_1_TO_9 in read.SerializeToString()


@pytest.mark.parametrize("supported", [True, False])
def test_a_client_says_at_connect_whether_it_has_the_feature(supported: bool) -> None:
    sent = decode_command(pulsar_commands.connect("headgate", supports_throttle_producer=supported))

    assert sent.type == BaseCommand.CONNECT
    assert Connect.decode(sent.message).supports is supported


def test_the_flags_that_pulsar_has_today_are_not_the_feature() -> None:
    assert not Connect.decode(bytes_field(1, b"Pulsar-CPP-v4.0.0") + bytes_field(10, FLAGS_1_TO_9)).supports


@pytest.mark.parametrize("connect", ["52020b0c", "5202", "5203008801"])
def test_flags_that_cannot_be_read_are_malformed(connect: str) -> None:
    with pytest.raises(WireError) as refused:
        Connect.decode(bytes.fromhex(connect))
    assert refused.value.code == "malformed"


def test_a_conversation_has_these_bytes() -> None:
    """Type, field and content as Pulsar numbers them."""
    assert pulsar_commands.ping().hex() == "0812920100"
    assert pulsar_commands.pong().hex() == "08139a0100"
    assert pulsar_commands.connect("c", supports_throttle_producer=True).hex() == "0802120a0a016320155203881801"
    connected = decode_command(pulsar_commands.connected("s", protocol_version=21, max_message_size=5242880))
    assert (connected.type, connected.message.hex()) == (3, "0a01731015188080c002")
    assert CommandConnected.FromString(connected.message).max_message_size == 5242880
    error = decode_command(pulsar_commands.error(7, 22, "not allowed"))
    assert (error.type, error.message.hex()) == (14, "080710161a0b6e6f7420616c6c6f776564")
    assert CommandError.FromString(error.message).message == "not allowed"
