"""What a future of a send fails with (throttle-protocol 10.2, 11). The rest of the tree is in `headgate.errors`."""

from headgate.client.held_reasons import held_reason
from headgate.core.protocol.client.client_outputs import Failed
from headgate.core.protocol.client.send_errors import SendError, ThrottleDetail
from headgate.errors import HeadgateError


class MissingExtraError(HeadgateError, ImportError):
    """The library of a messaging system is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(
            f"{library} is not installed; headgate needs it to send. Install headgate with its extra `client`: "
            "pip install 'headgate[client]'"
        )


class SendFailedError(HeadgateError):
    """The message is not delivered as far as the client knows, and is not written again.

    Attributes: `topic`, where it was to go; `may_be_stored`, whether the library was given it before it failed: if
    not, it is certainly not stored.
    """

    may_be_stored = False

    def __init__(self, topic: str, found: object) -> None:
        self.topic = topic
        self.found = found
        super().__init__(topic, found)

    def __str__(self) -> str:
        return f"{self.topic}: {self.found}"


class _TimedError(SendFailedError):
    """A send whose time was, or would have been, over.

    Attributes: `reason`, why the producer is or was throttled, None if it never was, or for a reason that this version
    does not know; `protocol_reason`, the same as the broker said it; `throttled_ms`, how long it was throttled while
    the message waited; `timeout_ms`, the send timeout; `remaining_ms`, how long it stays throttled; `immediate`,
    whether the send failed at once.
    Source: PIP-385; throttle-protocol 11
    """

    def __init__(self, topic: str, found: ThrottleDetail) -> None:
        super().__init__(topic, found)
        self.reason = held_reason(found.reason)
        self.protocol_reason = found.reason
        self.throttled_ms = found.throttled_ms
        self.timeout_ms = found.timeout_ms
        self.remaining_ms = found.remaining_ms
        self.immediate = found.immediate


class ProducerThrottledError(_TimedError):
    """The throttle is to blame: it took more than 80 % of the send timeout, or will outlast it (`immediate`)."""


class SendTimeoutError(_TimedError):
    """The message was not acknowledged within the send timeout, and the throttle took at most 80 % of that."""


class ProducerClosedError(SendFailedError):
    """The producer was closed before the message was acknowledged, or before it was sent."""


class ProducerQueueFullError(SendFailedError):
    """`max_pending` messages or `max_pending_bytes` are held already; this one was not taken."""


class SendRejectedError(SendFailedError):
    """The library or the broker refused the message; `__cause__` says why, in the library's words."""


_WITHOUT_DETAIL = {
    SendError.CLOSED: (ProducerClosedError, "the producer is closed; what was not acknowledged by then has failed"),
    SendError.QUEUE_FULL: (
        ProducerQueueFullError,
        "not taken: max_pending messages or max_pending_bytes are held already; send later, or raise these",
    ),
    SendError.REJECTED: (SendRejectedError, "refused by the library or the broker"),
}


def plain_error(error: SendError, topic: str, cause: BaseException | None = None) -> SendFailedError:
    """The error of a message that no time was to blame for. cause: what the library said of it."""
    kind, text = _WITHOUT_DETAIL[error]
    return kind(topic, text if cause is None else f"{text}: {cause}")


def error_of(failed: Failed, topic: str, cause: BaseException | None = None) -> SendFailedError:
    """The error of a message that failed. cause: what the library said of it."""
    error: SendFailedError
    if failed.detail is not None:
        kind = ProducerThrottledError if failed.error is SendError.THROTTLED else SendTimeoutError
        error = kind(topic, failed.detail)
    else:
        error = plain_error(failed.error, topic, cause)
    error.__cause__ = cause
    return error
