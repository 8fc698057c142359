"""Frames of Pulsar's stream: [total size][command size][command][payload], sizes as four bytes, big end first.

The total size counts all that follows it. Only commands that carry messages have a payload.
"""

from typing import NamedTuple

SIZE_BYTES = 4
MAX_FRAME_SIZE = 5 * 1024 * 1024 + 10 * 1024
"""Pulsar's own bound in bytes: its largest message and 10 KiB around it."""


class Frame(NamedTuple):
    """A whole frame. What is passed on as it came keeps all bytes, known or not."""

    command: bytes
    payload: bytes = b""

    def encode(self) -> bytes:
        """The frame's bytes, sizes first."""
        total_size = SIZE_BYTES + len(self.command) + len(self.payload)
        return b"".join((_size(total_size), _size(len(self.command)), self.command, self.payload))


class BadFrame(NamedTuple):
    """A frame that was dropped; the stream goes on behind it.

    error: `malformed`, its sizes contradict each other, or `too_large`. total_size: in bytes, as it said itself.
    """

    error: str
    total_size: int


class FrameReader:
    """The frames of a stream do not depend on how the stream is cut, and nothing of a stream raises.

    Between calls at most `max_frame_size` + 4 bytes are kept. A larger frame is told of when its size is known, and its
    bytes are dropped as they come.
    """

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        """max_frame_size: the largest total size in bytes that is read, at least 4."""
        self._max_frame_size = max_frame_size
        self._kept = bytearray()
        self._to_drop = 0

    @property
    def kept_bytes(self) -> int:
        """How many bytes of an unfinished frame are kept; not 0 at the end of a stream that was cut off."""
        return len(self._kept)

    def feed(self, received: bytes) -> list[Frame | BadFrame]:
        """The frames that end in these bytes, and the too large ones whose sizes end in them, in order."""
        self._kept += received
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | BadFrame | None:
        self._drop()
        if len(self._kept) < SIZE_BYTES:
            return None
        total_size = int.from_bytes(self._kept[:SIZE_BYTES])
        if total_size > self._max_frame_size:
            self._to_drop = SIZE_BYTES + total_size
            return BadFrame("too_large", total_size)
        if len(self._kept) < SIZE_BYTES + total_size:
            return None
        with memoryview(self._kept) as kept:
            frame = _split(kept[SIZE_BYTES : SIZE_BYTES + total_size])
        del self._kept[: SIZE_BYTES + total_size]
        return frame

    def _drop(self) -> None:
        dropped = min(self._to_drop, len(self._kept))
        del self._kept[:dropped]
        self._to_drop -= dropped


def _split(frame: memoryview) -> Frame | BadFrame:
    """A copy of a frame, which comes without its total size."""
    with frame:
        command_end = SIZE_BYTES + int.from_bytes(frame[:SIZE_BYTES])
        if len(frame) < command_end:
            return BadFrame("malformed", len(frame))
        return Frame(bytes(frame[SIZE_BYTES:command_end]), bytes(frame[command_end:]))


def _size(size: int) -> bytes:
    return size.to_bytes(SIZE_BYTES)
