"""What a client machine tells its surroundings to do, each at its time in ms; to be carried out in order."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headgate.core.protocol.client.send_errors import SendError, ThrottleDetail
from headgate.core.protocol.client.windows import Window

MessageId: TypeAlias = Hashable


class Rejection(StrEnum):
    """Why an operation was rejected; it has changed nothing but the clock."""

    BAD_TIME = "bad_time"
    UNKNOWN_PRODUCER = "unknown_producer"
    DUPLICATE_MESSAGE = "duplicate_message"
    BAD_REQUEST_ID = "bad_request_id"
    BAD_PAUSE = "bad_pause"


@dataclass(frozen=True, slots=True)
class Write:
    """Hand the message to the connection; again, if the connection was lost since."""

    at_ms: int
    producer_id: int
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class Done:
    """The message is delivered."""

    at_ms: int
    producer_id: int
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class Failed:
    """The message is not delivered, as far as the client knows, and is not written again.

    detail: with the errors THROTTLED and TIMEOUT, else None.
    """

    at_ms: int
    producer_id: int
    message_id: MessageId
    error: SendError
    detail: ThrottleDetail | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Answer the command of that request id; its window is in force."""

    at_ms: int
    request_id: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """The operation is not understood. `at_ms` is the machine's time, but for BAD_TIME what came as the time."""

    at_ms: object
    error: Rejection


@dataclass(frozen=True, slots=True)
class Probe:
    """How a producer stands. window: None if it is not throttled; theta_ms: Θ."""

    at_ms: int
    producer_id: int
    window: Window | None
    blocked: int
    pending: int
    theta_ms: int


@dataclass(frozen=True, slots=True)
class PartitionsProbe:
    """Which partitions are throttled, ascending."""

    at_ms: int
    throttled: tuple[int, ...]


Output: TypeAlias = Write | Done | Failed | Receipt | Rejected | Probe | PartitionsProbe
