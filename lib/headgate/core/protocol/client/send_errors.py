"""With which error a send fails, and what the error tells (throttle-protocol 11)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import protocol_reason

PERCENT = 100


class SendError(StrEnum):
    """Why a message was not delivered. The first two carry a ThrottleDetail."""

    THROTTLED = "ProducerThrottledError"
    TIMEOUT = "SendTimeoutError"
    CLOSED = "ProducerClosedError"
    QUEUE_FULL = "ProducerQueueFullError"
    REJECTED = "SendRejectedError"


class Verdict(NamedTuple):
    """Of a message's send timeout: B, the ms that the producer was throttled for, and the error that follows."""

    throttled_ms: int
    error: SendError


def classify(theta_ms: int, theta0_ms: int, timeout_ms: int, percent: int) -> Verdict:
    """The throttle is to blame if and only if it took more than `percent` of the send timeout; equality is a timeout.

    B is within 0..timeout_ms. theta_ms, theta0_ms: Θ now and when the message was sent.
    Source: PIP-385; throttle-protocol 11
    """
    throttled_ms = min(max(theta_ms - theta0_ms, 0), timeout_ms)
    is_throttled = PERCENT * throttled_ms > percent * timeout_ms
    return Verdict(throttled_ms, SendError.THROTTLED if is_throttled else SendError.TIMEOUT)


@dataclass(frozen=True, slots=True)
class ThrottleDetail:
    """What ProducerThrottledError and SendTimeoutError tell.

    reason: of the window, else of the open notice, else the last one, None without any. throttled_ms: B.
    timeout_ms: the send timeout. remaining_ms: of the window, else 0. immediate: the send failed at once, because the
    window outlasts its timeout.
    """

    reason: Reason | None
    throttled_ms: int
    timeout_ms: int
    remaining_ms: int
    immediate: bool

    def __str__(self) -> str:
        """The error's text; it names the reason as screens and metrics do (HeldReason)."""
        cause = "the broker never throttled this producer"
        if self.reason is not None:
            cause = f"reason: {protocol_reason(self.reason) or self.reason.name}"
        if self.immediate:
            found = f"not written: the producer is throttled for {self.remaining_ms} ms more, longer than the"
            return f"{found} send timeout of {self.timeout_ms} ms; {cause}; send later, or raise the send timeout"
        found = f"not acknowledged within the send timeout of {self.timeout_ms} ms, throttled for"
        return f"{found} {self.throttled_ms} ms of it, for {self.remaining_ms} ms more; {cause}"
