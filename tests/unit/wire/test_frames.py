"""The frame reader: any cut of the stream gives the same frames, nothing raises, memory is bounded."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.frames import MAX_FRAME_SIZE, BadFrame, Frame, FrameReader

LIMIT = 64

frames = st.builds(Frame, st.binary(max_size=30), st.binary(max_size=30))


def size(number: int) -> bytes:
    return number.to_bytes(4)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces, some of them empty."""
    bounds = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


def read(pieces: list[bytes]) -> list[Frame | BadFrame]:
    reader = FrameReader(LIMIT)
    return [frame for piece in pieces for frame in reader.feed(piece)]


def test_a_frame_has_these_bytes() -> None:
    assert Frame(b"\x08\x12\x92\x01\x00").encode().hex() == "00000009000000050812920100"
    assert Frame(b"\x08\x06", b"\x0e\x01XY").encode().hex() == "0000000a0000000208060e015859"
    assert Frame(b"").encode().hex() == "0000000400000000"


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(size(6) + size(2) + b"ab", [Frame(b"ab")], id="a command"),
        pytest.param(size(6) + size(1) + b"ab", [Frame(b"a", b"b")], id="a command with payload"),
        pytest.param(size(4) + size(0), [Frame(b"")], id="an empty command"),
        pytest.param(size(6) + size(2) + b"a", [], id="not all of it"),
        pytest.param(size(0) + size(5) + size(1) + b"a", [BadFrame("malformed", 0), Frame(b"a")], id="no size"),
        pytest.param(size(3) + b"abc" + size(4) + size(0), [BadFrame("malformed", 3), Frame(b"")], id="half a size"),
        pytest.param(size(6) + size(3) + b"ab", [BadFrame("malformed", 6)], id="a command larger than its frame"),
        pytest.param(size(5) + size(2**32 - 1) + b"a", [BadFrame("malformed", 5)], id="as large as can be written"),
        pytest.param(size(LIMIT) + size(LIMIT - 4) + b"a" * (LIMIT - 4), [Frame(b"a" * (LIMIT - 4))], id="the largest"),
        pytest.param(
            size(LIMIT + 1) + b"a" * (LIMIT + 1) + size(4) + size(0),
            [BadFrame("too_large", LIMIT + 1), Frame(b"")],
            id="too large, and the stream goes on behind it",
        ),
        pytest.param(b"GET / HTTP/1.1\r\n", [BadFrame("too_large", 0x47455420)], id="another protocol"),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_stream_is_frames(stream: bytes, expected: list[Frame | BadFrame], piece: int) -> None:
    assert read([stream[start : start + piece] for start in range(0, len(stream), piece)]) == expected


@given(st.lists(frames, max_size=8), st.lists(st.integers(0, 400), max_size=20))
def test_frames_that_were_encoded_come_back_however_the_stream_is_cut(sent: list[Frame], places: list[int]) -> None:
    assert read(cut(b"".join(frame.encode() for frame in sent), places)) == sent


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20))
def test_any_bytes_are_read_alike_however_they_are_cut(stream: bytes, places: list[int]) -> None:
    assert read(cut(stream, places)) == read([stream])


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_what_is_kept_is_within_the_bound(pieces: list[bytes]) -> None:
    reader = FrameReader(LIMIT)
    for piece in pieces:
        reader.feed(piece)
        assert reader.kept_bytes < LIMIT + 4


def test_an_unfinished_frame_is_seen_at_the_end_of_a_stream() -> None:
    reader = FrameReader()
    reader.feed(Frame(b"whole").encode() + Frame(b"cut off").encode()[:-1])

    assert reader.kept_bytes == 14


@pytest.mark.parametrize("total_size", [MAX_FRAME_SIZE, MAX_FRAME_SIZE + 1, 2**32 - 1])
def test_memory_is_bounded_whatever_size_a_frame_claims(total_size: int) -> None:
    """32 MiB of one frame, or of it and garbage, in pieces of 64 KiB."""
    reader, piece = FrameReader(), bytes(range(256)) * 256
    tracemalloc.start()
    try:
        reader.feed(size(total_size))
        for _ in range(512):
            reader.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * MAX_FRAME_SIZE  # what is kept and the frame that it becomes
