"""Commands that come as rows of the table `throttle_decisions`, or as objects with its names (throttle-protocol 6)."""

from collections.abc import Mapping
from typing import Any

from headgate.core.protocol.client.commands import ThrottleCommand

_NO_TIME: Any = ""
"""In place of a time that is not there: None would say that the command came as a frame."""


def command_of(row: Mapping[str, Any], connection: str) -> ThrottleCommand | None:
    """The command of a row, not checked yet; None for a row of another kind or connection."""
    if row.get("kind") != "command" or row.get("connection") != connection:
        return None
    at_ms = row.get("at_ms")
    return ThrottleCommand(
        row.get("request_id"),  # type: ignore[arg-type]  # the machine refuses what is no id, producer or pause
        row.get("producer_id"),  # type: ignore[arg-type]
        row.get("reason"),
        row.get("pause_for_millis"),  # type: ignore[arg-type]
        _NO_TIME if at_ms is None else at_ms,
    )
