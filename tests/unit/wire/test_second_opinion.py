"""The protobuf runtime reads and writes the same, but for the points that headgate.wire.messages names."""

import re

from google.protobuf.message import DecodeError
from hypothesis import given

from headgate.core.protocol.reasons import Reason
from headgate.errors import WireError
from headgate.wire.messages import Receipt, ThrottleProducer, decode
from headgate.wire.throttle_pb2 import CommandThrottleProducer, CommandThrottleProducerReceipt
from unit.wire.drawn import mutated_messages, numbers, throttle_producers

CUT_TO = 2**64
LONG_TAG = re.compile(rb"[\x80-\xff]{4}")  # the runtime refuses tags of more than 32 bits or five bytes


def written_by_protobuf(command: ThrottleProducer) -> bytes:
    message = CommandThrottleProducer(
        request_id=command.request_id, producer_id=command.producer_id, pause_for_millis=command.pause_ms
    )
    if command.reason is not Reason.Unspecified:
        message.throttling_reason = command.reason
    return message.SerializeToString()


@given(throttle_producers)
def test_both_write_the_same_command(command: ThrottleProducer) -> None:
    assert command.encode() == written_by_protobuf(command)


@given(numbers)
def test_both_write_the_same_receipt(request_id: int) -> None:
    assert Receipt(request_id).encode() == CommandThrottleProducerReceipt(request_id=request_id).SerializeToString()


def read_by_protobuf(message: bytes) -> dict[str, int] | None:
    read = CommandThrottleProducer()
    try:
        read.MergeFromString(message)
    except DecodeError:
        return None
    return {field.name: value for field, value in read.ListFields() if field.name != "throttling_reason"}


def read_by_us(message: bytes) -> dict[str, int] | None:
    """Cut to 64 bits, as the runtime does; None if malformed."""
    try:
        values = decode("ThrottleProducer", message)
    except WireError as refused:
        return None if refused.code == "malformed" else {}
    return {name: value % CUT_TO for name, value in values.items() if name != "throttling_reason"}


def test_both_read_the_same_from_drawn_bytes() -> None:
    """What only the runtime takes holds a group, what only we take a number of a field in more than four bytes."""
    read = refused = 0
    for message in mutated_messages(seed=385, count=20_000):
        ours, theirs = read_by_us(message), read_by_protobuf(message)
        if ours is None:
            refused += 1
            assert theirs is None or any(byte & 7 == 3 for byte in message), message.hex()
        elif theirs is None:
            assert LONG_TAG.search(message), message.hex()
        elif ours:
            read += 1
            assert theirs == ours, message.hex()
    assert read > 500
    assert refused > 5000


def test_protobuf_differs_where_it_is_said_to() -> None:
    """A runtime that no longer does could read for us."""

    def reason(message: str) -> int:
        return CommandThrottleProducer.FromString(bytes.fromhex(message)).throttling_reason

    assert read_by_protobuf(b"\x0b\x0c") == {}  # a group
    assert read_by_protobuf(bytes.fromhex("0880808080808080808002")) == {"request_id": 0}  # 2^64
    assert reason("208180808010") == 1  # 2^32+1
    assert reason("20012007") == 1  # unknown after known
    assert read_by_protobuf(bytes.fromhex("808080801001")) is None  # field 2^29
    assert read_by_protobuf(b"") == {}  # required fields
