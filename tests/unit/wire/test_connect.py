"""CONNECT: what a client says of itself, whoever wrote it."""

import pytest

from headgate.core.protocol.wire_format import bytes_field, integer_field
from headgate.errors import WireError
from headgate.wire import Connect, decode_command, pulsar_commands
from headgate.wire.pulsar_commands import PROTOCOL_VERSION


def sent(**said: str) -> bytes:
    return decode_command(pulsar_commands.connect("c", supports_throttle_producer=True, **said)).message


def test_what_a_client_of_ours_says_is_read() -> None:
    assert Connect.decode(sent(connection="b/c-1", token="s3")) == Connect("b/c-1", b"s3", PROTOCOL_VERSION, True)


def test_what_is_not_said_is_read_as_empty() -> None:
    assert Connect.decode(b"") == Connect("", None, 0, False)
    assert Connect.decode(sent()) == Connect("", None, PROTOCOL_VERSION, True)


def test_data_of_another_method_is_no_token() -> None:
    basic = bytes_field(5, b"basic") + bytes_field(3, b"s3")
    assert Connect.decode(basic).token is None


def test_fields_of_a_real_client_beside_these_are_skipped() -> None:
    real = bytes_field(1, b"Pulsar-Java") + bytes_field(6, b"pulsar://b:6650") + bytes_field(10, integer_field(6, 1))
    assert Connect.decode(real) == Connect("", None, 0, False)


@pytest.mark.parametrize("message", [bytes_field(385, b"\xff"), b"\x0a\x05a"], ids=["not UTF-8", "cut short"])
def test_what_cannot_be_read_is_malformed(message: bytes) -> None:
    with pytest.raises(WireError) as refused:
        Connect.decode(message)
    assert refused.value.code == "malformed"


def test_a_token_is_not_shown() -> None:
    assert "s3" not in repr(Connect.decode(sent(token="s3")))
