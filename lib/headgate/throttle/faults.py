"""What can be wrong with a traffic row, and how a dead letter says it; which faults hold, spark.parse tells."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headgate.conf import InputSettings

MAX_LONG = 2**63 - 1
PUBLISH, DISPATCH, SUBSCRIBE = "publish", "dispatch", "subscribe"
KINDS = (PUBLISH, DISPATCH, SUBSCRIBE)
OF_KIND = {
    PUBLISH: ("producer", "connection", "messages", "bytes"),
    DISPATCH: ("subscription", "messages", "bytes"),
    SUBSCRIBE: ("client", "consumer", "consumer_id"),
}
"""Columns that a row of each kind needs, beside those that all have."""
SHOWN_CHARACTERS = 100
NAMES = ("broker", "topic", "producer", "connection", "subscription", "client", "consumer")


class Fault(NamedTuple):
    """A column without what is allowed there."""

    column: str
    allowed: str


def faults_of(settings: InputSettings) -> tuple[Fault, ...]:
    """Every fault, in the order of the columns, which is that of the reasons; last what only lines of text can have."""
    span = f"{settings.event_time_from.isoformat()} up to {settings.event_time_until.isoformat()}"
    return (
        Fault("event_time", "ISO 8601 with a zone, or whole microseconds since 1970"),
        Fault("event_time", f"{span} ([input] in headgate.toml)"),
        Fault("seq", "a whole number of 64 bits"),
        Fault("broker", "a name"),
        Fault("topic", "persistent://tenant/namespace/topic"),
        Fault("kind", f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"),
        Fault("producer", "a name"),
        Fault("connection", "a name"),
        Fault("subscription", "a name"),
        Fault("client", "a name"),
        Fault("consumer", "a name"),
        Fault("consumer_id", f"a whole number from 0 to {MAX_LONG}"),
        Fault("messages", f"a whole number from 0 to {MAX_LONG}"),
        Fault("bytes", f"a whole number from 0 to {MAX_LONG}"),
        *(Fault(name, "UTF-8") for name in NAMES),
    )


def dead_letter(faults: Sequence[Fault], bad: Mapping[str, Any]) -> dict[str, Any]:
    """The dead letter of a bad row.

    bad: as spark.parse makes it: `defect`, if the row has no columns at all; else `faults`, a bit for each that holds,
    and `got`, the text of each column; null ones are left out.
    """
    got = bad.get("got", {})
    told = [
        f"{fault.column}: got {_shown(got.get(fault.column))}, allowed is {fault.allowed}"
        for position, fault in enumerate(faults)
        if bad["faults"] >> position & 1
    ]
    reason = bad.get("defect") or "; ".join(told)
    return {"reason": reason} | {name: bad.get(name) for name in ("raw", "source", "offset")}


def _shown(text: str | None) -> str:
    if text is None:
        return "null"
    return text if text.strip(" ") else f"'{text}'"
