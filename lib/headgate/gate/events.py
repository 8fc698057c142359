"""What limiters can hear of connections."""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.core.protocol.broker.outputs import Output


@dataclass(frozen=True, slots=True)
class Joined:
    """A client has come. Its machine is new: no producer is open, and ordinals begin at 1."""

    at_ms: int
    supports: bool


@dataclass(frozen=True, slots=True)
class Left:
    """A client has gone, and all that held it."""

    at_ms: int


Event = Output | Joined | Left
Heard = Callable[[str, Event], None]
"""Hears of events by the name of their connection; it must not call back."""
