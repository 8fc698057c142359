"""What limiters can hear of connections."""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.core.protocol.broker.outputs import Cause, Output
from headgate.core.protocol.reasons import Reason
from headgate.gate.producers import ProducerName


@dataclass(frozen=True, slots=True)
class Joined:
    """A client has come. Its machine is new: no producer is open, and nothing holds it."""

    at_ms: int
    supports: bool


@dataclass(frozen=True, slots=True)
class Left:
    """A client has gone, and all that held it."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """Reads went off. It has the name that the producer had then: it may close before they go on.

    producer: None for a condition of the whole connection.
    """

    at_ms: int
    cause: Cause
    reason: Reason
    producer: ProducerName | None = None


Event = Output | Joined | Left | Paused
"""`Paused` stands in the place of the output ReadsPaused."""
Heard = Callable[[str, Event], None]
"""Hears of events by the name of their connection; it must not call back."""
