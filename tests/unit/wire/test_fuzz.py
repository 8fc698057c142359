"""Random and mutated bytes: the decoders refuse them by name, the reader stays in step, and neither ends in a crash."""

import random
from collections.abc import Iterator

import pytest

from headgate.core.numbers import MAX
from headgate.core.protocol.reasons import TOLD, Reason
from headgate.errors import WireError
from headgate.wire import (
    BadFrame,
    Command,
    Connect,
    Frame,
    FrameReader,
    Receipt,
    ThrottleProducer,
    decode_command,
)
from unit.wire.drawn import mutated_messages

LIMIT = 256
MISTAKES = {
    *("malformed", "out_of_range", "missing_type"),
    *("missing_request_id", "missing_producer_id", "missing_pause_for_millis"),
}


def frames(seed: int, count: int) -> Iterator[bytes]:
    """Whole frames, with commands of drawn messages or of chance; about one in four with changed sizes or bytes."""
    chance = random.Random(seed)
    for message in mutated_messages(seed, count):
        match chance.randrange(8):
            case 0:
                command = chance.randbytes(chance.randrange(60))
            case 1:
                command = message
            case _:
                command = Command(chance.choice((2, 3850, 3850, 3851)), message).encode()
        frame = bytearray(Frame(command, chance.randbytes(chance.choice((0, 0, 0, 9)))).encode())
        if chance.randrange(4) == 0:
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        yield bytes(frame)


def read(frame: Frame) -> str:
    """What became of a command: the name of what was read, or of the mistake."""
    try:
        command = decode_command(frame.command)
        match command.type:
            case 3850:
                asked = ThrottleProducer.decode(command.message)
                assert asked.reason in TOLD | {Reason.Unspecified}
                assert max(asked.request_id, asked.producer_id, asked.pause_ms) <= MAX
            case 3851:
                assert 0 <= Receipt.decode(command.message).request_id <= MAX
            case 2:
                Connect.decode(command.message)
    except WireError as refused:
        return refused.code
    return f"type {command.type}" if command.type in {2, 3850, 3851} else "another type"


def survive(seed: int, count: int) -> dict[str, int]:
    """How often each thing became of `count` frames, each through a reader of its own and all in one stream."""
    seen: dict[str, int] = {}
    stream = FrameReader(LIMIT)
    for sent in frames(seed, count):
        for frame in FrameReader(LIMIT).feed(sent):
            outcome = frame.error if isinstance(frame, BadFrame) else read(frame)
            seen[outcome] = seen.get(outcome, 0) + 1
        stream.feed(sent)
        assert stream.kept_bytes < LIMIT + 4
    return seen


def test_30_000_frames_are_read_or_refused_by_name() -> None:
    seen = survive(seed=3850, count=30_000)

    assert seen.keys() == MISTAKES | {"too_large", "type 2", "type 3850", "type 3851", "another type"}
    assert sum(seen.values()) > 27_000


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_two_million_frames_are_read_or_refused_by_name(seed: int) -> None:
    survive(seed, count=100_000)
