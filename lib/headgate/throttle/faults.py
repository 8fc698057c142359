"""What can be wrong with a traffic row, and how a dead letter says it; which faults hold, spark.parse tells."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headgate.conf import InputSettings

MAX_LONG = 2**63 - 1
PUBLISH, DISPATCH, SUBSCRIBE, UNLOAD, CONNECTION = "publish", "dispatch", "subscribe", "unload", "connection"
KINDS = (PUBLISH, DISPATCH, SUBSCRIBE, UNLOAD, CONNECTION)
OF_KIND = {
    PUBLISH: ("topic", "producer", "connection", "messages", "bytes"),
    DISPATCH: ("topic", "subscription", "messages", "bytes", "entries", "caught_up", "filtered"),
    SUBSCRIBE: ("topic", "client", "consumer", "consumer_id"),
    UNLOAD: ("bundle", "duration_ms"),
    CONNECTION: ("connection", "action"),
}
"""Columns of the rows of each kind, beside those that all have."""
OF_ACTION: dict[str, tuple[str, ...]] = {
    "open": ("io_thread",),
    "close": (),
    "writable": (),
    "unwritable": (),
    "start": ("io_thread", "bytes"),
    "finish": ("io_thread", "bytes"),
    "command": ("command",),
}
"""What a connection did, and the columns that tell more of it."""
OPTIONAL = ("entries", "caught_up", "filtered")
"""Columns that may be null in a row of their kind."""
SHOWN_CHARACTERS = 100
NAMES = (
    *("broker", "topic", "producer", "connection", "subscription", "client", "consumer"),
    *("bundle", "action", "command"),
)
NUMBERS = ("consumer_id", "io_thread", "duration_ms", "messages", "bytes", "entries")
FLAGS = ("caught_up", "filtered")
PLAIN_NAMES = tuple(name for name in NAMES if name not in {"broker", "topic", "action"})
"""Names of some kinds alone that may be any text."""


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
        Fault("kind", _one_of(KINDS)),
        *(Fault(name, "a name") for name in PLAIN_NAMES),
        Fault("action", _one_of(OF_ACTION)),
        *(Fault(name, f"a whole number from 0 to {MAX_LONG}") for name in NUMBERS),
        *(Fault(name, "true or false") for name in FLAGS),
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


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _shown(text: str | None) -> str:
    if text is None:
        return "null"
    return text if text.strip(" ") else f"'{text}'"
