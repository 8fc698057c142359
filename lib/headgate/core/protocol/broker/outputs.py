"""What the broker's machine emits: commands, pauses and resumes of reads, and rejections (throttle-protocol 6, 19)."""

from dataclasses import dataclass
from enum import StrEnum

from headgate.core.protocol.reasons import Reason


class CommandKind(StrEnum):
    """What a command is to its producer: the start of a pause, a longer one, or news that reads go off."""

    START = "start"
    EXTEND = "extend"
    NOTICE = "notice"


class Cause(StrEnum):
    """Why reads go off."""

    NO_SUPPORT = "no_support"
    NO_RECEIPT = "no_receipt"
    VIOLATION = "violation"
    HARD_FLOOR = "hard_floor"
    CONDITION = "condition"


class BadInput(StrEnum):
    """Why an operation was refused, in the order of the checks. Source: throttle-protocol 15"""

    BAD_TIME = "bad_time"
    UNKNOWN_CONNECTION = "unknown_connection"
    UNKNOWN_PRODUCER = "unknown_producer"
    BAD_REASON = "bad_reason"
    BAD_ORDINAL = "bad_ordinal"
    BAD_BUCKET = "bad_bucket"
    BAD_PRODUCER = "bad_producer"
    DUPLICATE_PRODUCER = "duplicate_producer"
    BAD_REQUEST_ID = "bad_request_id"
    DUPLICATE_CONNECTION = "duplicate_connection"


@dataclass(frozen=True, slots=True)
class Command:
    """ThrottleProducer to the client: `producer` must not write for `pause_ms`, which is 0 in a notice."""

    at_ms: int
    request_id: int
    producer: int
    topic: str
    reason: Reason
    pause_ms: int
    kind: CommandKind


@dataclass(frozen=True, slots=True)
class ReadsPaused:
    """From here on nothing is read from the connection. `producer` and `topic` are None for a condition."""

    at_ms: int
    cause: Cause
    reason: Reason
    producer: int | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ReadsResumed:
    """The connection is read again, after `off_ms`."""

    at_ms: int
    off_ms: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """An operation that changed nothing but the clock; with `bad_time` not even that, and `at_ms` is what it said."""

    at_ms: int
    error: BadInput


Output = Command | ReadsPaused | ReadsResumed | Rejected
