"""A ThrottleProducer command as a client receives it, and what becomes of it (throttle-protocol 10.3)."""

from dataclasses import dataclass
from enum import StrEnum

from headgate.core.numbers import MAX
from headgate.core.protocol.broker.checks import is_time


class CommandOutcome(StrEnum):
    """What a client made of a command."""

    APPLIED = "applied"
    NO_CHANGE = "no_change"
    NOTICE = "notice"
    STALE = "stale"
    DUPLICATE = "duplicate"
    UNKNOWN_PRODUCER = "unknown_producer"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class ThrottleCommand:
    """A command as it came, not yet checked.

    reason: a code or None. pause_ms: 0 is a notice. issued_at_ms: the time of the decision if the command came as a
    row, None if it came as a frame on the connection itself.
    """

    request_id: int
    producer_id: int
    reason: int | None
    pause_ms: int
    issued_at_ms: int | None = None

    @property
    def has_request_id(self) -> bool:
        """Whether the request id can be one: an integer from 1 to 2^63-1."""
        return type(self.request_id) is int and 1 <= self.request_id <= MAX

    @property
    def has_pause(self) -> bool:
        """Whether the pause can be one: an integer from 0 to 2^63-1."""
        return type(self.pause_ms) is int and 0 <= self.pause_ms <= MAX

    @property
    def has_issue_time(self) -> bool:
        """Whether the time of the decision can be one: an integer from 0 to 2^63-1, or None."""
        return self.issued_at_ms is None or is_time(self.issued_at_ms)

    def end_ms(self, now_ms: int, clock_skew_ms: int) -> int:
        """The end of its pause: from arrival for a frame, from the decision, less the skew of clocks, for a row."""
        if self.issued_at_ms is None:
            return now_ms + self.pause_ms
        return self.issued_at_ms + self.pause_ms - clock_skew_ms

    def is_older(self, now_ms: int, age_ms: int) -> bool:
        """Whether it is a row of a decision more than `age_ms` ago."""
        return self.issued_at_ms is not None and self.issued_at_ms + age_ms < now_ms
