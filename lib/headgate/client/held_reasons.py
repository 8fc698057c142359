"""The protocol's reasons under the names that screens, HTTP and metrics have for them (core/reasons.py)."""

import re
from collections.abc import Mapping

from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import HeldReason, protocol_reason

_OF_REASON = re.compile(r"(?P<before>[^{]*\{(?:outcome=\w+,)?reason=)(?P<name>\w+)")
"""The beginning of a counter with that label, up to its value."""


def held_reason(reason: Reason | None) -> HeldReason | None:
    """None also for a reason that this version does not know."""
    return None if reason is None else protocol_reason(reason)


def with_held_reasons(counts: Mapping[str, int]) -> dict[str, int]:
    """Counters by `name{label=value,...}`, those of a client, with the HeldReason as label `reason` where there is one.

    No two counters become one: each of the protocol's reasons has a name of its own.
    """
    return {_OF_REASON.sub(_named, key, count=1): count for key, count in counts.items()}


def _named(found: re.Match[str]) -> str:
    name = found["name"]
    return found["before"] + (held_reason(Reason[name]) or name)
