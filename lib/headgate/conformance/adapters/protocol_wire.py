"""The formula operations `encode` and `decode` on headgate.wire (throttle-protocol 19)."""

from collections.abc import Mapping
from typing import Any

from headgate.errors import WireError
from headgate.wire.messages import Receipt, ThrottleProducer, decode_feature_flags, encode


def encode_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The bytes of `message` with its `fields`, as hex."""
    return {"hex": encode(arguments["message"], arguments["fields"]).hex()}


def decode_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `message` in the bytes of `hex`, or why there are none."""
    try:
        return READERS[arguments["message"]](bytes.fromhex(arguments["hex"]))
    except WireError as refused:
        return {"error": refused.code}


def _throttle_producer(received: bytes) -> dict[str, Any]:
    command = ThrottleProducer.decode(received)
    return {
        "request_id": command.request_id,
        "producer_id": command.producer_id,
        "throttling_reason": command.reason.value,
        "pause_for_millis": command.pause_ms,
    }


def _receipt(received: bytes) -> dict[str, Any]:
    return {"request_id": Receipt.decode(received).request_id}


def _feature_flags(received: bytes) -> dict[str, Any]:
    return {"supports_throttle_producer_commands": decode_feature_flags(received)}


READERS = {
    "ThrottleProducer": _throttle_producer,
    "ThrottleProducerReceipt": _receipt,
    "FeatureFlags": _feature_flags,
}
