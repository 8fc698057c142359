"""Protobuf's wire format as the protocol reads it: fields, or `malformed`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.wire_format import (
    Field,
    WireType,
    bytes_field,
    fields_of,
    integer_field,
    last_values,
    varint,
)
from headgate.errors import WireError

VARINT, FIXED64, BYTES, FIXED32 = WireType.VARINT, WireType.FIXED64, WireType.BYTES, WireType.FIXED32


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        pytest.param("", [], id="no bytes are no fields"),
        pytest.param("08ac02", [(1, VARINT, 300)], id="a varint"),
        pytest.param("0901020304050607080a", None, id="eight bytes, then a field that is cut short"),
        pytest.param("090102030405060708", [(1, FIXED64, bytes(range(1, 9)))], id="eight bytes"),
        pytest.param("0d01020304", [(1, FIXED32, bytes(range(1, 5)))], id="four bytes"),
        pytest.param("0a0341424308010a00", [(1, BYTES, b"ABC"), (1, VARINT, 1), (1, BYTES, b"")], id="in order"),
        pytest.param("888080008100", [(1, VARINT, 1)], id="a tag and a value with more bytes than they need"),
        pytest.param("08ffffffffffffffffff7f", [(1, VARINT, 2**70 - 1)], id="ten bytes lose no bits"),
        pytest.param("8880808080808080800001", [(1, VARINT, 1)], id="a tag of ten bytes"),
        pytest.param("808080801001", [(2**29, VARINT, 1)], id="a number above those of protobuf"),
        pytest.param("08", None, id="no value"),
        pytest.param("0880", None, id="a varint cut short"),
        pytest.param("80", None, id="a tag cut short"),
        pytest.param("08ffffffffffffffffffff01", None, id="a varint of eleven bytes"),
        pytest.param("888080808080808080800001", None, id="a tag of eleven bytes"),
        pytest.param("0a", None, id="no length"),
        pytest.param("0a034142", None, id="fewer bytes than the length says"),
        pytest.param("0affffffffffffffffff7f41", None, id="a length that no memory has"),
        pytest.param("09010203040506", None, id="fewer than eight bytes"),
        pytest.param("0d010203", None, id="fewer than four bytes"),
        pytest.param("0001", None, id="number 0"),
        pytest.param("0200", None, id="number 0 with bytes"),
        pytest.param("0b0c", None, id="a group"),
        pytest.param("7b7c", None, id="a group of an unknown field"),
        pytest.param("0c", None, id="the end of a group"),
        pytest.param("0e01", None, id="wire type 6"),
        pytest.param("0f01", None, id="wire type 7"),
    ],
)
def test_bytes_are_fields_or_malformed(message: str, fields: list[Field] | None) -> None:
    if fields is None:
        with pytest.raises(WireError) as refused:
            list(fields_of(bytes.fromhex(message)))
        assert refused.value.code == "malformed"
    else:
        assert list(fields_of(bytes.fromhex(message))) == fields


def test_the_last_occurrence_with_the_right_wire_type_wins() -> None:
    message = bytes.fromhex("080108020a01031005")

    assert last_values(message, {1: VARINT, 3: VARINT}) == {1: 2}
    assert last_values(message, {1: BYTES, 2: VARINT}) == {1: b"\x03", 2: 5}


def test_a_mistake_after_the_last_known_field_counts() -> None:
    with pytest.raises(WireError, match="malformed: byte 3: wire type 3, allowed are 0, 1, 2, 5"):
        last_values(bytes.fromhex("08010b"), {1: VARINT})


@given(st.integers(0, 2**64 - 1))
def test_a_varint_is_the_shortest(value: int) -> None:
    written = varint(value)

    assert len(written) == max(1, -(-value.bit_length() // 7))
    assert [field.value for field in fields_of(b"\x08" + written)] == [value]


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=300))))
def test_what_was_written_is_read(written: list[tuple[int, int | bytes]]) -> None:
    message = b"".join(
        bytes_field(number, value) if isinstance(value, bytes) else integer_field(number, value)
        for number, value in written
    )

    assert [(field.number, field.value) for field in fields_of(message)] == written
