"""The command line's view of a TraceSpec: one option per field, and --rate beside --events and --duration-s."""

import argparse
import math
from dataclasses import fields
from datetime import datetime
from typing import Any

from headgate.errors import ConfError
from headgate.trace.spec import TraceSpec


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each field of TraceSpec, absent ones being None, and --rate."""
    group = parser.add_argument_group("trace")
    for spec_field in fields(TraceSpec):
        default, about = spec_field.default, spec_field.metadata["about"]
        shown = default.isoformat() if isinstance(default, datetime) else default
        parse: Any = _instant if isinstance(default, datetime) else type(default)
        group.add_argument(f"--{spec_field.name.replace('_', '-')}", type=parse, help=f"{about} (default {shown})")
    group.add_argument(
        "--rate", type=float, help="mean publishes per second of event time; gives --events or --duration-s"
    )


def spec_from(options: argparse.Namespace) -> TraceSpec:
    """The spec that parsed options ask for.

    Of --events, --rate and --duration-s, two decide the third. One alone, if --events or --rate, goes with the default
    duration; --duration-s alone goes with the default rate. Raises ConfError with all mistakes at once.
    """
    names = [spec_field.name for spec_field in fields(TraceSpec)]
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return TraceSpec(**given, **_missing_size(given, options.rate))


def _missing_size(given: dict[str, Any], rate_per_s: float | None) -> dict[str, Any]:
    """What --rate adds to the fields given: the number of events, or the duration."""
    default = TraceSpec()
    if rate_per_s is None and "duration_s" in given and "events" not in given:
        rate_per_s = default.rate_per_s
    if rate_per_s is None:
        return {}
    if not (math.isfinite(rate_per_s) and rate_per_s > 0):
        raise ConfError([f"rate: got {rate_per_s:g}, allowed a number above 0 (publishes per second)"])
    if "events" in given and "duration_s" in given:
        raise ConfError(["rate: got --events, --rate and --duration-s, allowed two of them; leave one out"])
    if "events" in given:
        return {"duration_s": given["events"] / rate_per_s}
    duration_s = given.get("duration_s", default.duration_s)
    return {"events": round(rate_per_s * duration_s) if math.isfinite(duration_s) else 0}


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        message = f"got {text!r}, allowed an ISO 8601 time with zone such as 2026-01-05T09:00:00Z"
        raise argparse.ArgumentTypeError(message) from None
