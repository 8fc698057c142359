"""The kind formula: functions of the protocol, one call an op (throttle-protocol 19)."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.core.protocol.broker.pause import Bucket, until_refilled, until_second
from headgate.core.protocol.client.send_errors import classify
from headgate.core.protocol.client.windows import Window, join
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import PauseMode
from headgate.errors import InvalidArgument, WireError
from headgate.wire.messages import Receipt, ThrottleProducer, decode_feature_flags, encode

Arguments = Mapping[str, Any]
Formula = Callable[[Arguments], dict[str, Any]]


def pause_of(given: Arguments) -> dict[str, Any]:
    """The pause of a mark that trips these limiters."""
    if PauseMode(given["mode"]) is PauseMode.SECOND_BOUNDARY:
        pause = until_second(given["at"], given.get("phase_ms", 0), map(Reason, given["reasons"]))
    else:
        limiters = given["limiters"]
        buckets = {Reason(limiter["reason"]): [Bucket(*one) for one in limiter["buckets"]] for limiter in limiters}
        pause = until_refilled(buckets)
    return {"pause_ms": pause.pause_ms, "reason": int(pause.reason)}


def class_of(given: Arguments) -> dict[str, Any]:
    """The class of a send timeout."""
    verdict = classify(given["theta_ms"], given["theta0_ms"], given["timeout_ms"], given["percent"])
    return {"throttled_ms": verdict.throttled_ms, "error": verdict.error}


def merge_of(given: Arguments) -> dict[str, Any]:
    """The join of windows."""
    window = join(*(Window(end_ms, Reason(code)) for end_ms, code in given["windows"]))
    return {"until": window.end_ms, "reason": int(window.reason)}


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


FORMULAS: dict[str, Formula] = {
    "pause": pause_of,
    "classify": class_of,
    "merge": merge_of,
    "encode": encode_of,
    "decode": decode_of,
}


class FormulaOperations:
    """Every op emits the result of its formula, which depends on its arguments alone, not on the config."""

    def __init__(self, config: Arguments) -> None:
        """A formula has no settings."""

    def perform(self, op: str, arguments: Arguments) -> list[Any]:
        """Run `op`. Raises InvalidArgument for one that is no formula."""
        if op not in FORMULAS:
            raise InvalidArgument(f"op: got {op!r}, allowed are {', '.join(FORMULAS)}")
        return [FORMULAS[op](arguments)]
