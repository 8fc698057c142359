"""The throttle protocol in bytes: messages, the commands that carry them, and the frames of a stream.

To regenerate throttle_pb2 see the head of throttle.proto.
"""

from headgate.wire.commands import (
    Command,
    decode_command,
    throttle_producer,
    throttle_producer_receipt,
)
from headgate.wire.connect import Connect
from headgate.wire.frames import MAX_FRAME_SIZE, BadFrame, Frame, FrameReader
from headgate.wire.messages import Receipt, ThrottleProducer

__all__ = [
    "MAX_FRAME_SIZE",
    "BadFrame",
    "Command",
    "Connect",
    "Frame",
    "FrameReader",
    "Receipt",
    "ThrottleProducer",
    "decode_command",
    "throttle_producer",
    "throttle_producer_receipt",
]
