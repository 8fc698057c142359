"""Fields as bytes and back: protobuf's wire format under the protocol's rules (throttle-protocol 5)."""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from headgate.errors import WireError

MAX_VARINT_BYTES = 10
GROUP_OF_7 = 0x7F
MORE = 0x80


class WireType(IntEnum):
    """How a value is written. Those that are missing here (groups, 6, 7) are malformed."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


WIRE_TYPES = {int(wire_type): wire_type for wire_type in WireType}
FIXED_SIZES = {WireType.FIXED64: 8, WireType.FIXED32: 4}


class Field(NamedTuple):
    """One occurrence of a field: `value` is an integer >= 0 for a varint, else the bytes as they are."""

    number: int
    wire_type: WireType
    value: int | bytes


def fields_of(message: bytes) -> Iterator[Field]:
    """Every byte of a message belongs to one field; the fields come in the order of the bytes.

    Values are what the bytes say: a varint of ten bytes may be as large as 2^70-1, it loses no bits. So may a field's
    number. Bytes inside a field are not looked at. No bytes are no fields.
    Raises WireError, code `malformed`, when it comes to a field that is cut short, has the number 0 or a wire type
    that is not in WireType, or to a varint of more than ten bytes.
    Source: throttle-protocol 5
    """
    at = 0
    while at < len(message):
        tag, at = _varint_at(message, at)
        number, wire_type = tag >> 3, _wire_type(tag & 7, at)
        if number == 0:
            raise WireError("malformed", f"byte {at}: a field with number 0, allowed are numbers from 1")
        value: int | bytes
        if wire_type is WireType.VARINT:
            value, at = _varint_at(message, at)
        else:
            size, at = _varint_at(message, at) if wire_type is WireType.BYTES else (FIXED_SIZES[wire_type], at)
            if size > len(message) - at:
                raise WireError(
                    "malformed", f"byte {at}: field {number} has {size} bytes, {len(message) - at} are left"
                )
            value, at = message[at : at + size], at + size
        yield Field(number, wire_type, value)


def last_values(message: bytes, wire_types: dict[int, WireType]) -> dict[int, int | bytes]:
    """The value of the last occurrence of each field that `wire_types` names, by number; absent ones are left out.

    Other fields, and these with another wire type, are skipped.
    Raises WireError as `fields_of`. Source: throttle-protocol 5
    """
    return {
        field.number: field.value for field in fields_of(message) if wire_types.get(field.number) is field.wire_type
    }


def varint(value: int) -> bytes:
    """The shortest varint of an integer >= 0; those below 2^64 have at most ten bytes."""
    if value <= GROUP_OF_7:
        return bytes((value,))
    written = bytearray()
    while value > GROUP_OF_7:
        written.append(value & GROUP_OF_7 | MORE)
        value >>= 7
    written.append(value)
    return bytes(written)


def integer_field(number: int, value: int) -> bytes:
    """An integer >= 0 under the number of its field."""
    return varint(number << 3 | WireType.VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Bytes, such as those of a message within a message, under the number of their field."""
    return varint(number << 3 | WireType.BYTES) + varint(len(value)) + value


def _varint_at(message: bytes, start: int) -> tuple[int, int]:
    """The varint that starts there, which need not be the shortest, and where the next byte is."""
    if start < len(message) and message[start] < MORE:  # most are
        return message[start], start + 1
    value = 0
    for place, byte in enumerate(message[start : start + MAX_VARINT_BYTES]):
        value |= (byte & GROUP_OF_7) << 7 * place
        if byte < MORE:
            return value, start + place + 1
    raise WireError(
        "malformed", f"byte {start}: a number that does not end, allowed are up to {MAX_VARINT_BYTES} bytes"
    )


def _wire_type(code: int, at: int) -> WireType:
    if code not in WIRE_TYPES:
        raise WireError("malformed", f"byte {at}: wire type {code}, allowed are {', '.join(map(str, WIRE_TYPES))}")
    return WIRE_TYPES[code]
